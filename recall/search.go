package recall

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/pgvector/pgvector-go"

	"github.com/pgrecall/pgrecall/dbgen"
	"github.com/pgrecall/pgrecall/recall/embed"
)

// Mode says by what hits are found.
type Mode string

// The modes of a search.
const (
	Hybrid   Mode = "hybrid"   // by words and meaning
	Semantic Mode = "semantic" // by meaning
	Lexical  Mode = "lexical"  // by words
)

// Scope says where hits may lie.
type Scope string

// The scopes of a search.
const (
	ScopeResource Scope = "resource" // in all threads of the thread's owner
	ScopeThread   Scope = "thread"   // in the thread
)

// The defaults of a [Search].
const (
	defaultTopK         = 4
	defaultMessageRange = 1
	// defaultSearchContext is the context of an included message in a recall that
	// searches too.
	defaultSearchContext = 2
)

// Search asks a recall for the messages that answer a question.
type Search struct {
	// Question is in any words. A part in double quotes must occur as it is.
	Question string
	// TopK is how many messages are found; 4 when 0. There are exactly so many
	// where the scope has them.
	TopK int
	// Before and After count the messages around each hit; nil means 1.
	Before, After *int
	// Scope is ScopeResource when empty; a recall without a thread knows no other.
	Scope Scope
	// Threshold leaves out what is less similar; nil means nothing.
	Threshold *float64
	// IndexName names the embedding index; empty means the live one.
	IndexName string
	// Filter restricts the hits further than the request's filter does.
	Filter map[string]any
	// Mode is Hybrid when empty.
	Mode Mode
	// CountPending fills in [SearchPlan.Pending]. It reads the whole scope.
	CountPending bool
}

// Hit says how a message was found.
type Hit struct {
	// Rank is 1 for the best.
	Rank int
	// Score orders the hits; its range depends on the mode, 0 to about 1.
	Score float64
	// Similarity is nil where the message or the question has no vector.
	Similarity *float64
	// Words is the share of the question's words in the message and around it.
	Words float64
}

// SearchPlan says how a search was run.
type SearchPlan struct {
	Mode Mode
	// Plan is "exact" or "hnsw"; empty where no vectors were compared.
	Plan string
	// Visited counts the vectors compared or given by the graph.
	Visited int64
	// Pending counts the messages of the scope that have a text but no vector yet;
	// nil where that was not asked for, or there is no index.
	Pending *int64
	// Backlog is the age of the oldest job that is not done; with Pending.
	Backlog time.Duration
}

// checkSearch checks a search and fills in its defaults.
func (m *Memory) checkSearch(c *checker, q *query) {
	s := q.Search
	c.text("vectorSearchString", s.Question, c.limits.QuestionBytes)
	if s.Question == "" {
		c.fail("vectorSearchString", "is required")
	}
	const at = "threadConfig.semanticRecall"
	c.search(at, s)
	if s.Scope == ScopeThread && q.ThreadID == "" {
		c.fail(at+".scope", "needs a threadId to be thread")
	}
	if m.embedder == nil && s.Threshold != nil {
		c.fail(at+".threshold", "is a similarity, and without an embedder there is none")
	}
	if m.embedder == nil && s.Mode != Lexical {
		c.fail("vectorSearchString", "needs an embedder, and this server has none: only the mode lexical works")
	}
	if extra := c.predicate(at+".filter", s.Filter, nil); extra != anything {
		q.hitPredicate = allOf([]string{"(" + extra + ")", "(" + q.predicate + ")"}, false)
	} else if q.predicate != anything {
		q.hitPredicate = q.predicate
	}
}

// search checks how a question is to be searched for, and fills in the defaults.
func (c *checker) search(at string, s *Search) {
	if s.TopK == 0 {
		s.TopK = defaultTopK
	}
	c.between(at+".topK", s.TopK, 1, c.limits.TopK)
	for _, width := range []**int{&s.Before, &s.After} {
		if *width == nil {
			one := defaultMessageRange
			*width = &one
		}
		c.between(at+".messageRange", **width, 0, c.limits.ContextWidth)
	}
	switch s.Scope {
	case "":
		s.Scope = ScopeResource
	case ScopeResource, ScopeThread:
	default:
		c.fail(at+".scope", "must be resource or thread")
	}
	switch s.Mode {
	case "":
		s.Mode = Hybrid
	case Hybrid, Semantic, Lexical:
	default:
		c.fail(at+".mode", "must be hybrid, semantic or lexical")
	}
	if s.Threshold != nil && (math.IsNaN(*s.Threshold) || math.IsInf(*s.Threshold, 0)) {
		c.fail(at+".threshold", "must be a finite number")
	}
	c.id(at+".indexName", s.IndexName)
}

// questionVector gives the question's vector; nil where it has none, or where the
// embedder is out of reach and the mode does without, which degraded says.
func (m *Memory) questionVector(ctx context.Context, s *Search) (vector *pgvector.Vector, degraded bool, err error) {
	if m.embedder == nil || s.Mode == Lexical && s.Threshold == nil {
		return nil, false, nil
	}
	asking, cancel := questionTime(ctx, s.Mode)
	defer cancel()
	vectors, err := m.questions.Embed(asking, []string{s.Question}, embed.Query)
	var failed *embed.Error
	switch {
	case errors.As(err, &failed) && s.Mode == Hybrid && s.Threshold == nil:
		return nil, true, nil
	case err != nil:
		return nil, false, embedderError(err)
	case vectors[0] == nil:
		return nil, false, nil
	}
	v := pgvector.NewVector(vectors[0])
	return &v, false, nil
}

// questionTime bounds the wait for a question's vector by a part of the time that
// the request has left: the search itself needs some, and hybrid can do without.
func questionTime(ctx context.Context, mode Mode) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	left := time.Until(deadline) / 3
	if mode != Hybrid {
		left *= 2
	}
	return context.WithTimeout(ctx, left)
}

func (m *Memory) runSearch(ctx context.Context, q *query) (found, error) {
	vector, degraded, err := m.questionVector(ctx, q.Search)
	if err != nil {
		return found{}, err
	}
	rows, err := m.queries.MessageSearch(ctx, m.db, m.searchParams(q, vector))
	if isIndexMissing(err) && q.Search.IndexName == "" {
		// The operator has dropped it: the caller has not asked for it by name.
		if q.Search.Mode != Hybrid || q.Search.Threshold != nil {
			return found{}, &Error{Code: CodeUnavailable, Message: "There is no embedding index for this server's embedder", cause: err}
		}
		degraded = true
		rows, err = m.queries.MessageSearch(ctx, m.db, m.searchParams(q, nil))
	}
	if err != nil {
		return found{}, err
	}
	out := found{degraded: degraded, plan: &SearchPlan{Mode: q.Search.Mode}}
	if len(rows) == 0 {
		return out, nil
	}
	out.owner, out.total, out.hasMore = rows[0].OwnerID, rows[0].Total, rows[0].HasMore
	if rows[0].ID == "" {
		return out, nil
	}
	asked := make(map[string]bool, len(q.Include))
	for _, item := range q.Include {
		asked[item.ID] = true
	}
	for _, row := range rows {
		r := foundRow{
			Message: Message{
				ID: row.ID, ThreadID: row.ThreadID, ResourceID: row.ResourceID, Role: row.Role, Type: row.Type,
				Content: json.RawMessage(row.Content), CreatedAt: row.CreatedAt.UTC(),
			},
			seq: row.Seq, onPage: row.OnPage, included: row.Included && asked[row.ID], toolCall: row.ToolCall,
			contextOf: row.ContextOf, contextOffset: row.ContextOffset,
		}
		if row.Rank > 0 {
			r.hit = &Hit{Rank: int(row.Rank), Score: row.Score, Words: row.Words}
			if !math.IsNaN(row.Similarity) {
				r.hit.Similarity = &row.Similarity
			}
			out.plan.Plan, out.plan.Visited = row.Plan, row.Visited
		}
		out.rows = append(out.rows, r)
	}
	return out, nil
}

// countPending notes in the plan of a search what it could not find by meaning yet.
func (m *Memory) countPending(ctx context.Context, q *query, found found) error {
	params := dbgen.EmbeddingPendingCountParams{
		IndexName: q.Search.IndexName, Model: m.model(), Dimensions: int32(m.dimensions()),
		ResourceID: cmp.Or(q.ResourceID, found.owner), Reach: m.reach(),
	}
	if q.Search.Scope == ScopeThread {
		params.ThreadID = q.ThreadID
	}
	pending, err := m.queries.EmbeddingPendingCount(ctx, m.db, params)
	if isNoRows(err) {
		return nil
	}
	if err != nil {
		return databaseError(err)
	}
	backlog, err := m.Backlog(ctx)
	found.plan.Pending, found.plan.Backlog = &pending, backlog.Oldest
	return err
}

// model names the embedder's model; empty without one.
func (m *Memory) model() string {
	if m.embedder == nil {
		return ""
	}
	return m.embedder.Model()
}

// dimensions is the length of the embedder's vectors; 0 without one.
func (m *Memory) dimensions() int {
	if m.embedder == nil {
		return 0
	}
	return m.embedder.Dimensions()
}

func (m *Memory) searchParams(q *query, vector *pgvector.Vector) dbgen.MessageSearchParams {
	p, s := q.params(), q.Search
	params := dbgen.MessageSearchParams{
		ThreadID: p.ThreadID, ResourceID: p.ResourceID, Newest: p.Newest, MaxRows: p.MaxRows, SkipRows: p.SkipRows,
		StartsAt: p.StartsAt, EndsAt: p.EndsAt,
		AfterCreatedAt: p.AfterCreatedAt, AfterThreadID: p.AfterThreadID, AfterSeq: p.AfterSeq,
		BeforeCreatedAt: p.BeforeCreatedAt, BeforeThreadID: p.BeforeThreadID, BeforeSeq: p.BeforeSeq,
		HasConditions: p.HasConditions, Matching: p.Matching, Roles: p.Roles, WithTotal: p.WithTotal,
		IncludeIds: p.IncludeIds, IncludeThreadIds: p.IncludeThreadIds,
		IncludeBefore: p.IncludeBefore, IncludeAfter: p.IncludeAfter, KeepToolPairs: p.KeepToolPairs,
		HitsInThread: s.Scope == ScopeThread,
		SearchMode:   string(s.Mode),
		Question:     s.Question,
		QueryVector:  vector,
		QueryModel:   m.model(),
		IndexName:    s.IndexName,
		TopK:         int32(s.TopK),
		Threshold:    s.Threshold,
		HitBefore:    int64(*s.Before),
		HitAfter:     int64(*s.After),
		Reach:        m.reach(),
	}
	if q.hitPredicate != "" {
		params.HitMatching = &q.hitPredicate
	}
	return params
}

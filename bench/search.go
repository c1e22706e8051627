package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"

	"github.com/pgrecall/pgrecall/bench/dataset"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
)

const (
	topK = 5
	// graphFrom is how many vectors of a resource are left out of the graph.
	graphFrom = 5000
	// qualityQuestions tell how much of what is nearest is found.
	qualityQuestions = 200
)

// The bare statements of searches. All give the messages around their hits too.
const (
	// sqlNearest compares all vectors of the resource.
	sqlNearest = `
		SELECT e.message_id
		FROM recall.embeddings_1 AS e
		WHERE e.resource_id = $1
		ORDER BY e.embedding <#> $2
		LIMIT $3`
	// sqlNearestInGraph walks the graph. || '' keeps it from comparing all.
	sqlNearestInGraph = `
		SELECT e.message_id
		FROM recall.embeddings_1 AS e
		WHERE e.in_graph AND e.resource_id || '' = $1
		ORDER BY e.embedding <#> $2
		LIMIT $3`
	sqlByWords = `
		SELECT w.id
		FROM recall.messages AS w
		CROSS JOIN (SELECT replace(plainto_tsquery('english', $2)::text, '&', '|')::tsquery AS query) AS q
		WHERE recall.scope_keys(w.thread_id, w.resource_id) @> ARRAY['r' || $1::text] AND w.lexemes @@ q.query
		ORDER BY ts_rank(w.lexemes, q.query) DESC
		LIMIT $3`
	sqlAroundHits = `
		SELECT m.id, m.role, m.type, m.content, m.created_at
		FROM (%s) AS n (id)
		JOIN recall.messages AS h ON h.id = n.id
		JOIN recall.messages AS m ON m.thread_id = h.thread_id AND m.seq BETWEEN h.seq - $4 AND h.seq + $4
		ORDER BY m.created_at, m.thread_id, m.seq`
)

// scope is a resource that is searched.
type scope struct {
	size int
	// thread draws a thread of it, and says who owns that.
	thread func() (id, resource string)
	// inGraph says whether the graph has its vectors.
	inGraph bool
}

func (s scope) name(mode recall.Mode) string { return fmt.Sprintf("%s, resource of %d", mode, s.size) }

func (r *rig) searches(ctx context.Context) ([]operation, error) {
	small := scope{size: dataset.ResourceMessages, thread: func() (string, string) {
		if r.shape.Resources == 1 {
			return dataset.ThreadID(1), largeResource()
		}
		for {
			if n := 1 + anyOf(r.shape.Threads); r.shape.Owner(n) != largeResource() {
				return dataset.ThreadID(n), r.shape.Owner(n)
			}
		}
	}}
	large := scope{size: r.shape.LargeResource(), thread: func() (string, string) { return largeThread(), largeResource() }}
	const query = `SELECT count(*) > $2 FROM recall.embeddings_1 WHERE resource_id = $1`
	if err := r.conn.QueryRow(ctx, query, largeResource(), graphFrom).Scan(&large.inGraph); err != nil {
		return nil, err
	}
	all := []operation{
		r.search(small, recall.Semantic, targets{time: 3 * time.Millisecond, checkRatio: 8, checkRecall: 1}),
		r.search(small, recall.Hybrid, targets{time: 5 * time.Millisecond, checkRatio: 50}),
		r.search(small, recall.Lexical, targets{checkRatio: 30}),
		r.search(large, recall.Semantic, targets{time: 6 * time.Millisecond, checkRatio: 8, checkRecall: .97}),
		r.search(large, recall.Hybrid, targets{time: 25 * time.Millisecond, checkRatio: 50}),
		r.search(large, recall.Lexical, targets{checkRatio: 30}),
	}
	var err error
	for i, searched := range map[int]scope{0: small, 3: large} {
		if all[i].recall, err = r.quality(ctx, searched); err != nil {
			return nil, fmt.Errorf("%s: %w", all[i].name, err)
		}
	}
	return all, nil
}

// search asks a new question with each call.
func (r *rig) search(s scope, mode recall.Mode, targets targets) operation {
	nearest, query := sqlNearest, r.query
	switch {
	case mode == recall.Lexical:
		nearest = sqlByWords
	case s.inGraph:
		nearest, query = sqlNearestInGraph, r.inGraph
	}
	return operation{
		name: s.name(mode),
		http: r.recall(func() map[string]any {
			thread, _ := s.thread()
			return searching(thread, dataset.Question(anyOf), mode, around)
		}),
		sql: query(fmt.Sprintf(sqlAroundHits, nearest), func() []any {
			_, resource := s.thread()
			var asked any = dataset.Question(anyOf)
			if mode != recall.Lexical {
				asked = vectorOf(dataset.Question(anyOf), embed.Query)
			}
			return []any{resource, asked, topK, around}
		}),
		targets: targets,
	}
}

// searching is the body of a recall that only searches, in all threads of the
// thread's owner.
func searching(thread, question string, mode recall.Mode, width int) map[string]any {
	return map[string]any{
		"threadId": thread, "perPage": 0, "vectorSearchString": question,
		"threadConfig": map[string]any{"semanticRecall": map[string]any{
			"topK": topK, "messageRange": width, "scope": recall.ScopeResource, "mode": mode,
		}},
	}
}

func vectorOf(text string, kind embed.Kind) pgvector.Vector {
	vectors, err := embed.Static{}.Embed(context.Background(), []string{text}, kind)
	if err != nil {
		panic(err) // the table is in the program
	}
	return pgvector.NewVector(vectors[0])
}

// quality gives the share of the nearest messages that a search by meaning finds,
// and fails where it does not go by the graph and should, or the other way round.
func (r *rig) quality(ctx context.Context, s scope) (float64, error) {
	plan := "exact"
	if s.inGraph {
		plan = "hnsw"
	}
	found := 0
	draw := rand.New(rand.NewPCG(1, 2)).IntN //nolint:gosec // nothing is secret here
	for range qualityQuestions {
		thread, resource := s.thread()
		question := dataset.Question(draw) // the same in each run
		hits, planned, err := r.hits(ctx, thread, question)
		if err != nil {
			return 0, err
		}
		if planned != plan {
			return 0, fmt.Errorf("the plan is %q, not %q", planned, plan)
		}
		rows, err := r.conn.Query(ctx, sqlNearest, resource, vectorOf(question, embed.Query), topK)
		if err != nil {
			return 0, err
		}
		nearest, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return 0, err
		}
		for _, id := range nearest {
			if hits[id] {
				found++
			}
		}
	}
	return float64(found) / (qualityQuestions * topK), nil
}

// hits gives the ids that a search by meaning finds, and its plan.
func (r *rig) hits(ctx context.Context, thread, question string) (ids map[string]bool, plan string, err error) {
	body := searching(thread, question, recall.Semantic, 0)
	body["explain"] = true
	text, err := r.exchange(ctx, http.MethodPost, r.api.url+recallPath, encode(body))
	if err != nil {
		return nil, "", err
	}
	var answer struct {
		Messages []struct{ ID string }
		Explain  struct{ Plan string }
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, "", err
	}
	ids = make(map[string]bool)
	for _, message := range answer.Messages {
		ids[message.ID] = true
	}
	return ids, answer.Explain.Plan, nil
}

package recall

import (
	"context"
	"slices"
	"time"

	"github.com/pgrecall/pgrecall/dbgen"
)

// defaultListingPerPage is the size of a listing's page where none is given.
const defaultListingPerPage = 40

// Recall gives messages, oldest first: by default the newest 10 of the thread,
// and none but the included ones where Include is given without a page or
// filter. CodeNotFound without the thread, CodeForbidden where ResourceID does
// not own it.
func (m *Memory) Recall(ctx context.Context, in Request) (Result, error) {
	q := query{Request: in, newest: in.Direction != Ascending}
	if in.PerPage == nil {
		perPage := defaultLastMessages
		if in.LastMessages != nil {
			perPage = *in.LastMessages
		}
		if len(in.Include) > 0 && in.Page == nil && in.Cursor == nil && !in.Filter.given() {
			perPage = 0
		}
		q.PerPage = &perPage
	}
	return m.find(ctx, q)
}

// ListMessages gives messages in the direction asked for: by default the oldest
// 40 of the thread. Apart from that it is [Memory.Recall].
func (m *Memory) ListMessages(ctx context.Context, in Request) (Result, error) {
	newest := in.Direction == Descending
	q := query{Request: in, newest: newest, newestFirst: newest}
	if in.PerPage == nil {
		perPage := defaultListingPerPage
		q.PerPage = &perPage
	}
	return m.find(ctx, q)
}

// query is a request with its defaults filled in.
type query struct {
	Request
	// newest takes the page from the newest end, newestFirst gives it so.
	newest, newestFirst bool

	predicate    string
	hitPredicate string    // of the hits of a search; empty: any
	past         *position // the cursor's place
	starts       *time.Time
	ends         *time.Time
}

func (q *query) perPage() int { return *q.PerPage }

func (q *query) page() int {
	if q.Page == nil {
		return 0
	}
	return *q.Page
}

func (q *query) direction() Direction {
	if q.newest {
		return Descending
	}
	return Ascending
}

// conditions says whether rows have to be looked at to know which are meant.
func (q *query) conditions() bool {
	return len(q.Filter.Metadata) > 0 || len(q.Filter.Where) > 0 || len(q.Filter.Roles) > 0
}

// plain says that a page of a thread from its end or a cursor is all that is
// asked for.
func (q *query) plain() bool {
	return q.ThreadID != "" && q.perPage() > 0 && q.page() == 0 && !q.Filter.given() &&
		len(q.Include) == 0 && !q.KeepToolPairs && q.Search == nil
}

func (f *Filter) given() bool {
	return f.DateRange != DateRange{} || len(f.Metadata) > 0 || len(f.Where) > 0 || len(f.Roles) > 0
}

func (m *Memory) find(ctx context.Context, q query) (Result, error) {
	if err := m.checkQuery(&q); err != nil {
		return Result{}, err
	}
	found, err := m.run(ctx, &q)
	if err != nil {
		return Result{}, databaseError(err)
	}
	if q.ThreadID != "" && found.owner == "" {
		return Result{}, threadNotFound()
	}
	if q.ThreadID != "" && q.ResourceID != "" && found.owner != q.ResourceID {
		return Result{}, wrongResource()
	}
	if q.Search != nil && q.Search.CountPending {
		if err := m.countPending(ctx, &q, found); err != nil {
			return Result{}, err
		}
	}
	return q.result(found), nil
}

func (m *Memory) checkQuery(q *query) error {
	c := m.check()
	c.id("threadId", q.ThreadID)
	c.id("resourceId", q.ResourceID)
	if q.ThreadID == "" && q.ResourceID == "" {
		c.fail("threadId", "is required unless resourceId is given")
	}
	if q.perPage() != All {
		c.between("perPage", q.perPage(), 0, c.limits.PerPage)
	}
	c.between("page", q.page(), 0, c.limits.Page)
	if q.Direction != "" && q.Direction != Ascending && q.Direction != Descending {
		c.fail("orderBy.direction", "must be ASC or DESC")
	}
	if q.Cursor != nil {
		if q.Page != nil {
			c.fail("cursor", "excludes page")
		}
		q.past = c.cursor("cursor", *q.Cursor, q.direction())
	}
	c.filter(q)
	c.include(q.Include)
	if q.Search != nil {
		search := *q.Search // its defaults are filled in here
		q.Search = &search
		m.checkSearch(c, q)
	}
	return c.err()
}

func (c *checker) filter(q *query) {
	c.time("filter.dateRange.start", q.Filter.DateRange.Start)
	c.time("filter.dateRange.end", q.Filter.DateRange.End)
	q.starts, q.ends = q.Filter.DateRange.halfOpen()
	if len(q.Filter.Roles) > c.limits.MetadataPairs {
		c.fail("filter.roles", "has more than %d roles", c.limits.MetadataPairs)
	}
	for i, role := range q.Filter.Roles {
		c.requiredID(itemField("filter.roles", i, ""), role)
	}
	q.predicate = c.predicate("filter.metadata", q.Filter.Metadata, q.Filter.Where)
}

// halfOpen gives the range as starts <= createdAt < ends. createdAt is stored in
// milliseconds, so the instant after t is t and one of them.
func (r DateRange) halfOpen() (starts, ends *time.Time) {
	if r.Start != nil {
		t := ceilMillisecond(*r.Start)
		if r.StartExclusive && t.Equal(*r.Start) {
			t = t.Add(time.Millisecond)
		}
		starts = &t
	}
	if r.End != nil {
		t := ceilMillisecond(*r.End)
		if !r.EndExclusive && t.Equal(*r.End) {
			t = t.Add(time.Millisecond)
		}
		ends = &t
	}
	return starts, ends
}

func ceilMillisecond(t time.Time) time.Time {
	floor := t.Truncate(time.Millisecond)
	if floor.Equal(t) {
		return floor
	}
	return floor.Add(time.Millisecond)
}

func (c *checker) include(items []Include) {
	if len(items) > c.limits.IncludeItems {
		c.fail("include", "has more than %d items", c.limits.IncludeItems)
		return
	}
	for i, item := range items {
		c.requiredID(itemField("include", i, "id"), item.ID)
		c.id(itemField("include", i, "threadId"), item.ThreadID)
		if item.Previous != nil {
			c.between(itemField("include", i, "withPreviousMessages"), *item.Previous, 0, c.limits.ContextWidth)
		}
		if item.Next != nil {
			c.between(itemField("include", i, "withNextMessages"), *item.Next, 0, c.limits.ContextWidth)
		}
	}
}

// found is what the database gave for a query.
type found struct {
	owner   string // of the thread; empty when there is no thread
	total   int64
	hasMore bool
	rows    []foundRow // oldest first

	degraded bool        // the search had to do without the embedder
	plan     *SearchPlan // nil without a search
}

type foundRow struct {
	Message
	seq      int64
	onPage   bool
	included bool
	toolCall bool
	// contextOf and contextOffset as in Explanation.
	contextOf     string
	contextOffset int64
	hit           *Hit // nil where the message is none
}

func (m *Memory) run(ctx context.Context, q *query) (found, error) {
	switch {
	case q.plain():
		return m.runPage(ctx, q)
	case q.Search != nil:
		return m.runSearch(ctx, q)
	default:
		return m.runRecall(ctx, q)
	}
}

func (m *Memory) runPage(ctx context.Context, q *query) (found, error) {
	params := dbgen.MessagePageParams{ThreadID: q.ThreadID, Newest: q.newest, MaxRows: int64(q.perPage()) + 1, Reach: m.reach()}
	if q.past != nil {
		params.PastCreatedAt, params.PastSeq = &q.past.createdAt, q.past.seq
	}
	rows, err := m.queries.MessagePage(ctx, m.db, params)
	if err != nil || len(rows) == 0 {
		return found{}, err
	}
	out := found{owner: rows[0].OwnerID, total: rows[0].Total, hasMore: len(rows) > q.perPage()}
	if out.hasMore {
		rows = rows[:q.perPage()]
	}
	if rows[0].ID == "" {
		return out, nil
	}
	for _, row := range rows {
		out.rows = append(out.rows, foundRow{
			Message: Message{
				ID: row.ID, ThreadID: q.ThreadID, ResourceID: row.OwnerID, Role: row.Role, Type: row.Type,
				Content: row.Content, CreatedAt: row.CreatedAt.UTC(),
			},
			seq:    row.Seq,
			onPage: true,
		})
	}
	if q.newest {
		slices.Reverse(out.rows)
	}
	return out, nil
}

func (m *Memory) runRecall(ctx context.Context, q *query) (found, error) {
	params := q.params()
	params.Reach = m.reach()
	rows, err := m.queries.MessageRecall(ctx, m.db, params)
	if err != nil || len(rows) == 0 {
		return found{}, err
	}
	out := found{owner: rows[0].OwnerID, total: rows[0].Total, hasMore: rows[0].HasMore}
	if rows[0].ID == "" {
		return out, nil
	}
	for _, row := range rows {
		out.rows = append(out.rows, foundRow{
			Message: Message{
				ID: row.ID, ThreadID: row.ThreadID, ResourceID: row.ResourceID, Role: row.Role, Type: row.Type,
				Content: row.Content, CreatedAt: row.CreatedAt.UTC(),
			},
			seq: row.Seq, onPage: row.OnPage, included: row.Included, toolCall: row.ToolCall,
			contextOf: row.ContextOf, contextOffset: row.ContextOffset,
		})
	}
	return out, nil
}

func (q *query) params() dbgen.MessageRecallParams {
	params := dbgen.MessageRecallParams{
		ThreadID:      q.ThreadID,
		ResourceID:    q.ResourceID,
		Newest:        q.newest,
		StartsAt:      q.starts,
		EndsAt:        q.ends,
		HasConditions: q.conditions() && q.perPage() != 0,
		Matching:      q.predicate,
		Roles:         append([]string{}, q.Filter.Roles...),
		WithTotal:     !q.SkipTotal && q.perPage() != 0,
		KeepToolPairs: q.KeepToolPairs,
		IncludeIds:    []string{}, IncludeThreadIds: []string{}, IncludeBefore: []int64{}, IncludeAfter: []int64{},
	}
	if q.perPage() != All {
		rows := int64(q.perPage())
		params.MaxRows = &rows
		params.SkipRows = int64(q.page()) * rows
	}
	after, before := q.bounds()
	if after != nil {
		params.AfterCreatedAt, params.AfterThreadID, params.AfterSeq = &after.createdAt, after.threadID, after.seq
	}
	if before != nil {
		params.BeforeCreatedAt, params.BeforeThreadID, params.BeforeSeq = &before.createdAt, before.threadID, before.seq
	}
	for _, item := range q.Include {
		thread := item.ThreadID
		if thread == "" {
			thread = q.ThreadID
		}
		params.IncludeIds = append(params.IncludeIds, item.ID)
		params.IncludeThreadIds = append(params.IncludeThreadIds, thread)
		params.IncludeBefore = append(params.IncludeBefore, int64(valueOr(item.Previous, q.includeContext())))
		params.IncludeAfter = append(params.IncludeAfter, int64(valueOr(item.Next, q.includeContext())))
	}
	return params
}

// bounds gives the positions between which the page lies, from the date range and
// the cursor; nil where an end is open.
func (q *query) bounds() (after, before *position) {
	if q.starts != nil {
		after = &position{createdAt: *q.starts}
	}
	if q.ends != nil {
		before = &position{createdAt: *q.ends}
	}
	switch {
	case q.past == nil:
	case q.newest && (before == nil || q.past.compare(*before) < 0):
		before = q.past
	case !q.newest && (after == nil || q.past.compare(*after) > 0):
		after = q.past
	}
	return after, before
}

// includeContext is how many messages come before and after an included one where
// its item does not say.
func (q *query) includeContext() int {
	if q.Search != nil {
		return defaultSearchContext
	}
	return 0
}

func valueOr[T any](p *T, fallback T) T {
	if p == nil {
		return fallback
	}
	return *p
}

func (q *query) result(f found) Result {
	out := Result{
		PerPage: q.perPage(), HasMore: f.hasMore && q.perPage() > 0, Messages: make([]Message, len(f.rows)),
		Degraded: f.degraded, Search: f.plan,
	}
	if q.Cursor == nil {
		page := q.page()
		out.Page = &page
	}
	if !q.SkipTotal {
		total := f.total
		if q.perPage() == 0 {
			total = 0
		}
		out.Total = &total
	}
	for i := range f.rows {
		out.Messages[i] = f.rows[i].Message
		if q.Explain {
			out.Messages[i].Explain = f.rows[i].explanation()
		}
	}
	if out.HasMore {
		out.NextCursor = newCursor(q.direction(), q.lastOnPage(f.rows))
	}
	if q.newestFirst {
		slices.Reverse(out.Messages)
	}
	return out
}

// lastOnPage is the position at which the page ends, in its direction.
func (q *query) lastOnPage(rows []foundRow) position {
	var last foundRow
	for _, row := range rows {
		if row.onPage {
			last = row
			if q.newest {
				break // the oldest of a page that was taken from the newest end
			}
		}
	}
	return position{createdAt: last.CreatedAt, threadID: last.ThreadID, seq: last.seq}
}

func (r *foundRow) explanation() *Explanation {
	e := &Explanation{ContextOf: r.contextOf, Offset: int(r.contextOffset), Hit: r.hit}
	for _, reason := range []struct {
		holds bool
		name  Reason
	}{
		{r.onPage, ReasonPage},
		{r.included, ReasonInclude},
		{r.hit != nil && r.hit.Similarity != nil, ReasonSemantic},
		{r.hit != nil && r.hit.Words > 0, ReasonLexical},
		{r.contextOf != "", ReasonContext},
		{r.toolCall, ReasonToolCall},
	} {
		if reason.holds {
			e.Reasons = append(e.Reasons, reason.name)
		}
	}
	return e
}

package recall_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgvector/pgvector-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/embed/embedtest"
	"github.com/pgrecall/pgrecall/server"
)

// surface asks one memory over HTTP and in SQL.
type surface struct {
	memory
	http *httptest.Server
}

func newSurface(t *testing.T, m memory, options ...recall.Option) surface {
	served := recall.New(m.pool, recall.DefaultLimits(), options...)
	s := httptest.NewServer(server.New(served, server.Config{Logger: slog.New(slog.DiscardHandler)}))
	t.Cleanup(s.Close)
	return surface{m, s}
}

// answeredMessage is a message of an answer over HTTP.
type answeredMessage struct {
	ID      string
	Explain struct{ Rank int }
}

// post recalls over HTTP; what there is not, or is another's, is no message.
func (s surface) post(t must, body map[string]any) []answeredMessage {
	t.Helper()
	response, err := s.http.Client().Post(s.http.URL+"/api/memory/recall", "application/json", bytes.NewReader(object(body)))
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	if response.StatusCode == http.StatusNotFound || response.StatusCode == http.StatusForbidden {
		return nil
	}
	require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", object(body), text)
	var got struct{ Messages []answeredMessage }
	require.NoError(t, json.Unmarshal(text, &got))
	return got.Messages
}

// sqlCall is a call of a function in SQL with named arguments.
type sqlCall struct {
	names []string
	args  []any
}

func (c *sqlCall) set(name, kind string, value any) {
	c.args = append(c.args, value)
	c.names = append(c.names, fmt.Sprintf("%s => $%d::%s", name, len(c.args), kind))
}

func (s surface) ids(t must, function string, c sqlCall) []string {
	t.Helper()
	return column[string](t, s.memory, "SELECT id FROM recall."+function+"("+strings.Join(c.names, ", ")+")", c.args...)
}

// drawScope draws a thread, a resource or both, which mostly belong together.
func drawScope(t *rapid.T, body map[string]any, sql *sqlCall, owners map[string]string) {
	astray := rapid.IntRange(0, 19).Draw(t, "astray")
	threadID := rapid.SampledFrom(slices.Sorted(maps.Keys(owners))).Draw(t, "threadId")
	resourceID := owners[threadID]
	switch astray {
	case 0:
		threadID = "unknown"
	case 1:
		resourceID = "unknown"
	case 2:
		resourceID = owners[rapid.SampledFrom(slices.Sorted(maps.Keys(owners))).Draw(t, "other")]
	}
	kind := rapid.IntRange(0, 2).Draw(t, "scope")
	if kind <= 1 {
		body["threadId"] = threadID
		sql.set("thread_id", "text", threadID)
	}
	if kind >= 1 {
		body["resourceId"] = resourceID
		sql.set("resource_id", "text", resourceID)
	}
}

// drawFilters draws what restricts a page or hits, of which some is said in each
// step of time.
func drawFilters(t *rapid.T, body map[string]any, sql *sqlCall, wanted *rapid.Generator[map[string]any], step time.Duration) {
	filter, dates := map[string]any{}, map[string]any{}
	may := func(part string) bool { return rapid.IntRange(0, 2).Draw(t, part+"?") == 0 }
	if may("metadata") {
		filter["metadata"] = wanted.Draw(t, "metadata")
		sql.set("metadata", "jsonb", object(filter["metadata"]))
	}
	if may("roles") {
		filter["roles"] = rapid.SliceOfN(rapid.SampledFrom([]string{"user", "assistant", "tool"}), 0, 2).Draw(t, "roles")
		sql.set("roles", "text[]", filter["roles"])
	}
	times := func(from, to int) *rapid.Generator[time.Time] {
		return rapid.Map(rapid.IntRange(from, to), func(n int) time.Time { return epoch.Add(time.Duration(n) * step / 1000) })
	}
	if may("start") {
		start := times(-1000, 6000).Draw(t, "start")
		dates["start"] = start
		sql.set("starts_at", "timestamptz", start)
	}
	if may("end") {
		end := times(2000, 9500).Draw(t, "end")
		dates["end"], dates["endExclusive"] = end, true
		sql.set("ends_at", "timestamptz", end)
	}
	if len(dates) > 0 {
		filter["dateRange"] = dates
	}
	if len(filter) > 0 {
		body["filter"] = filter
	}
}

func (c *conversation) drawBoth(t *rapid.T) (map[string]any, sqlCall) {
	body, sql := map[string]any{}, sqlCall{}
	drawScope(t, body, &sql, c.owners)
	if rapid.Bool().Draw(t, "filtered") {
		drawFilters(t, body, &sql, pairs(), time.Millisecond)
	}
	if perPage := optional(t, "perPage", rapid.SampledFrom([]int{recall.All, 50, 5, 3, 2, 1, 0})); perPage != nil {
		body["perPage"] = *perPage
		if *perPage == recall.All {
			body["perPage"] = false
		}
		sql.set("per_page", "bigint", *perPage)
	}
	if page := optional(t, "page", rapid.IntRange(0, 3)); page != nil {
		body["page"] = *page
		sql.set("page", "bigint", *page)
	}
	if rapid.IntRange(0, 2).Draw(t, "ascending") == 0 {
		body["orderBy"] = map[string]any{"field": "createdAt", "direction": "ASC"}
		sql.set("newest", "boolean", false)
	}
	if rapid.Bool().Draw(t, "keepToolPairs") {
		body["keepToolPairs"] = true
		sql.set("keep_tool_pairs", "boolean", true)
	}
	c.drawIncludes(t, body, &sql)
	return body, sql
}

func (c *conversation) drawIncludes(t *rapid.T, body map[string]any, sql *sqlCall) {
	ids := []string{}
	for range rapid.SampledFrom([]int{0, 0, 1, 2, 5}).Draw(t, "includes") {
		ids = append(ids, c.drawInclude(t).ID)
	}
	if len(ids) == 0 && rapid.Bool().Draw(t, "none") {
		return
	}
	before, after := rapid.IntRange(0, 3).Draw(t, "before"), rapid.IntRange(0, 3).Draw(t, "after")
	items := []any{}
	for _, id := range ids {
		items = append(items, map[string]any{"id": id, "withPreviousMessages": before, "withNextMessages": after})
	}
	body["include"] = items
	sql.set("include", "text[]", ids)
	sql.set("before", "bigint", before)
	sql.set("after", "bigint", after)
}

func TestTheSameRecallGivesTheSameOverHTTPAndInSQL(t *testing.T) {
	t.Parallel()
	s := newSurface(t, newMemory(t))
	asked, answered := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c := drawConversation(t, s.memory)
		for range 4 {
			body, sql := c.drawBoth(t)
			want := []string{}
			for _, message := range s.post(t, body) {
				want = append(want, message.ID)
			}
			require.Equal(t, want, append([]string{}, s.ids(t, "recall", sql)...), "%s", object(body))
			asked, answered = asked+1, answered+min(1, len(want))
		}
		c.requireContext(t, s)
	})
	require.Greater(t, 3*answered, asked, "requests with an answer")
}

// requireContext compares context with what including the messages gives.
func (c *conversation) requireContext(t *rapid.T, s surface) {
	owner := rapid.SampledFrom(c.resources).Draw(t, "owner")
	body, sql := map[string]any{"resourceId": owner, "perPage": 0}, sqlCall{}
	c.drawIncludes(t, body, &sql)
	want := []string{}
	for _, message := range s.post(t, body) {
		want = append(want, message.ID)
	}
	sql.set("resource_id", "text", owner)
	for i := range sql.names {
		sql.names[i] = strings.Replace(sql.names[i], "include =>", "message_ids =>", 1)
	}
	if len(sql.names) == 1 {
		sql.set("message_ids", "text[]", []string{})
	}
	require.Equal(t, want, append([]string{}, s.ids(t, "context", sql)...), "%s", object(body))
}

func TestTheSamePairsAreTheSamePredicateInSQL(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	rapid.Check(t, func(t *rapid.T) {
		wanted := pairs().Draw(t, "metadata")
		var compiled, inSQL string
		m.scan(t, `SELECT $1::text::jsonpath::text, coalesce(recall.metadata_predicate($2::jsonb), '1 == 1')::text`,
			[]any{recall.MetadataPredicate(wanted), object(wanted)}, &compiled, &inSQL)
		require.Equal(t, compiled, inSQL)
	})
}

// askable are vectors for questions that an embedder knows.
func askable() (embedder embed.Embedder, vectors []embed.Vector) {
	known := map[string]embed.Vector{}
	for i := range 9 * 9 {
		vector := embed.Vector{float32(i%9-4) / 8, float32(i/9-4) / 8, 1. / 8, -3. / 8}
		known["vector "+strconv.Itoa(i)] = vector
		vectors = append(vectors, vector)
	}
	return embedtest.NewFixed(4, known), vectors
}

func TestTheSameSearchFindsTheSameOverHTTPAndInSQL(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	table := m.useIndex(t, 4, true)
	embedder, vectors := askable()
	s := newSurface(t, m, recall.WithEmbedder(embedder))
	asked, answered := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		own := prefix()
		threads := []string{own + "b", own + "a", own + "c"}
		var all []*scoredMessage
		for i := range rapid.SampledFrom([]int{30, 20, 10, 3}).Draw(t, "messages") {
			all = append(all, drawScored(t, own, i, threads))
		}
		s.store(t, table, all)
		for range 3 {
			body, sql := map[string]any{"perPage": 0, "explain": true}, sqlCall{}
			drawScope(t, body, &sql, map[string]string{own + "b": own + "ana", own + "a": own + "ana", own + "c": own + "bob"})
			if rapid.Bool().Draw(t, "filtered") {
				drawFilters(t, body, &sql, rapid.Just(map[string]any{"k": 1}), 7*time.Hour)
			}
			found := map[string]any{"topK": rapid.SampledFrom([]int{1, 2, 3, 5, 50}).Draw(t, "topK"), "mode": "lexical", "scope": "thread"}
			if body["threadId"] == nil {
				found["scope"] = "resource"
			}
			sql.set("top_k", "integer", found["topK"])
			function := "search"
			if i := rapid.IntRange(-len(vectors), len(vectors)-1).Draw(t, "vector"); i >= 0 {
				function, found["mode"], body["vectorSearchString"] = "nearest", "semantic", "vector "+strconv.Itoa(i)
				sql.set("embedding", "vector", pgvector.NewVector(vectors[i]))
				if threshold := optional(t, "threshold", rapid.SampledFrom([]float64{-1, 0, .1, .25})); threshold != nil {
					found["threshold"] = *threshold
					sql.set("threshold", "double precision", *threshold)
				}
			} else {
				question := phrases(1, 5).Draw(t, "question")
				body["vectorSearchString"] = question
				sql.set("query", "text", question)
			}
			body["threadConfig"] = map[string]any{"semanticRecall": found}
			want := s.ranked(t, body)
			require.Equal(t, want, append([]string{}, s.ids(t, function, sql)...), "%s", object(body))
			asked, answered = asked+1, answered+min(1, len(want))
		}
	})
	require.Greater(t, 3*answered, asked, "searches with hits")
}

// ranked gives the hits of a search over HTTP, best first.
func (s surface) ranked(t must, body map[string]any) []string {
	messages := slices.DeleteFunc(s.post(t, body), func(m answeredMessage) bool { return m.Explain.Rank == 0 })
	slices.SortFunc(messages, func(a, b answeredMessage) int { return a.Explain.Rank - b.Explain.Rank })
	ids := []string{}
	for _, message := range messages {
		ids = append(ids, message.ID)
	}
	return ids
}

func TestSimilarMessagesAreTheNearestToItsVector(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	table := m.useIndex(t, 4, true)
	s := surface{memory: m}
	rapid.Check(t, func(t *rapid.T) {
		own := prefix()
		var all []*scoredMessage
		for i := range rapid.IntRange(1, 12).Draw(t, "messages") {
			all = append(all, drawScored(t, own, i, []string{own + "b", own + "a", own + "c"}))
		}
		s.store(t, table, all)
		asked := rapid.SampledFrom(all).Draw(t, "message")
		want := []string{}
		if len(asked.vectors) > 0 {
			want = column[string](t, m, `SELECT id FROM recall.nearest($1::vector, resource_id => $2, top_k => 100)`, pgvector.NewVector(asked.vectors[0]), asked.ResourceID)
			want = slices.DeleteFunc(want, func(id string) bool { return id == asked.ID })
		}
		got := column[string](t, m, `SELECT id FROM recall.similar_to($1, top_k => 100)`, asked.ID)
		require.Equal(t, append([]string{}, want...), append([]string{}, got...))
		few := column[string](t, m, `SELECT id FROM recall.similar_to($1, top_k => 2)`, asked.ID)
		require.Subset(t, append([]string{}, got...), append([]string{}, few...))
		require.Len(t, few, min(2, len(got)))
	})
	require.Empty(t, column[string](t, m, `SELECT id FROM recall.similar_to('unknown')`))
}

func TestACallInSQLThatCannotBeMeantIsRefused(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, series("m", 3, recall.NewMessage{})...)
	for query, says := range map[string]string{
		`recall.recall()`:      "thread_id or resource_id is required",
		`recall.search('tea')`: "thread_id or resource_id is required",
		`recall.recall(thread_id => 'thread', metadata => '{"k": [1]}')`:     "metadata.k must be a string, a number, a boolean or null",
		`recall.recall(thread_id => 'thread', metadata => '[]')`:             "",
		`recall.recall(thread_id => 'thread', per_page => -2)`:               "",
		`recall.recall(thread_id => 'thread', page => -1)`:                   "",
		`recall.nearest('[1,2]', resource_id => 'ana')`:                      "with 2 dimensions",
		`recall.search('tea', resource_id => 'ana', metadata => '{"k":{}}')`: "metadata.k must be",
	} {
		_, err := m.pool.Exec(ctx, "SELECT * FROM "+query)
		require.ErrorContains(t, err, says, query)
	}
}

package db_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/embed/embedtest"
)

// The searches are PL/pgSQL, whose plans EXPLAIN does not show. What they read is
// seen by what PostgreSQL counts of each table and index.

const (
	searchedDimensions = 16
	hugeMessages       = 8000 // beyond what a search by meaning compares one by one
	smallMessages      = 60
	smallUsers         = 100
	// tailMessages are those of a user whose ids come after all others', enough of
	// all that a walk in the order of ids would seem short.
	tailMessages = 3000
	sampled      = 200 // vectors of a scope, of each part of its index, for their mean
	searchRuns   = 10
)

// insertSearched fills the tables with one huge user among small ones, and a large
// one whose ids come last; the huge one's vectors are in the graph, and a third of
// the last one's.
const insertSearched = `
	WITH owner AS (
		SELECT CASE WHEN u = 0 THEN 'huge' ELSE 'small' || u END AS id, CASE WHEN u = 0 THEN $1::integer ELSE $2::integer END AS n
		FROM generate_series(0, $3::integer) AS u
		UNION ALL
		SELECT 'tail', $4
	),
	thread AS (
		INSERT INTO recall.threads (id, resource_id, message_count, last_seq, created_at, updated_at)
		SELECT o.id, o.id, o.n, o.n, now(), now() FROM owner AS o
	),
	message AS (
		INSERT INTO recall.messages (id, thread_id, resource_id, seq, role, content, created_at, updated_at)
		SELECT o.id || '-' || i, o.id, o.id, i, 'user',
			jsonb_build_object('content', 'note ' || i || ' about topic' || i % 500, 'metadata', jsonb_build_object('n', i)), now(), now()
		FROM owner AS o CROSS JOIN LATERAL generate_series(1, o.n) AS i
		RETURNING id, thread_id, seq
	)
	INSERT INTO recall.embeddings_2 (message_id, chunk, thread_id, resource_id, text_hash, embedding, in_graph)
	SELECT m.id, 0, m.thread_id, m.thread_id, '',
		l2_normalize((SELECT array_agg(sin(m.seq * 12.9898 + i * 78.233) + CASE WHEN i = 1 AND m.thread_id = 'huge' THEN 2 ELSE 0 END)
			FROM generate_series(1, 16) AS i)::vector),
		m.thread_id = 'huge' OR (m.thread_id = 'tail' AND m.seq % 3 = 0)
	FROM message AS m`

// searched makes such a database, with statistics as they may be.
func searched(t *testing.T, statistics string) string {
	url := dbtest.URL(t)
	conn := connect(t, url)
	exec(t, conn, `UPDATE recall.embedding_indexes SET state = 'retired'`)
	exec(t, conn, `INSERT INTO recall.embedding_indexes (name, model, dimensions, state, created_at) VALUES ('fixed', 'fixed', $1, 'live', now())`, searchedDimensions)
	exec(t, conn, `SELECT recall.create_embedding_table(i) FROM recall.embedding_indexes AS i WHERE i.state = 'live'`)
	tables := []string{"threads", "messages", "embeddings_2"}
	for _, table := range tables {
		exec(t, conn, "ALTER TABLE recall."+table+" SET (autovacuum_enabled = off)")
	}
	if statistics == "of a small table" {
		exec(t, conn, `INSERT INTO recall.threads (id, resource_id, created_at, updated_at) VALUES ('few', 'few', now(), now())`)
		exec(t, conn, insertPlain+`('few', 'few', 'few', 1, 'user', '{"content": "note"}', now(), now())`)
		exec(t, conn, "ANALYZE recall.threads, recall.messages, recall.embeddings_2")
	}
	// The foreign keys' triggers would look up each row.
	exec(t, conn, "SET session_replication_role = replica")
	exec(t, conn, insertSearched, hugeMessages, smallMessages, smallUsers, tailMessages)
	exec(t, conn, "RESET session_replication_role")
	if statistics == "fresh" {
		exec(t, conn, "VACUUM (ANALYZE) recall.threads, recall.messages, recall.embeddings_2")
	}
	return url
}

// reads is what was read of each table by scanning it, and of each index: how
// often, and how many entries.
type reads map[string]int

func readsOf(t *testing.T, pool *pgxpool.Pool) reads {
	_, err := pool.Exec(t.Context(), `SELECT pg_stat_force_next_flush()`)
	require.NoError(t, err)
	rows, err := pool.Query(t.Context(), `
		SELECT 'seq scans of ' || relname, seq_scan FROM pg_stat_user_tables WHERE schemaname = 'recall' AND relname <> 'embedding_indexes'
		UNION ALL
		SELECT 'scans of ' || indexrelname, idx_scan FROM pg_stat_user_indexes WHERE schemaname = 'recall' AND relname <> 'embedding_indexes'
		UNION ALL
		SELECT 'entries of ' || indexrelname, idx_tup_read FROM pg_stat_user_indexes WHERE schemaname = 'recall' AND relname <> 'embedding_indexes'`)
	require.NoError(t, err)
	counted := reads{}
	var name string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&name, &n}, func() error { counted[name] = n; return nil })
	require.NoError(t, err)
	return counted
}

func (r reads) since(before reads) reads {
	difference := reads{}
	for name, n := range r {
		if n > before[name] {
			difference[name] = n - before[name]
		}
	}
	return difference
}

func (r reads) String() string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		lines = append(lines, name+": "+strconv.Itoa(r[name]))
	}
	return strings.Join(lines, ", ")
}

func TestSearchesReadByIndexHoweverOftenTheyRun(t *testing.T) {
	t.Parallel()
	axis := make(embed.Vector, searchedDimensions)
	axis[0] = 1
	fixed := embedtest.NewFixed(searchedDimensions, map[string]embed.Vector{"note about topic7": axis})
	search := func(mode recall.Mode) *recall.Search {
		return &recall.Search{Question: "note about topic7", TopK: 5, Mode: mode}
	}
	filter := recall.Filter{Where: map[string]any{"n": map[string]any{"$lte": 40}}}
	const (
		scope = "scans of embeddings_2_resource_idx"
		graph = "scans of embeddings_2_hnsw_idx"
		words = "scans of messages_content_idx"
	)
	for _, statistics := range []string{"none", "of a small table", "fresh"} {
		t.Run("statistics "+statistics, func(t *testing.T) {
			t.Parallel()
			url := searched(t, statistics)
			pool := searchPool(t, url)
			memory := recall.New(pool, recall.DefaultLimits(), recall.WithEmbedder(fixed))
			for _, c := range []struct {
				name     string
				request  recall.Request
				plan     string
				read     []string // these, once a run at least
				unread   []string
				entries  int // of the indexes on vectors, a run
				messages int // of those on messages
			}{
				{"small, by meaning", recall.Request{ResourceID: "small7", Search: search(recall.Semantic)}, "exact",
					[]string{scope}, []string{graph}, smallMessages + 20, 200},
				{"small, hybrid", recall.Request{ResourceID: "small7", Search: search(recall.Hybrid)}, "exact",
					[]string{scope, words}, []string{graph}, 3*smallMessages + 20, 12 * smallMessages},
				{"small, by words", recall.Request{ResourceID: "small7", Search: search(recall.Lexical)}, "",
					[]string{words}, []string{graph, scope}, 2*smallMessages + 20, 12 * smallMessages},
				{"small, filtered", recall.Request{ResourceID: "small7", Search: search(recall.Semantic), Filter: filter}, "exact",
					[]string{words}, []string{graph}, 3 * smallMessages, 8 * smallMessages},
				{"a small thread", recall.Request{ThreadID: "small7", Search: &recall.Search{
					Question: "note about topic7", Mode: recall.Semantic, Scope: recall.ScopeThread,
				}}, "exact", nil, []string{graph}, smallMessages + 20, 200},
				{"huge, by meaning", recall.Request{ResourceID: "huge", Search: search(recall.Semantic)}, "hnsw",
					[]string{graph}, nil, 400, 200},
				{"huge, filtered", recall.Request{ResourceID: "huge", Search: search(recall.Semantic), Filter: filter}, "exact",
					nil, []string{graph}, hugeMessages + 200, 3*hugeMessages + 400},
				{"huge, hybrid", recall.Request{ResourceID: "huge", Search: search(recall.Hybrid)}, "exact",
					[]string{scope, words}, []string{graph}, 2*hugeMessages + 1000, 2*hugeMessages + 4000},
				{"the last ids, hybrid", recall.Request{ResourceID: "tail", Search: search(recall.Hybrid)}, "exact",
					[]string{scope, words}, []string{graph}, tailMessages + 2*sampled + 400, 3*tailMessages + 4000},
				{"the last ids, hybrid in a thread", recall.Request{ThreadID: "tail", Search: &recall.Search{
					Question: "note about topic7", Scope: recall.ScopeThread,
				}}, "exact", []string{words}, []string{graph}, tailMessages + sampled + 400, 3*tailMessages + 4000},
			} {
				before := readsOf(t, pool)
				c.request.PerPage = ptr(0)
				for range searchRuns {
					result, err := memory.Recall(t.Context(), c.request)
					require.NoError(t, err)
					require.NotEmpty(t, result.Messages)
					require.Equal(t, c.plan, result.Search.Plan, c.name)
				}
				read := readsOf(t, pool).since(before)
				name := c.name + ": " + read.String()
				for _, table := range []string{"messages", "embeddings_2", "threads"} {
					assert.Zero(t, read["seq scans of "+table], "%s: scans %s", name, table)
				}
				for _, index := range c.read {
					assert.GreaterOrEqual(t, read[index], searchRuns, "%s: %s", name, index)
				}
				for _, index := range c.unread {
					assert.Zero(t, read[index], "%s: %s", name, index)
				}
				vectors, messages := 0, 0
				for index, n := range read {
					switch {
					case strings.HasPrefix(index, "entries of embeddings_2"):
						vectors += n
					case strings.HasPrefix(index, "entries of messages"):
						messages += n
					}
				}
				assert.LessOrEqual(t, vectors, c.entries*searchRuns, name)
				assert.LessOrEqual(t, messages, c.messages*searchRuns, name)
			}
		})
	}
}

// searchPool gives a pool of one connection that plans as the program's do.
func searchPool(t *testing.T, url string) *pgxpool.Pool {
	config := dbtest.Open(t, url).Config()
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

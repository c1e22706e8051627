package db_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/bench/dataset"
	"github.com/pgrecall/pgrecall/db"
	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
)

// foreign is in all that is another's: ids, titles, texts, metadata, working memory.
const foreign = "zebra"

// twoUsers gives a database with data of "mine" and of another user, and a role that
// is bound to "mine".
func twoUsers(t *testing.T) (address string, owner *pgx.Conn, bound role) {
	address = dbtest.URL(t)
	owner = connect(t, address)
	memory := recall.New(dbtest.Open(t, address), recall.DefaultLimits(), recall.WithEmbedder(embed.Static{}))
	for _, user := range []string{"mine", foreign} {
		var messages []recall.NewMessage
		for i := range 5 {
			messages = append(messages, recall.NewMessage{
				ID: fmt.Sprintf("%s-%d", user, i), ThreadID: user + "-thread", ResourceID: user, Role: "user",
				Content: fmt.Appendf(nil, `{"format":2,"parts":[{"type":"text","text":"%[1]s drinks tea"}],"metadata":{"of":"%[1]s"}}`, user),
			})
		}
		_, err := memory.SaveMessages(t.Context(), messages, true)
		require.NoError(t, err)
		_, err = memory.UpdateWorkingMemory(t.Context(), recall.WorkingMemoryUpdate{
			WorkingMemoryOf: recall.WorkingMemoryOf{ThreadID: user + "-thread", Config: recall.WorkingMemoryConfig{Scope: recall.ScopeThread}},
			Text:            ptr(user + " likes tea"),
		})
		require.NoError(t, err)
	}
	exec(t, owner, "ANALYZE")
	bound = createRole(t, owner, address, "bound")
	for range 2 {
		require.NoError(t, db.CreateBoundAnalyst(t.Context(), address, nameOf(bound), "mine"))
	}
	return address, owner, bound
}

// shown gives the rows of a query as text, and its error.
func shown(t *testing.T, conn *pgx.Conn, query string) ([]string, error) {
	rows, err := conn.Query(t.Context(), query)
	require.NoError(t, err)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func requireDenied(t *testing.T, conn *pgx.Conn, statement string) {
	t.Helper()
	_, err := conn.Exec(t.Context(), statement)
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused, statement)
	assert.Equal(t, "42501", refused.Code, "%s: %s", statement, refused.Message)
	assert.NotContains(t, refused.Message+refused.Detail+refused.Hint, foreign)
}

func TestABoundAnalystSeesNothingOfOthers(t *testing.T) {
	t.Parallel()
	address, owner, bound := twoUsers(t)
	// Whatever else is granted to it, later too.
	exec(t, owner, "GRANT SELECT ON recall.working_memories, recall.working_memory_versions TO "+bound.name)
	member := createRole(t, owner, address, "member")
	exec(t, owner, "GRANT "+bound.name+" TO "+member.name)
	// An index that is made after it.
	memory := recall.New(dbtest.Open(t, address), recall.DefaultLimits())
	_, err := memory.CreateIndex(t.Context(), recall.NewIndex{Name: "later", Model: "later", Dimensions: 256})
	require.NoError(t, err)
	exec(t, owner, "INSERT INTO recall.embeddings_2 SELECT * FROM recall.embeddings_1")

	for _, as := range []role{bound, member} {
		conn := connect(t, as.url)
		for _, relation := range texts(t, owner, `
			SELECT c.oid::regclass::text FROM pg_class AS c WHERE c.relnamespace = 'recall'::regnamespace AND c.relkind IN ('r', 'p', 'v')`) {
			rows, err := shown(t, conn, "SELECT x::text FROM "+relation+" AS x")
			if err != nil {
				requireDenied(t, conn, "SELECT FROM "+relation)
			}
			assert.NotContains(t, strings.Join(rows, "\n"), foreign, relation)
		}
		for _, own := range []string{
			"recall.threads", "recall.messages", "recall.embeddings_1", "recall.embeddings_2", "recall.working_memories",
			"recall.message_text", "recall.thread_summary", "recall.daily_activity",
			"recall.recall('mine-thread')", "recall.search('tea', resource_id => 'mine')", "recall.similar_to('mine-1')",
		} {
			rows, err := shown(t, conn, "SELECT x::text FROM "+own+" AS x")
			require.NoError(t, err, own)
			assert.NotEmpty(t, rows, own)
		}
		coverage, err := shown(t, conn, "SELECT embedded || ' ' || missing FROM recall.embedding_coverage")
		require.NoError(t, err)
		assert.Equal(t, []string{"5 0", "5 0"}, coverage)
		lessFunctions(t, conn)
		withoutLeaks(t, address, as)
	}
}

// lessFunctions calls all functions that an analyst may, about another's data.
func lessFunctions(t *testing.T, conn *pgx.Conn) {
	const vector, index = "array_fill(1, ARRAY[256])::vector", "(SELECT i FROM recall.embedding_indexes AS i WHERE id = 1)"
	calls := map[string]string{
		"recall":              "recall.recall('zebra-thread')",
		"context":             "recall.context('{zebra-1,zebra-2}')",
		"search":              "recall.search('tea', 'zebra-thread')",
		"nearest":             "recall.nearest(" + vector + ", resource_id => 'zebra')",
		"similar_to":          "recall.similar_to('zebra-1', resource_id => 'zebra')",
		"hits":                "recall.hits('lexical', 'tea', NULL, NULL, NULL, 'zebra', 4, NULL, NULL, NULL, NULL, NULL)",
		"context_positions":   "recall.context_positions('zebra-thread', '-infinity', 0, 0, 9)",
		"search_positions":    "recall.search_positions('', 'zebra', 'lexical', 'tea', NULL, '', '', 4, NULL, '{}', NULL, '-infinity', 'infinity')",
		"nearest_messages":    "recall.nearest_messages('', 'zebra', 5, 1::smallint, " + vector + ", 4, 100, false, '{}', NULL, NULL, '-infinity', 'infinity')",
		"unembedded_messages": "recall.unembedded_messages(" + index + ", 'z', 9)",
		"embedded_messages":   "recall.embedded_messages(" + index + ", '{zebra-1}', (SELECT array_agg(text_hash) FROM recall.embeddings_1))",
		"graph_backlog":       "recall.graph_backlog(" + index + ")",
	}
	for name, query := range calls {
		rows, err := shown(t, conn, "SELECT x::text FROM "+query+" AS x")
		require.NoError(t, err, name)
		assert.Empty(t, rows, name)
	}
	for query, want := range map[string]string{
		"SELECT recall.pending_embeddings(" + index + ", '', 'zebra')::text":                                              "0",
		"SELECT coalesce(recall.message_vector(" + index + ", 'zebra-1')::text, 'none')":                                  "none",
		"SELECT sum(share)::text FROM recall.question_lexemes('english', 'zebra drinks tea', true)":                       "0",
		"SELECT count(*)::text FROM recall.recall('mine-thread', include => '{zebra-1}', before => 9) WHERE id ~ 'zebra'": "0",
		"SELECT count(*)::text FROM recall.recall_positions('zebra-thread', '', true, 9, 0, '-infinity', 'infinity', '-infinity', '', 0, 'infinity', '', 0, false, NULL, '{}', true, '{}', '{}', '{}', '{}', false) WHERE total > 0 OR seq > 0": "0",
		"SELECT count(*)::text FROM pg_stats WHERE schemaname = 'recall' AND tablename IN ('messages', 'threads')":                                                                                                                              "0",
	} {
		rows, err := shown(t, conn, query)
		require.NoError(t, err, query)
		assert.Equal(t, []string{want}, rows, query)
	}
	requireDenied(t, conn, "SELECT * FROM recall.held('zebra')")
	// The rest of what it may execute reads nothing but its arguments.
	pure := texts(t, conn, `
		SELECT p.proname::text FROM pg_proc AS p
		WHERE p.pronamespace = 'recall'::regnamespace AND has_function_privilege(p.oid, 'EXECUTE') AND p.provolatile <> 'i'`)
	for _, name := range pure {
		switch name {
		case "held", "pending_embeddings", "message_vector", "question_lexemes", "recall_positions", "index_coverage", "metadata_predicate", "refuse":
		default:
			assert.Contains(t, calls, name, "may be executed and is not tried here")
		}
	}
}

// withoutLeaks asks with a function that tells what it sees, and is so cheap that it
// would be called first.
func withoutLeaks(t *testing.T, address string, as role) {
	config, err := pgx.ParseConfig(as.url)
	require.NoError(t, err)
	var told []string
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) { told = append(told, notice.Message) }
	conn, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	defer conn.Close(context.Background())
	exec(t, conn, `CREATE FUNCTION pg_temp.tell(said text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001
		AS $$ BEGIN RAISE NOTICE '%', said; RETURN true; END $$`)
	for _, relation := range []string{
		"messages", "threads", "embeddings_1", "message_text", "thread_summary", "daily_activity", "recall('mine-thread')", "search('tea', resource_id => 'mine')",
	} {
		exec(t, conn, "SELECT FROM recall."+relation+" AS x WHERE pg_temp.tell(x::text)")
	}
	assert.NotEmpty(t, told)
	assert.NotContains(t, strings.Join(told, "\n"), foreign)
	// Without row-level security there is no answer.
	exec(t, conn, "SET row_security = off")
	requireDenied(t, conn, "SELECT FROM recall.messages")
}

func TestAnalystsChangeNothingAndBecomeNobodyElse(t *testing.T) {
	t.Parallel()
	address, owner, bound := twoUsers(t)
	require.NoError(t, db.CreateAnalyst(t.Context(), address))
	all := createRole(t, owner, address, "all")
	exec(t, owner, "GRANT "+db.AnalystRole+" TO "+all.name)
	rows, err := shown(t, connect(t, all.url), "SELECT DISTINCT resource_id FROM recall.message_text ORDER BY 1")
	require.NoError(t, err)
	assert.Equal(t, []string{"mine", foreign}, rows, "recall_analyst reads all")

	for _, as := range []role{bound, all} {
		conn := connect(t, as.url)
		for _, table := range texts(t, owner, `SELECT c.oid::regclass::text FROM pg_class AS c WHERE c.relnamespace = 'recall'::regnamespace AND (c.relkind = 'r' OR c.relname IN ('message_text', 'thread_summary'))`) {
			requireDenied(t, conn, "INSERT INTO "+table+" DEFAULT VALUES")
			requireDenied(t, conn, "DELETE FROM "+table)
		}
		for _, statement := range []string{
			"UPDATE recall.messages SET role = 'user'", "TRUNCATE recall.threads CASCADE", "CREATE TABLE recall.mine (id text)",
			"CREATE FUNCTION recall.unnest(text[]) RETURNS text LANGUAGE sql AS 'SELECT 1'", "SELECT recall.new_id()",
			"SELECT recall.drop_embedding_table(i) FROM recall.embedding_indexes AS i", "SELECT recall.copy_policies('recall.threads')",
			"ALTER TABLE recall.messages DISABLE ROW LEVEL SECURITY", "DROP POLICY everyone ON recall.messages",
			"SELECT FROM recall.agents", "SELECT FROM recall.idempotency_keys", "SELECT FROM recall.river_job", "SELECT FROM recall.api_keys",
			"SELECT nextval('recall.river_job_id_seq')", "SELECT last_value FROM recall.river_job_id_seq",
			"COPY recall.messages TO PROGRAM 'true'",
		} {
			requireDenied(t, conn, statement)
		}
	}
	conn := connect(t, bound.url)
	requireDenied(t, conn, "SET ROLE "+db.AnalystRole)
	requireDenied(t, conn, "SET SESSION AUTHORIZATION "+all.name)
	requireDenied(t, conn, "ALTER ROLE "+bound.name+" BYPASSRLS")
	assert.Empty(t, texts(t, owner, `
		SELECT p.oid::regprocedure::text FROM pg_proc AS p
		WHERE p.pronamespace = 'recall'::regnamespace AND EXISTS (
			SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS a WHERE a.grantee = 0
		)`), "functions that anybody may execute")
	assert.Empty(t, texts(t, owner, `
		SELECT p.oid::regprocedure::text FROM pg_proc AS p
		WHERE p.pronamespace = 'recall'::regnamespace AND p.provolatile = 'v' AND has_function_privilege($1::text, p.oid, 'EXECUTE')`, nameOf(bound)),
		"functions that write")
}

func TestARoleWithOtherWaysToTheDataIsNotBound(t *testing.T) {
	t.Parallel()
	address, owner, bound := twoUsers(t)
	other := createRole(t, owner, address, "other")
	for _, way := range []struct{ give, take string }{
		{"ALTER ROLE %s BYPASSRLS", "ALTER ROLE %s NOBYPASSRLS"},
		{"ALTER ROLE %s SUPERUSER", "ALTER ROLE %s NOSUPERUSER"},
		{"GRANT INSERT ON recall.messages TO %s", "REVOKE INSERT ON recall.messages FROM %s"},
		{"GRANT pg_read_all_data TO %s", "REVOKE pg_read_all_data FROM %s"},
		{"GRANT " + bound.name + " TO %s", "REVOKE " + bound.name + " FROM %s"},
	} {
		exec(t, owner, fmt.Sprintf(way.give, other.name))
		require.ErrorContains(t, db.CreateBoundAnalyst(t.Context(), address, nameOf(other), "mine"), "other ways to the data", way.give)
		exec(t, owner, fmt.Sprintf(way.take, other.name))
	}
	require.ErrorContains(t, db.CreateBoundAnalyst(t.Context(), address, nameOf(bound), foreign), "bound to another resource")
	require.ErrorContains(t, db.CreateBoundAnalyst(t.Context(), other.url, "x", "mine"), "administrator")
}

func TestADroppedRoleLeavesNothing(t *testing.T) {
	t.Parallel()
	address, owner, bound := twoUsers(t)
	second := createRole(t, owner, address, "second")
	require.NoError(t, db.CreateBoundAnalyst(t.Context(), address, nameOf(second), `o'hara\`))
	policies := func() []string {
		return texts(t, owner, `SELECT DISTINCT policyname::text FROM pg_policies WHERE schemaname = 'recall' ORDER BY 1`)
	}
	assert.ElementsMatch(t, []string{"everyone", nameOf(bound), nameOf(second)}, policies())
	// What another database or owner depends on keeps the role, and nothing else.
	exec(t, owner, "CREATE TABLE public.his (id text); ALTER TABLE public.his OWNER TO "+second.name)
	kept, err := db.DropRole(t.Context(), address, nameOf(second))
	require.NoError(t, err)
	assert.Contains(t, kept, "table his")
	assert.ElementsMatch(t, []string{"everyone", nameOf(bound)}, policies())
	requireDenied(t, connect(t, second.url), "SELECT FROM recall.messages")

	exec(t, owner, "DROP TABLE public.his")
	kept, err = db.DropRole(t.Context(), address, nameOf(bound))
	require.NoError(t, err)
	assert.Empty(t, kept)
	assert.Empty(t, policies())
	assert.Empty(t, texts(t, owner, `SELECT relname::text FROM pg_class WHERE relnamespace = 'recall'::regnamespace AND relrowsecurity`))
	exec(t, owner, "CREATE ROLE "+bound.name) // for the clean-up
}

// planShapes explains the server's statements under a role.
func planShapes(t *testing.T, url, mode string) map[string]string {
	explainer := dbtest.NewExplainer(t, 1)
	pool := explained(t, url, true, mode, explainer)
	memory := recall.New(pool, recall.DefaultLimits())
	shapes := map[string]string{}
	for _, list := range [][]operation{pages(t, memory), filters(t, memory), includes(t, memory), threadLists(), writes()} {
		explainer.Take()
		for _, operation := range list {
			require.NoError(t, operation.do(t.Context(), memory), operation.name)
			for i, statement := range explainer.Take() {
				shapes[fmt.Sprintf("%s, %s %d", operation.name, statement.Name, i)] = statement.Plans[0].Shape()
			}
		}
	}
	return shapes
}

func TestRowLevelSecurityOfAnalystsChangesNoPlanOfTheServer(t *testing.T) {
	t.Parallel()
	url := dbtest.Seeded(t, skewed)
	owner := connect(t, url)
	server, bound := createRole(t, owner, url, "server"), createRole(t, owner, url, "bound")
	require.NoError(t, db.GrantServer(t.Context(), url, nameOf(server)))
	for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
		before := planShapes(t, server.url, mode)
		require.NotEmpty(t, before)
		require.NoError(t, db.CreateBoundAnalyst(t.Context(), url, nameOf(bound), dataset.ResourceID(9)))
		for _, exempt := range []string{"NOBYPASSRLS", "BYPASSRLS"} {
			exec(t, owner, "ALTER ROLE "+server.name+" "+exempt)
			assert.Equal(t, before, planShapes(t, server.url, mode), "%s, %s", mode, exempt)
		}
		exec(t, owner, "ALTER ROLE "+server.name+" NOBYPASSRLS")
		_, err := db.DropRole(t.Context(), url, nameOf(bound))
		require.NoError(t, err)
		exec(t, owner, "CREATE ROLE "+bound.name+" LOGIN PASSWORD 'secret'")
	}
}

// @> and @@ are not leakproof: under row-level security PostgreSQL does not ask an
// index with them. So a bound analyst's filters and searches read all messages of
// the resource by its index, and no more.
func TestABoundAnalystReadsNoMoreThanTheResource(t *testing.T) {
	t.Parallel()
	url := dbtest.Seeded(t, skewed)
	owner := connect(t, url)
	bound := createRole(t, owner, url, "bound")
	mine := dataset.ResourceID(9)
	require.NoError(t, db.CreateBoundAnalyst(t.Context(), url, nameOf(bound), mine))
	assert.Equal(t, []string{"false"}, texts(t, owner, `SELECT DISTINCT p.proleakproof::text FROM pg_proc AS p WHERE p.proname IN ('arraycontains', 'ts_match_vq', 'jsonb_path_match_opr')`))
	var threads, messages int
	require.NoError(t, owner.QueryRow(t.Context(), `SELECT count(*), sum(message_count) FROM recall.threads WHERE resource_id = $1`, mine).Scan(&threads, &messages))
	thread := texts(t, owner, `SELECT id FROM recall.threads WHERE resource_id = $1 AND message_count > 0 ORDER BY id LIMIT 1`, mine)[0]
	conn := connect(t, bound.url)
	for query, rows := range map[string]int{
		fmt.Sprintf("recall.recall('%s', per_page => 20)", thread):                                               3*perPage + lookUp,
		fmt.Sprintf("recall.recall(resource_id => '%s', per_page => 20)", mine):                                  3*perPage + lookUp,
		fmt.Sprintf(`recall.recall('%s', metadata => '{%q: %q}')`, thread, dataset.TopicKey, dataset.TopicValue): messages + 3*perPage,
		fmt.Sprintf("recall.message_text WHERE thread_id = '%s'", thread):                                        dataset.ThreadMessages,
		"recall.message_text":   messages,
		"recall.thread_summary": 3 * threads,
		"recall.daily_activity": messages,
	} {
		plan := dbtest.Explain(t.Context(), t, conn, "SELECT * FROM "+query)
		assert.LessOrEqual(t, plan.Visited(), float64(rows), "%s: %s", query, plan)
		for _, node := range plan.Ran() {
			assert.NotEqual(t, "Seq Scan", node.Node, "%s: %s", query, plan)
		}
	}
}

package db_test

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db"
	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
)

// fixtures hold a row for every table, in an order in which they can go in.
var fixtures = []struct{ table, insert string }{
	{"threads", `INSERT INTO recall.threads (id, resource_id, title, title_source, metadata, message_count, last_seq, created_at, updated_at)
		VALUES ('t', 'r', 'Title', 'user', '{"a": 1}', 1, 1, now(), now())`},
	{"messages", `INSERT INTO recall.messages (id, thread_id, resource_id, seq, role, content, created_at, updated_at)
		VALUES ('m', 't', 'r', 1, 'user', '{"format": 2, "parts": [{"type": "text", "text": "Tea? 京都"}], "metadata": {"a": 1}}', now(), now())`},
	{"resources", `INSERT INTO recall.resources (id, metadata, created_at, updated_at)
		VALUES ('r', '{"a": 1}', now(), now())`},
	{"working_memories", `INSERT INTO recall.working_memories (id, resource_id, thread_id, version)
		VALUES ('w', 'r', NULL, 2), ('v', 'r', 't', 1)`},
	{"working_memory_versions", `INSERT INTO recall.working_memory_versions (working_memory_id, resource_id, version, content, created_at)
		VALUES ('w', 'r', 1, 'Likes tea.', now()), ('w', 'r', 2, 'Likes coffee.', now()), ('v', 'r', 1, 'Plans a trip.', now())`},
	{"agents", `INSERT INTO recall.agents (id, config, created_at, updated_at)
		VALUES ('a', '{"lastMessages": 10}', now(), now())`},
	{"embedding_indexes", `INSERT INTO recall.embedding_indexes (name, model, dimensions, created_at)
		VALUES ('second', 'second', 3072, now())`},
	{"embeddings_1", `INSERT INTO recall.embeddings_1 (message_id, chunk, thread_id, resource_id, text_hash, embedding, in_graph)
		VALUES ('m', 0, 't', 'r', '\x00', array_fill(1, ARRAY[256])::vector, true)`},
	{"api_keys", `INSERT INTO recall.api_keys (name, secret_hash, resource, created_at, expires_at, revoked_at, last_used_at)
		VALUES ('k', sha256('Hello'), 'r', now(), now(), now(), now())`},
	{"idempotency_keys", `INSERT INTO recall.idempotency_keys (key, request_hash, status, answer, etag, resource_ids, created_at)
		VALUES ('k', sha256('Hello'), 200, '{}', '"1"', '{r}', now())`},
	{"erasures", `UPDATE recall.erasures SET count = 7`},
}

// ours leaves out the table of versions, which is goose's, and River's tables.
const ours = `c.relnamespace = 'recall'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname !~ '^(goose|river)_'`

func fill(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	var filled []string
	for _, fixture := range fixtures {
		exec(t, conn, fixture.insert)
		filled = append(filled, fixture.table)
	}
	exec(t, conn, `INSERT INTO recall.river_job (kind, args, max_attempts) VALUES ('embed', '{"messageIds": ["m"]}', 5)`)
	tables := texts(t, conn, `SELECT c.relname::text FROM pg_class AS c WHERE `+ours)
	assert.ElementsMatch(t, tables, filled, "every table has a fixture")
}

// texts gives the one column of a query.
func texts(t *testing.T, conn *pgx.Conn, query string, args ...any) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), query, args...)
	require.NoError(t, err, query)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err, query)
	return list
}

func TestMigrationsGoUpDownAndUpWithRowsInEveryTable(t *testing.T) {
	t.Parallel()
	address := dbtest.EmptyURL(t)
	all := db.Names()

	applied, err := db.Migrate(t.Context(), address)
	require.NoError(t, err)
	assert.Equal(t, all, applied)
	fill(t, connect(t, address))

	for i := len(all) - 1; i >= 0; i-- {
		undone, err := db.MigrateDown(t.Context(), address)
		require.NoError(t, err)
		require.Equal(t, all[i], undone)
	}
	undone, err := db.MigrateDown(t.Context(), address)
	require.NoError(t, err)
	assert.Empty(t, undone, "nothing is left to take back")

	applied, err = db.Migrate(t.Context(), address)
	require.NoError(t, err)
	assert.Equal(t, all, applied)
	fill(t, connect(t, address))
}

func TestMigrationsTakenBackLeaveNothingButTheVersions(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	for range db.Names() {
		_, err := db.MigrateDown(t.Context(), address)
		require.NoError(t, err)
	}
	left := texts(t, connect(t, address), `
		SELECT pg_describe_object(d.classid, d.objid, 0)
		FROM pg_depend AS d
		WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = 'recall'::regnamespace`)
	assert.ElementsMatch(t, []string{"table recall.goose_db_version", "sequence recall.goose_db_version_id_seq"}, left)
}

func TestMigrationsStartedAtOnceAreAppliedOnce(t *testing.T) {
	t.Parallel()
	address := dbtest.EmptyURL(t)
	const processes = 3
	var together sync.WaitGroup
	applied := make([][]string, processes)
	for i := range processes {
		together.Go(func() {
			var err error
			applied[i], err = db.Migrate(context.Background(), address)
			assert.NoError(t, err)
		})
	}
	together.Wait()
	var all []string
	for _, names := range applied {
		all = append(all, names...)
	}
	assert.ElementsMatch(t, db.Names(), all)
	versions := texts(t, connect(t, address), `SELECT version_id::text FROM recall.goose_db_version WHERE version_id > 0 ORDER BY id`)
	assert.Len(t, versions, len(all), "each is noted once")
}

func TestStatusOfAnEmptyDatabaseNamesAllMigrationsAndCreatesNothing(t *testing.T) {
	t.Parallel()
	address := dbtest.EmptyURL(t)
	status, err := db.Status(t.Context(), address)
	require.NoError(t, err)
	assert.Equal(t, db.SchemaStatus{Latest: latest(t), Pending: db.Names()}, status)
	assert.Empty(t, texts(t, connect(t, address), `SELECT nspname::text FROM pg_namespace WHERE nspname = 'recall'`))
}

// latest is the number of the last migration.
func latest(t *testing.T) int64 {
	names := db.Names()
	number, _, _ := strings.Cut(names[len(names)-1], "_")
	version, err := strconv.ParseInt(number, 10, 64)
	require.NoError(t, err)
	return version
}

func TestMigrateDownOnAnEmptyDatabaseFindsNothing(t *testing.T) {
	t.Parallel()
	undone, err := db.MigrateDown(t.Context(), dbtest.EmptyURL(t))
	require.NoError(t, err)
	assert.Empty(t, undone)
}

func TestStatusOfADatabaseThatIsBehindNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	status, err := db.Status(t.Context(), address)
	require.NoError(t, err)
	assert.Equal(t, status.Latest, status.Current)
	assert.Empty(t, status.Pending)

	undone, err := db.MigrateDown(t.Context(), address)
	require.NoError(t, err)
	status, err = db.Status(t.Context(), address)
	require.NoError(t, err)
	assert.Less(t, status.Current, status.Latest)
	assert.Equal(t, []string{undone}, status.Pending)
}

func TestTheServerWorksUnderARoleThatCannotCreateAnything(t *testing.T) {
	t.Parallel()
	address := dbtest.EmptyURL(t)
	owner := connect(t, address)
	migrator, server := createRole(t, owner, address, "migrator"), createRole(t, owner, address, "server")
	exec(t, owner, fmt.Sprintf("GRANT CREATE ON DATABASE %s TO %s", identifier(databaseOf(t, address)), migrator.name))
	exec(t, owner, "CREATE EXTENSION vector") // not every build lets others than superusers do it

	_, err := db.Migrate(t.Context(), migrator.url)
	require.NoError(t, err)
	require.NoError(t, db.GrantServer(t.Context(), migrator.url, nameOf(server)))

	status, err := db.Status(t.Context(), server.url)
	require.NoError(t, err)
	assert.Empty(t, status.Pending)
	_, err = db.Migrate(t.Context(), server.url)
	require.NoError(t, err, "there is nothing to create")
	serving := recall.New(dbtest.Open(t, server.url), recall.DefaultLimits(), recall.WithEmbedder(embed.Static{}))
	useAll(t, serving)

	// A new index needs no grants of its own.
	embeddings := connect(t, migrator.url)
	exec(t, embeddings, fmt.Sprintf(`GRANT SELECT ON recall.embeddings_1 TO PUBLIC; GRANT TRIGGER ON recall.embeddings_1 TO %s WITH GRANT OPTION`, server.name))
	_, err = recall.New(dbtest.Open(t, migrator.url), recall.DefaultLimits()).CreateIndex(t.Context(), recall.NewIndex{Name: "second", Model: "second", Dimensions: 3})
	require.NoError(t, err)
	privileges := func(table string) []string {
		return texts(t, embeddings, `SELECT a.grantee::regrole || ' ' || a.privilege_type || ' ' || a.is_grantable
			FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS a WHERE c.oid = $1::text::regclass`, table)
	}
	assert.NotEmpty(t, privileges("recall.embeddings_1"))
	assert.ElementsMatch(t, privileges("recall.embeddings_1"), privileges("recall.embeddings_2"))
	_, err = serving.SaveMessages(t.Context(), newMessages("found", "found"), true)
	require.NoError(t, err)
	_, err = serving.CloneThread(t.Context(), recall.ThreadClone{SourceID: "found"})
	require.NoError(t, err)

	for _, create := range []string{
		"CREATE TABLE recall.mine (id text)",
		"CREATE INDEX ON recall.messages (role)",
		"CREATE SCHEMA mine",
		"DROP FUNCTION recall.new_id()",
	} {
		_, err := connect(t, server.url).Exec(t.Context(), create)
		var refused *pgconn.PgError
		require.ErrorAs(t, err, &refused, create)
		assert.Equal(t, "42501", refused.Code, create)
	}
}

type role struct{ name, url string }

// createRole makes a role of the test's own with a way to connect as it.
func createRole(t *testing.T, owner *pgx.Conn, address, name string) role {
	name = databaseOf(t, address) + "_" + name
	name = name[len(name)-min(len(name), 40):]
	const password = "secret"
	exec(t, owner, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", identifier(name), password))
	t.Cleanup(func() {
		// owner's connection is closed by now, and t's context over.
		conn, err := pgx.Connect(context.Background(), address)
		require.NoError(t, err)
		defer conn.Close(context.Background())
		_, err = conn.Exec(context.Background(), fmt.Sprintf("DROP OWNED BY %[1]s CASCADE; DROP ROLE %[1]s", identifier(name)))
		assert.NoError(t, err)
	})
	as, err := url.Parse(address)
	require.NoError(t, err)
	as.User = url.UserPassword(name, password)
	return role{identifier(name), as.String()}
}

// nameOf is a role's name without quotes.
func nameOf(r role) string { return strings.Trim(r.name, `"`) }

func identifier(name string) string { return pgx.Identifier{name}.Sanitize() }

func databaseOf(t *testing.T, address string) string {
	parsed, err := url.Parse(address)
	require.NoError(t, err)
	return strings.TrimPrefix(parsed.Path, "/")
}

// useAll calls every method of the memory that runs a statement of its own.
func useAll(t *testing.T, memory *recall.Memory) {
	ctx := t.Context()
	require.NoError(t, memory.Ready(ctx))
	_, err := memory.CreateThread(ctx, recall.NewThread{ID: "early", ResourceID: "resource-000000"})
	require.NoError(t, err)
	_, err = memory.UpdateThread(ctx, recall.ThreadUpdate{ID: "early", Title: ptr("Early")})
	require.NoError(t, err)
	require.NoError(t, memory.CheckEmbedder(ctx))
	prepareAll(t, memory)
	_, err = memory.SaveMessages(ctx, newMessages("found", "found"), true)
	require.NoError(t, err)
	for _, mode := range []recall.Mode{recall.Hybrid, recall.Semantic, recall.Lexical} {
		result, err := memory.Recall(ctx, recall.Request{ThreadID: "found", PerPage: ptr(0), Search: &recall.Search{Question: "hello", Mode: mode}})
		require.NoError(t, err)
		assert.NotEmpty(t, result.Messages, mode)
	}
}

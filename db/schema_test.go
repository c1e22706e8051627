package db_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
)

// thread and message insert a row of which one column is off.
const (
	insertThread = `INSERT INTO recall.threads (id, resource_id, created_at, updated_at, title_source, metadata, message_count, last_seq) VALUES `
	insertPlain  = `INSERT INTO recall.messages (id, thread_id, resource_id, seq, role, content, created_at, updated_at) VALUES `
	insertIndex  = `INSERT INTO recall.embedding_indexes (id, name, model, dimensions, state, hnsw_m, hnsw_ef_construction, created_at)
		OVERRIDING SYSTEM VALUE VALUES `
	insertAPIKey  = `INSERT INTO recall.api_keys (id, secret_hash, admin, resource, prefix, created_at) OVERRIDING SYSTEM VALUE VALUES `
	insertKey     = `INSERT INTO recall.idempotency_keys (key, request_hash, status, answer, created_at) VALUES `
	insertMemory  = `INSERT INTO recall.working_memories (id, resource_id, thread_id) VALUES `
	insertVersion = `INSERT INTO recall.working_memory_versions (working_memory_id, resource_id, version, content, created_at) VALUES `
	insertVector  = `INSERT INTO recall.embeddings_1 (message_id, chunk, thread_id, resource_id, text_hash) VALUES `
)

// violations break each constraint once, where the fixtures are in.
var violations = map[string]string{
	"threads_pkey": insertThread + `('t', 'other', now(), now(), 'none', NULL, 0, 0)`,
	// As long as ids are unique, pairs are: it stands alone for once.
	"threads_id_resource_id_key": `ALTER TABLE recall.threads DROP CONSTRAINT threads_pkey; ` +
		insertThread + `('t', 'r', now(), now(), 'none', NULL, 0, 0)`,
	"threads_title_source_check":  insertThread + `('t2', 'r', now(), now(), 'someone', NULL, 0, 0)`,
	"threads_metadata_check":      insertThread + `('t2', 'r', now(), now(), 'none', '[]', 0, 0)`,
	"threads_message_count_check": insertThread + `('t2', 'r', now(), now(), 'none', NULL, 2, 1)`,

	"messages_pkey":                       insertPlain + `('m', 't', 'r', 2, 'user', '{}', now(), now())`,
	"messages_thread_id_seq_key":          insertPlain + `('m2', 't', 'r', 1, 'user', '{}', now(), now())`,
	"messages_thread_id_resource_id_fkey": insertPlain + `('m2', 't', 'other', 2, 'user', '{}', now(), now())`,
	"messages_content_check":              insertPlain + `('m2', 't', 'r', 2, 'user', '"text"', now(), now())`,

	"resources_pkey":           `INSERT INTO recall.resources (id, created_at, updated_at) VALUES ('r', now(), now())`,
	"resources_metadata_check": `INSERT INTO recall.resources (id, metadata, created_at, updated_at) VALUES ('r2', '1', now(), now())`,

	"working_memories_pkey":                      insertMemory + `('w', 'other', NULL)`,
	"working_memories_resource_id_thread_id_key": insertMemory + `('w2', 'r', NULL)`,
	// As above.
	"working_memories_id_resource_id_key": `ALTER TABLE recall.working_memories DROP CONSTRAINT working_memories_pkey; ` +
		insertMemory + `('w', 'r', 'other')`,
	"working_memories_thread_id_resource_id_fkey":                insertMemory + `('w2', 'other', 't')`,
	"working_memory_versions_pkey":                               insertVersion + `('w', 'r', 1, '', now())`,
	"working_memory_versions_working_memory_id_resource_id_fkey": insertVersion + `('w', 'other', 3, '', now())`,
	"working_memory_versions_version_check":                      insertVersion + `('w', 'r', 0, '', now())`,

	"agents_pkey":         `INSERT INTO recall.agents (id, config, created_at, updated_at) VALUES ('a', '{}', now(), now())`,
	"agents_config_check": `INSERT INTO recall.agents (id, config, created_at, updated_at) VALUES ('a2', 'null', now(), now())`,

	"embedding_indexes_pkey":             insertIndex + `(1, 'third', 'm', 3, 'building', 16, 64, now())`,
	"embedding_indexes_name_key":         insertIndex + `(9, 'second', 'm', 3, 'building', 16, 64, now())`,
	"embedding_indexes_name_check":       insertIndex + `(9, '', 'm', 3, 'building', 16, 64, now())`,
	"embedding_indexes_dimensions_check": insertIndex + `(9, 'third', 'm', 4001, 'building', 16, 64, now())`,
	"embedding_indexes_state_check":      insertIndex + `(9, 'third', 'm', 3, 'ready', 16, 64, now())`,
	"embedding_indexes_graph_check":      `UPDATE recall.embedding_indexes SET graph = 'some'`,
	"embedding_indexes_hnsw_check":       insertIndex + `(9, 'third', 'm', 3, 'building', 16, 31, now())`,

	"embeddings_1_pkey":                       insertVector + `('m', 0, 't', 'r', '')`,
	"embeddings_1_message_id_fkey":            insertVector + `('absent', 0, 't', 'r', '')`,
	"embeddings_1_thread_id_resource_id_fkey": insertVector + `('m', 1, 't', 'other', '')`,

	"api_keys_pkey":              insertAPIKey + `(1, sha256('2'), false, NULL, NULL, now())`,
	"api_keys_secret_hash_key":   insertAPIKey + `(2, sha256('Hello'), false, NULL, NULL, now())`,
	"api_keys_secret_hash_check": insertAPIKey + `(2, 'Hello', false, NULL, NULL, now())`,
	"api_keys_reach_check":       insertAPIKey + `(2, sha256('2'), true, 'r', NULL, now())`,
	"api_keys_resource_check":    insertAPIKey + `(2, sha256('2'), false, '', NULL, now())`,
	"api_keys_prefix_check":      insertAPIKey + `(2, sha256('2'), false, NULL, '', now())`,

	"idempotency_keys_pkey":         insertKey + `('k', '', 200, '{}', now())`,
	"idempotency_keys_status_check": insertKey + `('k2', '', 404, '{}', now())`,
	"idempotency_keys_answer_check": insertKey + `('k2', '', 200, NULL, now())`,

	"erasures_pkey":         `INSERT INTO recall.erasures (count) VALUES (0)`,
	"erasures_single_check": `INSERT INTO recall.erasures (single, count) VALUES (false, 0)`,
}

func TestEveryConstraintIsNamedAfterItsTableAndColumns(t *testing.T) {
	t.Parallel()
	rows, err := connect(t, dbtest.URL(t)).Query(t.Context(), `
		SELECT k.conname::text, k.contype::text, c.relname::text, coalesce(string_agg(a.attname::text, '_' ORDER BY n.place), '')
		FROM pg_constraint AS k
		JOIN pg_class AS c ON c.oid = k.conrelid
		LEFT JOIN LATERAL unnest(k.conkey) WITH ORDINALITY AS n (attnum, place) ON true
		LEFT JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = n.attnum
		WHERE `+ours+`
		GROUP BY k.oid, c.oid`)
	require.NoError(t, err)
	var name, kind, table, columns string
	_, err = pgx.ForEachRow(rows, []any{&name, &kind, &table, &columns}, func() error {
		switch kind {
		case "p":
			assert.Equal(t, table+"_pkey", name)
		case "u":
			assert.Equal(t, table+"_"+columns+"_key", name)
		case "f":
			assert.Equal(t, table+"_"+columns+"_fkey", name)
		case "c":
			assert.Regexp(t, "^"+regexp.QuoteMeta(table)+"_[a-z_]*[a-z]_check$", name, "what is generated ends in a number, or names no column")
		case "n": // NOT NULL, from PostgreSQL 18 on
		default:
			t.Errorf("%s is of kind %q, for which there is no rule yet", name, kind)
		}
		return nil
	})
	require.NoError(t, err)
}

func TestEveryConstraintRefusesWhatViolatesItByName(t *testing.T) {
	t.Parallel()
	conn := connect(t, dbtest.URL(t))
	fill(t, conn)
	names := texts(t, conn, `
		SELECT k.conname::text
		FROM pg_constraint AS k
		JOIN pg_class AS c ON c.oid = k.conrelid
		WHERE k.contype <> 'n' AND `+ours)
	for _, name := range names {
		assert.Contains(t, violations, name, "the constraint has no test")
	}
	for name, sql := range violations {
		assert.Contains(t, names, name, "there is no such constraint")
		_, err := conn.Exec(t.Context(), sql)
		var refused *pgconn.PgError
		require.ErrorAs(t, err, &refused, name)
		assert.Equal(t, name, refused.ConstraintName, refused.Message)
	}
}

func TestAMigratedDatabaseHoldsTheFunctionsOfTheFiles(t *testing.T) {
	t.Parallel()
	conn := connect(t, dbtest.URL(t))
	files, err := filepath.Glob("functions/*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	migrated := definitions(t, conn)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		name := strings.TrimSuffix(filepath.Base(file), ".sql")
		if strings.Contains(string(text), "\nCREATE TYPE") {
			inTransaction(t, conn, func(tx pgx.Tx) {
				_, err := tx.Exec(t.Context(), "DROP TYPE recall."+identifier(name)+" CASCADE; "+string(text))
				require.NoError(t, err, file)
				assert.Equal(t, migrated["type "+name], definitions(t, conn)["type "+name], "%s differs from what the migrations make", file)
			})
			continue
		}
		inTransaction(t, conn, func(tx pgx.Tx) {
			_, err := tx.Exec(t.Context(), string(text))
			require.NoError(t, err, file)
			assert.Equal(t, migrated, definitions(t, conn), "%s differs from what the migrations make", file)
			replaced := texts(t, conn, `
				SELECT proname::text FROM pg_proc WHERE xmin = pg_current_xact_id()::xid
				UNION ALL
				SELECT relname::text FROM pg_class WHERE relkind = 'v' AND xmin = pg_current_xact_id()::xid`)
			assert.Equal(t, []string{name}, replaced, "%s is named after what it creates", file)
		})
	}
}

// public is the surface for analysts: what docs/sql.md describes.
var public = []string{
	"function context", "function nearest", "function recall", "function search", "function similar_to",
	"view daily_activity", "view embedding_coverage", "view message_text", "view thread_summary",
}

func TestWhatIsPublicIsDescribedInTheDatabase(t *testing.T) {
	t.Parallel()
	conn := connect(t, dbtest.URL(t))
	assert.ElementsMatch(t, public, texts(t, conn, `
		SELECT 'function ' || p.proname
		FROM pg_proc AS p
		WHERE p.pronamespace = 'recall'::regnamespace AND obj_description(p.oid, 'pg_proc') <> ''
		UNION ALL
		SELECT 'view ' || c.relname
		FROM pg_class AS c
		WHERE c.relnamespace = 'recall'::regnamespace AND c.relkind = 'v' AND obj_description(c.oid, 'pg_class') <> ''`))
	assert.Empty(t, texts(t, conn, `
		SELECT c.relname || '.' || a.attname
		FROM pg_class AS c
		JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
		WHERE c.relnamespace = 'recall'::regnamespace AND c.relkind = 'v' AND col_description(c.oid, a.attnum) IS NULL`), "columns of views")
	assert.Empty(t, texts(t, conn, `
		SELECT c.relname::text FROM pg_class AS c
		WHERE c.relnamespace = 'recall'::regnamespace AND c.relkind = 'v' AND NOT 'security_invoker=true' = ANY (coalesce(c.reloptions, '{}'))`),
		"views read with the rights of who asks")
	assert.Empty(t, texts(t, conn, `SELECT proname::text FROM pg_proc WHERE pronamespace = 'recall'::regnamespace AND prosecdef`),
		"no function lends its owner's rights")
}

func TestOneEmbeddingIndexIsLive(t *testing.T) {
	t.Parallel()
	conn := connect(t, dbtest.URL(t))
	_, err := conn.Exec(t.Context(), insertIndex+`(9, 'third', 'm', 3, 'live', 16, 64, now())`)
	var refused *pgconn.PgError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, "embedding_indexes_live_key", refused.ConstraintName)
	exec(t, conn, insertIndex+`(9, 'third', 'm', 3, 'retired', 16, 64, now()), (10, 'fourth', 'm', 3, 'retired', 16, 64, now())`)
}

// Vectors lie in their rows as far as a page has room: an index of each kind,
// filled and searched.
func TestAnEmbeddingTableHoldsVectorsOfItsDimensions(t *testing.T) {
	t.Parallel()
	conn := connect(t, dbtest.URL(t))
	fill(t, conn)
	for dimensions, want := range map[int]struct{ column, storage string }{
		1: {"vector(1)", "p"}, 384: {"vector(384)", "p"}, 1536: {"vector(1536)", "p"}, 2000: {"vector(2000)", "e"},
		2001: {"halfvec(2001)", "p"}, 3072: {"halfvec(3072)", "p"}, 4000: {"halfvec(4000)", "e"},
	} {
		inTransaction(t, conn, func(tx pgx.Tx) {
			id := 10_000 + dimensions
			_, err := tx.Exec(t.Context(), fmt.Sprintf(insertIndex+`(%d, 'wide', 'm', %d, 'building', 16, 64, now())`, id, dimensions))
			require.NoError(t, err)
			var table, column, storage string
			var rows int
			require.NoError(t, tx.QueryRow(t.Context(), `SELECT recall.create_embedding_table(i) FROM recall.embedding_indexes AS i WHERE i.name = 'wide'`).Scan(&table))
			assert.Equal(t, fmt.Sprintf("embeddings_%d", id), table)
			require.NoError(t, tx.QueryRow(t.Context(), `
				SELECT format_type(a.atttypid, a.atttypmod), a.attstorage::text FROM pg_attribute AS a
				WHERE a.attrelid = ('recall.' || $1)::regclass AND a.attname = 'embedding'`, table).Scan(&column, &storage))
			assert.Equal(t, want, struct{ column, storage string }{column, storage}, "%d dimensions", dimensions)
			// The longest ids, of four bytes a character.
			_, err = tx.Exec(t.Context(), `
				INSERT INTO recall.threads (id, resource_id, created_at, updated_at) VALUES (repeat('t', 512), repeat('r', 512), now(), now());
				INSERT INTO recall.messages (id, thread_id, resource_id, seq, role, content, created_at, updated_at)
				VALUES (repeat('m', 512), repeat('t', 512), repeat('r', 512), 1, 'user', '{}', now(), now())`)
			require.NoError(t, err)
			_, err = tx.Exec(t.Context(), fmt.Sprintf(`
				INSERT INTO recall.%s (message_id, chunk, thread_id, resource_id, text_hash, embedding, in_graph)
				SELECT repeat('m', 512), 0, repeat('t', 512), repeat('r', 512), sha256(''), l2_normalize((SELECT array_agg(random()) FROM generate_series(1, %[2]d))::vector::%[3]s), true`,
				table, dimensions, column))
			require.NoError(t, err, "%d dimensions", dimensions)
			require.NoError(t, tx.QueryRow(t.Context(), fmt.Sprintf(`
				SELECT count(*) FROM recall.nearest_messages('', repeat('r', 512), 1, %d::smallint, array_fill(1, ARRAY[%d])::vector, 5, 0, false, '{}', NULL, NULL, '-infinity', 'infinity')`,
				id, dimensions)).Scan(&rows))
			assert.Equal(t, 1, rows, "%d dimensions", dimensions)
			_, err = tx.Exec(t.Context(), fmt.Sprintf(`UPDATE recall.%s SET embedding = array_fill(1, ARRAY[%d])::vector::halfvec`, table, dimensions+1))
			require.Error(t, err, "another number of dimensions")
		})
	}
}

// definitions gives the definition of each function, view and composite type in the
// schema, with what is said of them.
func definitions(t *testing.T, conn *pgx.Conn) map[string]string {
	rows, err := conn.Query(t.Context(), `
		SELECT 'function ' || p.oid::regprocedure, pg_get_functiondef(p.oid) || coalesce(obj_description(p.oid, 'pg_proc'), '')
		FROM pg_proc AS p
		WHERE p.pronamespace = 'recall'::regnamespace
		UNION ALL
		SELECT
			CASE c.relkind WHEN 'v' THEN 'view ' ELSE 'type ' END || c.relname,
			concat_ws(
				E'\n',
				CASE WHEN c.relkind = 'v' THEN pg_get_viewdef(c.oid) END, c.reloptions,
				coalesce(obj_description(c.oid, 'pg_class'), obj_description(c.reltype, 'pg_type')),
				(
					SELECT string_agg(concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), col_description(c.oid, a.attnum)), E'\n' ORDER BY a.attnum)
					FROM pg_attribute AS a
					WHERE a.attrelid = c.oid AND a.attnum > 0
				)
			)
		FROM pg_class AS c
		WHERE c.relnamespace = 'recall'::regnamespace AND c.relkind IN ('v', 'c')`)
	require.NoError(t, err)
	definitions := map[string]string{}
	var name, definition string
	_, err = pgx.ForEachRow(rows, []any{&name, &definition}, func() error {
		definitions[name] = definition
		return nil
	})
	require.NoError(t, err)
	return definitions
}

// inTransaction runs do in a transaction that is taken back.
func inTransaction(t *testing.T, conn *pgx.Conn, do func(pgx.Tx)) {
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(context.WithoutCancel(t.Context()))) }()
	do(tx)
}

func TestEveryIDIsComparedByteByByte(t *testing.T) {
	t.Parallel()
	conn := connect(t, dbtest.URL(t))
	ids := `
		FROM pg_attribute AS a
		JOIN pg_class AS c ON c.oid = a.attrelid
		WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attname ~ '(^|_)id$'
			-- These are numbers that the database gives: one names a table, the other a key.
			AND NOT (c.relname IN ('embedding_indexes', 'api_keys') AND a.attname = 'id')
			AND ` + ours
	assert.NotEmpty(t, texts(t, conn, `SELECT a.attname::text`+ids))
	assert.Empty(t, texts(t, conn, `SELECT c.relname || '.' || a.attname`+ids+`
		AND (a.atttypid <> 'text'::regtype OR a.attcollation <> (SELECT oid FROM pg_collation WHERE collname = 'C' AND collnamespace = 'pg_catalog'::regnamespace))`))
}

func TestEveryTimeIsAnInstantInMilliseconds(t *testing.T) {
	t.Parallel()
	conn := connect(t, dbtest.URL(t))
	times := `
		FROM pg_attribute AS a
		JOIN pg_class AS c ON c.oid = a.attrelid
		JOIN pg_type AS y ON y.oid = a.atttypid
		WHERE a.attnum > 0 AND NOT a.attisdropped AND y.typcategory = 'D' AND ` + ours
	assert.NotEmpty(t, texts(t, conn, `SELECT a.attname::text`+times))
	assert.Empty(t, texts(t, conn, `SELECT c.relname || '.' || a.attname`+times+`
		AND format_type(a.atttypid, a.atttypmod) <> 'timestamp(3) with time zone'`))
}

package db_test

import (
	"context"
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

	"agents_pkey":         `INSERT INTO recall.agents (id, config, created_at, updated_at) VALUES ('a', '{}', now(), now())`,
	"agents_config_check": `INSERT INTO recall.agents (id, config, created_at, updated_at) VALUES ('a2', 'null', now(), now())`,
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
	migrated := functions(t, conn)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		inTransaction(t, conn, func(tx pgx.Tx) {
			_, err := tx.Exec(t.Context(), string(text))
			require.NoError(t, err, file)
			assert.Equal(t, migrated, functions(t, conn), "%s differs from what the migrations make", file)
			replaced := texts(t, conn, `SELECT proname::text FROM pg_proc WHERE xmin = pg_current_xact_id()::xid`)
			assert.Equal(t, []string{strings.TrimSuffix(filepath.Base(file), ".sql")}, replaced, "%s is named after its function", file)
		})
	}
}

// functions gives the definition of each function in the schema.
func functions(t *testing.T, conn *pgx.Conn) map[string]string {
	rows, err := conn.Query(t.Context(), `
		SELECT p.oid::regprocedure::text, pg_get_functiondef(p.oid)
		FROM pg_proc AS p
		WHERE p.pronamespace = 'recall'::regnamespace`)
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
		WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attname ~ '(^|_)id$' AND ` + ours
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

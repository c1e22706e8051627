package db

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Verdict is the outcome of one [Check].
type Verdict string

// The verdicts of a check. A database with a failed one is not fit for use.
const (
	Passed Verdict = "ok"
	Warned Verdict = "warn"
	Failed Verdict = "fail"
)

// Check is one thing that was looked at in a database.
type Check struct {
	Name    string  `json:"name"`
	Verdict Verdict `json:"verdict"`
	// Message says what was found, Advice what to do about it; a passed check
	// has none.
	Message string `json:"message"`
	Advice  string `json:"advice,omitempty"`
}

// Diagnose looks at all that a database needs to be fit for use. It changes
// nothing. A database that cannot be reached is one failed check.
func Diagnose(ctx context.Context, url string) []Check {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return []Check{failed("connection", err.Error(), "check DATABASE_URL, and that the server runs and admits this user")}
	}
	// The process ends after this; a connection that fails to close is no news.
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	checks := []Check{passed("connection", "the server answers")}
	for _, look := range []struct {
		name string
		at   func(context.Context, *pgx.Conn) (Check, error)
	}{
		{"server", serverVersion},
		{"encoding", encoding},
		{"pgvector", vectorVersion},
		{"schema", func(ctx context.Context, _ *pgx.Conn) (Check, error) { return schemaVersion(ctx, url) }},
		{"rights", rights},
		{"indexes", invalidIndexes},
	} {
		check, err := look.at(ctx, conn)
		if err != nil {
			check = failed("", err.Error(), "this check could not be made")
		}
		check.Name = look.name
		checks = append(checks, check)
	}
	return checks
}

func passed(name, message string) Check { return Check{name, Passed, message, ""} }

func warned(message, advice string) Check { return Check{"", Warned, message, advice} }

func failed(name, message, advice string) Check { return Check{name, Failed, message, advice} }

func serverVersion(ctx context.Context, conn *pgx.Conn) (Check, error) {
	const query = `
		SELECT current_setting('server_version')::text,
		       current_setting('server_version_num')::int >= 150000`
	var version string
	var supported bool
	if err := conn.QueryRow(ctx, query).Scan(&version, &supported); err != nil {
		return Check{}, err
	}
	if !supported {
		return failed("", "PostgreSQL "+version, "upgrade to PostgreSQL 15 or newer"), nil
	}
	return passed("", "PostgreSQL "+version), nil
}

func encoding(ctx context.Context, conn *pgx.Conn) (Check, error) {
	const query = `SELECT current_setting('server_encoding')::text`
	var name string
	if err := conn.QueryRow(ctx, query).Scan(&name); err != nil {
		return Check{}, err
	}
	if name != "UTF8" {
		return failed("", name, "create the database with ENCODING 'UTF8': others cannot hold every text"), nil
	}
	return passed("", name), nil
}

// vectorVersion looks at the pgvector that is installed, or else at the one that
// could be. The least version is the first with iterative scans; those before
// 0.8.4 have CVE-2026-3172, an overflow in the building of indexes, and leave
// HNSW indexes damaged by VACUUM.
func vectorVersion(ctx context.Context, conn *pgx.Conn) (Check, error) {
	const query = `
		WITH found AS (
		    SELECT installed_version IS NOT NULL AS installed,
		           coalesce(installed_version, default_version) AS version
		    FROM pg_available_extensions
		    WHERE name = 'vector'
		)
		SELECT version::text, installed,
		       parts >= '{0,8,0}'::int[], parts >= '{0,8,4}'::int[]
		FROM found,
		     LATERAL (SELECT string_to_array(substring(version FROM '^[0-9]+(?:[.][0-9]+)*'), '.')::int[]) AS v (parts)`
	var version string
	var installed, supported, safe bool
	err := conn.QueryRow(ctx, query).Scan(&version, &installed, &supported, &safe)
	if errors.Is(err, pgx.ErrNoRows) {
		return failed("", "not available on this server", "install pgvector 0.8.4 or newer on the server's machine"), nil
	}
	if err != nil {
		return Check{}, err
	}
	message := version
	if !installed {
		message += ", available but not yet installed in this database"
	}
	switch {
	case !supported:
		return failed("", message, "upgrade pgvector to 0.8.4 or newer, then ALTER EXTENSION vector UPDATE"), nil
	case !safe:
		return warned(message, "upgrade pgvector to 0.8.4 or newer, then ALTER EXTENSION vector UPDATE: "+
			"CVE-2026-3172, and VACUUM may damage HNSW indexes"), nil
	default:
		return passed("", message), nil
	}
}

func schemaVersion(ctx context.Context, url string) (Check, error) {
	status, err := Status(ctx, url)
	if err != nil {
		return Check{}, err
	}
	message := fmt.Sprintf("at version %d of %d", status.Current, status.Latest)
	switch {
	case len(status.Pending) > 0:
		return failed("", message, "run pgrecall migrate up"), nil
	case status.Current > status.Latest:
		return warned(message, "a newer pgrecall has migrated this database: upgrade this one"), nil
	default:
		return passed("", message), nil
	}
}

// rights looks for tables that the user may not both read and write, and functions
// that he may not execute.
func rights(ctx context.Context, conn *pgx.Conn) (Check, error) {
	const query = `
		SELECT current_user::text,
		       coalesce(has_schema_privilege(to_regnamespace('recall')::oid, 'USAGE'), false),
		       coalesce(array_agg(l.name ORDER BY l.name) FILTER (WHERE l.name IS NOT NULL), '{}'),
		       coalesce(row_security_active(to_regclass('recall.messages')::oid), false)
		FROM (SELECT 1) AS always
		LEFT JOIN (
		    SELECT c.relname::text AS name
		    FROM pg_class AS c
		    WHERE c.relnamespace = to_regnamespace('recall')
		      AND c.relkind IN ('r', 'p')
		      AND c.relname <> 'goose_db_version'
		      AND NOT (has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
		               AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE'))
		    UNION ALL
		    SELECT p.proname || '()'
		    FROM pg_proc AS p
		    WHERE p.pronamespace = to_regnamespace('recall')
		      AND NOT has_function_privilege(p.oid, 'EXECUTE')
		) AS l ON true`
	var user string
	var usage, restricted bool
	var lacking []string
	if err := conn.QueryRow(ctx, query).Scan(&user, &usage, &lacking, &restricted); err != nil {
		return Check{}, err
	}
	grant := "as the owner of the schema, run pgrecall roles --server=" + user
	switch {
	case !usage:
		return failed("", user+" may not use the schema recall, or there is none", "run pgrecall migrate up, or, "+grant), nil
	case len(lacking) > 0:
		return failed("", user+" may not read and write, or execute, "+strings.Join(lacking, ", "), grant), nil
	case restricted:
		return warned(user+" is under the row-level security that binds analysts, and sees no statistics of words",
			"ALTER ROLE "+pgx.Identifier{user}.Sanitize()+" BYPASSRLS"), nil
	default:
		return passed("", user+" may read and write every table"), nil
	}
}

// invalidIndexes looks for what an interrupted CREATE INDEX CONCURRENTLY leaves:
// an index that costs every write and serves no read.
func invalidIndexes(ctx context.Context, conn *pgx.Conn) (Check, error) {
	const query = `
		SELECT coalesce(array_agg(c.relname::text ORDER BY c.relname), '{}')
		FROM pg_index AS i
		JOIN pg_class AS c ON c.oid = i.indexrelid
		WHERE c.relnamespace = to_regnamespace('recall')
		  AND NOT i.indisvalid`
	var invalid []string
	if err := conn.QueryRow(ctx, query).Scan(&invalid); err != nil {
		return Check{}, err
	}
	if len(invalid) > 0 {
		return failed("", "invalid: "+strings.Join(invalid, ", "), "REINDEX INDEX CONCURRENTLY each of them"), nil
	}
	return passed("", "all valid"), nil
}

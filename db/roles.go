package db

import (
	"context"
	_ "embed" // privileges.sql
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// AnalystRole reads what is held of all resources.
const AnalystRole = "recall_analyst"

// openPolicy lets everyone do what was granted to him; others restrict it.
const openPolicy = "everyone"

//go:embed privileges.sql
var privileges string

// The SQLSTATEs of what hinders the making and dropping of roles.
const (
	insufficientPrivilege  = "42501"
	dependentObjectsExist  = "2BP01"
	undefinedSchemaOrTable = "42P01"
)

// CreateAnalyst makes the role [AnalystRole] where there is none, and grants it all
// that an analyst needs and nothing else. It takes an administrator: who may create
// roles and owns the schema.
func CreateAnalyst(ctx context.Context, url string) error {
	return withRoles(ctx, url, func(r *roles) error { return r.createAnalyst(AnalystRole) })
}

// CreateBoundAnalyst is [CreateAnalyst] for a role that is bound to a resource by
// row-level security: in the tables and views that analysts are granted, nothing else
// exists for it. A role that has other ways to the data, or is bound to another
// resource, is refused.
func CreateBoundAnalyst(ctx context.Context, url, role, resource string) error {
	return withRoles(ctx, url, func(r *roles) error {
		if err := r.checkBindable(role, resource); err != nil {
			return err
		}
		if err := r.createAnalyst(role); err != nil {
			return err
		}
		return r.bind(role, resource)
	})
}

// GrantServer grants an existing role what the server needs, and no right to create
// anything.
func GrantServer(ctx context.Context, url, role string) error {
	return withRoles(ctx, url, func(r *roles) error {
		exists, err := r.exists(role)
		if err != nil {
			return err
		}
		if !exists {
			return fmt.Errorf("there is no role %q: CREATE ROLE ... LOGIN first", role)
		}
		if err := r.exec(`GRANT SELECT, INSERT, UPDATE, DELETE ON recall.messages TO %I`, role); err != nil {
			return err
		}
		return r.exec(privileges)
	})
}

// DropRole takes from a role all that it may do in the schema, and drops it; kept
// says why it could not be dropped, where something else depends on it.
func DropRole(ctx context.Context, url, role string) (kept string, err error) {
	err = withRoles(ctx, url, func(r *roles) error {
		kept, err = r.drop(role)
		return err
	})
	return kept, err
}

// roles changes roles in one transaction.
type roles struct {
	ctx context.Context
	tx  pgx.Tx
}

func withRoles(ctx context.Context, url string, do func(*roles) error) (err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// Two at once would change the same rows of the catalog.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(migrationLockID)); err != nil {
			return err
		}
		return do(&roles{ctx, tx})
	})
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		switch pgErr.Code {
		case insufficientPrivilege:
			return fmt.Errorf("%w: this takes an administrator, who may create roles and owns the schema recall", err)
		case undefinedSchemaOrTable:
			return fmt.Errorf("%w: the schema is missing or behind, run pgrecall migrate up", err)
		}
	}
	return err
}

// exec runs a statement, which PostgreSQL's format() makes of a template.
func (r *roles) exec(template string, names ...string) error {
	statement := template
	if len(names) > 0 {
		if err := r.tx.QueryRow(r.ctx, `SELECT format($1::text, VARIADIC $2::text[])`, template, names).Scan(&statement); err != nil {
			return err
		}
	}
	_, err := r.tx.Exec(r.ctx, statement)
	return err
}

// execEach runs one statement after the other, each made of the same names.
func (r *roles) execEach(templates []string, names ...string) error {
	for _, template := range templates {
		if err := r.exec(template, names...); err != nil {
			return err
		}
	}
	return nil
}

func (r *roles) is(condition string, args ...any) (holds bool, err error) {
	err = r.tx.QueryRow(r.ctx, "SELECT "+condition, args...).Scan(&holds)
	return holds, err
}

func (r *roles) exists(role string) (bool, error) {
	return r.is(`EXISTS (SELECT FROM pg_roles WHERE rolname = $1)`, role)
}

func (r *roles) createAnalyst(role string) error {
	exists, err := r.exists(role)
	if err != nil {
		return err
	}
	if !exists {
		// Roles are of all databases, in another of which it may be made just now.
		if err := r.exec(`DO $$ BEGIN CREATE ROLE %I NOLOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`, role); err != nil {
			return err
		}
	}
	if err := r.exec(`GRANT SELECT ON recall.message_text TO %I`, role); err != nil {
		return err
	}
	return r.exec(privileges)
}

// checkBindable refuses a role that row-level security would not hold, or that may
// become one.
func (r *roles) checkBindable(role, resource string) error {
	free, err := r.is(`EXISTS (
		SELECT
		FROM pg_roles AS r
		JOIN pg_roles AS m ON pg_has_role(r.oid, m.oid, 'MEMBER')
		WHERE r.rolname = $1
			AND (
				m.rolsuper OR m.rolbypassrls OR m.rolcreaterole
				OR has_table_privilege(m.oid, 'recall.messages', 'INSERT, UPDATE, DELETE, TRUNCATE')
				OR m.oid <> r.oid AND has_schema_privilege(m.oid, 'recall', 'USAGE')
			)
	)`, role)
	if err != nil {
		return err
	}
	if free {
		return fmt.Errorf("the role %q has other ways to the data, by itself or as a member of a role: give one that has none", role)
	}
	other, err := r.is(`EXISTS (
		SELECT FROM pg_policies
		WHERE schemaname = 'recall' AND tablename = 'messages' AND policyname = $1 AND qual <> format('(resource_id = %L::text)', $2::text)
	)`, role, resource)
	if err != nil {
		return err
	}
	if other {
		return fmt.Errorf("the role %q is bound to another resource: drop it first (pgrecall roles drop)", role)
	}
	return nil
}

// bind restricts a role to the rows of a resource. A policy has the name of its role.
func (r *roles) bind(role, resource string) error {
	err := r.execEach([]string{
		`DROP POLICY IF EXISTS ` + openPolicy + ` ON recall.messages`,
		`CREATE POLICY ` + openPolicy + ` ON recall.messages USING (true)`,
		`DROP POLICY IF EXISTS %I ON recall.messages`,
		`CREATE POLICY %1$I ON recall.messages AS RESTRICTIVE TO %1$I USING (resource_id = %2$L::text)`,
		`ALTER TABLE recall.messages ENABLE ROW LEVEL SECURITY`,
	}, role, resource)
	if err != nil {
		return err
	}
	return r.copyPolicies()
}

// copyPolicies gives all tables with rows of resources the policies of messages.
func (r *roles) copyPolicies() error {
	return r.exec(`
		SELECT recall.copy_policies(c.oid)
		FROM pg_class AS c
		JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'resource_id' AND NOT a.attisdropped
		WHERE c.relnamespace = 'recall'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> 'messages'`)
}

func (r *roles) drop(role string) (kept string, err error) {
	err = r.execEach([]string{
		`DROP POLICY IF EXISTS %I ON recall.messages`,
		`REVOKE ALL ON ALL TABLES IN SCHEMA recall FROM %I`,
		`REVOKE ALL ON ALL SEQUENCES IN SCHEMA recall FROM %I`,
		`REVOKE ALL ON ALL FUNCTIONS IN SCHEMA recall FROM %I`,
		`REVOKE ALL ON SCHEMA recall FROM %I`,
	}, role)
	if err != nil {
		return "", err
	}
	bound, err := r.is(`EXISTS (SELECT FROM pg_policy WHERE polrelid = 'recall.messages'::regclass AND NOT polpermissive)`)
	if err != nil {
		return "", err
	}
	if !bound {
		err = r.execEach([]string{
			`DROP POLICY IF EXISTS ` + openPolicy + ` ON recall.messages`,
			`ALTER TABLE recall.messages DISABLE ROW LEVEL SECURITY`,
		})
		if err != nil {
			return "", err
		}
	}
	if err := r.copyPolicies(); err != nil {
		return "", err
	}
	// A savepoint: what was taken away stays so.
	err = pgx.BeginFunc(r.ctx, r.tx, func(tx pgx.Tx) error { return (&roles{r.ctx, tx}).exec(`DROP ROLE %I`, role) })
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == dependentObjectsExist {
		return pgErr.Message + ": " + pgErr.Detail, nil
	}
	return "", err
}

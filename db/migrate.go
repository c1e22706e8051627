package db

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	// Registers the driver "pgx", which goose needs for its *sql.DB.
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var embedded embed.FS

// Migrations holds the migrations in SQL, one file each, in the order of their
// names.
var Migrations = sub(embedded, "migrations")

// versionTable is where goose notes what it has applied.
const versionTable = "recall.goose_db_version"

// migrationLockID is the advisory lock that lets one process migrate at a time.
const migrationLockID = 0x70677265_63616c6c // "pgrecall" in ASCII

// Names gives the names of all migrations, in order.
func Names() []string {
	names, err := fs.Glob(Migrations, "*.sql")
	if err != nil {
		panic(err) // of a pattern that is wrong
	}
	names = append(names, createJobs().Source)
	slices.Sort(names)
	return names
}

// SchemaStatus says which migrations a database has.
type SchemaStatus struct {
	// Current is the version of the database, Latest that of this program.
	Current, Latest int64
	// Pending names the migrations that are missing, in order.
	Pending []string
}

// Migrate brings the schema up to date, gives roles what they need of what is new,
// and names the migrations it applied. Of several processes at once one works and the others wait for it.
func Migrate(ctx context.Context, url string) ([]string, error) {
	var applied []string
	err := withProvider(ctx, url, func(provider *goose.Provider, database *sql.DB) error {
		if err := createSchema(ctx, database); err != nil {
			return err
		}
		results, err := provider.Up(ctx)
		for _, result := range results {
			applied = append(applied, result.Source.Path)
		}
		if err != nil || len(applied) == 0 {
			return err
		}
		_, err = database.ExecContext(ctx, privileges)
		return err
	})
	if err != nil {
		return applied, fmt.Errorf("migrate the database: %w", err)
	}
	return applied, nil
}

// MigrateDown takes the newest migration back and names it; empty when there is
// none left.
func MigrateDown(ctx context.Context, url string) (string, error) {
	var undone string
	err := withProvider(ctx, url, func(provider *goose.Provider, database *sql.DB) error {
		if exists, err := hasVersions(ctx, database); err != nil || !exists {
			return err
		}
		result, err := provider.Down(ctx)
		if errors.Is(err, goose.ErrNoNextVersion) {
			return nil
		}
		if err != nil {
			return err
		}
		undone = result.Source.Path
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("take back a migration: %w", err)
	}
	return undone, nil
}

// Status compares the database with the migrations of this program. It needs no
// right to create anything.
func Status(ctx context.Context, url string) (SchemaStatus, error) {
	var status SchemaStatus
	err := withProvider(ctx, url, func(provider *goose.Provider, database *sql.DB) error {
		sources := provider.ListSources()
		status.Latest = sources[len(sources)-1].Version
		exists, err := hasVersions(ctx, database)
		if err != nil {
			return err
		}
		if exists {
			if status.Current, err = provider.GetDBVersion(ctx); err != nil {
				return err
			}
		}
		for _, source := range sources {
			if source.Version > status.Current {
				status.Pending = append(status.Pending, source.Path)
			}
		}
		return nil
	})
	if err != nil {
		return SchemaStatus{}, fmt.Errorf("read the schema's version: %w", err)
	}
	return status, nil
}

// hasVersions says whether the database was ever migrated.
func hasVersions(ctx context.Context, database *sql.DB) (exists bool, err error) {
	const query = `SELECT to_regclass($1::text) IS NOT NULL`
	err = database.QueryRowContext(ctx, query, versionTable).Scan(&exists)
	return exists, err
}

// sub is fs.Sub for a folder that is known to be there.
func sub(files fs.FS, folder string) fs.FS {
	inner, err := fs.Sub(files, folder)
	if err != nil {
		panic(err)
	}
	return inner
}

func withProvider(ctx context.Context, url string, do func(*goose.Provider, *sql.DB) error) (err error) {
	database, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	if err := database.PingContext(ctx); err != nil {
		return err
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(migrationLockID))
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, database, Migrations,
		goose.WithSessionLocker(locker),
		goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true),
		goose.WithGoMigrations(createJobs()),
	)
	if err != nil {
		return err
	}
	return do(provider, database)
}

// createSchema creates the schema, into which goose puts its own table before
// the first migration runs. It asks first, since IF NOT EXISTS needs the right
// to create even where there is nothing to do.
func createSchema(ctx context.Context, database *sql.DB) error {
	var exists bool
	const query = `SELECT to_regnamespace('recall') IS NOT NULL`
	if err := database.QueryRowContext(ctx, query).Scan(&exists); err != nil || exists {
		return err
	}
	_, err := database.ExecContext(ctx, `CREATE SCHEMA IF NOT EXISTS recall`)
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == uniqueViolation {
		return nil // another process created it between the two statements
	}
	return err
}

// uniqueViolation is the SQLSTATE that a lost race of two CREATE ... IF NOT
// EXISTS ends with.
const uniqueViolation = "23505"

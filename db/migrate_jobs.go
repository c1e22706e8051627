package db

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"
	"github.com/riverqueue/river/rivermigrate"
)

// schema holds all that pgrecall has in a database.
const schema = "recall"

// createJobs is the migration that makes the tables of River, by River's own
// migrations up to a version. A later version of River's gets a migration of ours
// in its turn. It runs outside a transaction, since a value that one of them adds
// to an enumeration must be committed before another uses it; what was interrupted
// goes on where it was.
func createJobs() *goose.Migration {
	const riverVersion = 8
	migration := goose.NewGoMigration(13,
		&goose.GoFunc{RunDB: migrateRiver(rivermigrate.DirectionUp, riverVersion)},
		&goose.GoFunc{RunDB: migrateRiver(rivermigrate.DirectionDown, -1)}, // -1: all
	)
	migration.Source = "00013_create_jobs.go"
	return migration
}

func migrateRiver(direction rivermigrate.Direction, version int) func(context.Context, *sql.DB) error {
	return func(ctx context.Context, database *sql.DB) error {
		migrator, err := rivermigrate.New(riverdatabasesql.New(database), &rivermigrate.Config{Schema: schema})
		if err != nil {
			return fmt.Errorf("read River's migrations: %w", err)
		}
		_, err = migrator.Migrate(ctx, direction, &rivermigrate.MigrateOpts{TargetVersion: version})
		return err
	}
}

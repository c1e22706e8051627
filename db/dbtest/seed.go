package dbtest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/peterldowns/pgtestdb"

	"github.com/pgrecall/pgrecall/bench/dataset"
)

// Seeded is the address of a database of the test's own that holds the data set
// of the given shape, vacuumed and analysed. It is a copy of a template that is
// filled once.
func Seeded(t testing.TB, shape dataset.Shape) string {
	t.Helper()
	return create(t, seeder{shape: shape})
}

// seeder makes the template that Seeded copies.
type seeder struct {
	migrator
	shape dataset.Shape
}

func (s seeder) Hash() (string, error) {
	schema, err := s.migrator.Hash()
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256([]byte(schema + dataset.Fingerprint(s.shape)))
	return hex.EncodeToString(hash[:]), nil
}

func (s seeder) Migrate(ctx context.Context, pool *sql.DB, config pgtestdb.Config) (err error) {
	if err := s.migrator.Migrate(ctx, pool, config); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, config.URL())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	if err := dataset.Load(ctx, conn, s.shape, nil); err != nil {
		return err
	}
	return dataset.Vacuum(ctx, conn)
}

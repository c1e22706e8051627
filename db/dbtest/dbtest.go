// Package dbtest gives tests a database of their own.
package dbtest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/peterldowns/pgtestdb"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db"
)

// New gives a pool on an empty, migrated database that is the test's own and
// goes with it. The server is that of DATABASE_URL, which `make test` sets.
func New(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Open(t, URL(t))
}

// Open gives a pool, opened as the program opens it, that is closed at the
// test's end.
func Open(t testing.TB, databaseURL string) *pgxpool.Pool {
	t.Helper()
	pool, err := db.Open(context.Background(), db.Config{URL: databaseURL, MaxConns: 20})
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// URL is the address of an empty, migrated database that is the test's own.
func URL(t testing.TB) string {
	t.Helper()
	return create(t, migrator{})
}

// EmptyURL is the address of a database without the schema.
func EmptyURL(t testing.TB) string {
	t.Helper()
	return create(t, pgtestdb.NoopMigrator{})
}

func create(t testing.TB, m pgtestdb.Migrator) string {
	t.Helper()
	server := os.Getenv("DATABASE_URL")
	if server == "" {
		t.Fatal("DATABASE_URL is not set: these tests need a PostgreSQL with pgvector; `make test` brings one")
	}
	address, err := url.Parse(server)
	require.NoError(t, err, "DATABASE_URL must be a postgres:// URL")
	password, _ := address.User.Password()
	config := pgtestdb.Custom(t, pgtestdb.Config{
		DriverName: "pgx",
		Host:       address.Hostname(),
		Port:       address.Port(),
		User:       address.User.Username(),
		Password:   password,
		Database:   address.Path[1:],
		Options:    address.RawQuery,
		// The test connects as the server's own user: the role is not made anew.
		TestRole: &pgtestdb.Role{
			Username: address.User.Username(), Password: password, Capabilities: "SUPERUSER",
		},
	}, m)
	return config.URL()
}

// migrator makes the template that pgtestdb copies for each test.
type migrator struct{}

func (migrator) Hash() (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, db.Names())
	err := fs.WalkDir(db.Migrations, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(db.Migrations, path)
		hash.Write(text)
		return err
	})
	return hex.EncodeToString(hash.Sum(nil)), err
}

func (migrator) Migrate(ctx context.Context, _ *sql.DB, config pgtestdb.Config) error {
	_, err := db.Migrate(ctx, config.URL())
	return err
}

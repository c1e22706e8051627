package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgrecall/pgrecall/bench/dataset"
	"github.com/pgrecall/pgrecall/db"
)

// dropTimeout bounds the clean-up after a run that was interrupted.
const dropTimeout = time.Minute

// database is one made for a run.
type database struct {
	url, server, name string
}

// createDatabase makes an empty database beside the one named.
func createDatabase(ctx context.Context, server, name string) (database, error) {
	if name == "" {
		name = "pgrecall_bench_" + strings.ToLower(rand.Text())
	}
	address, err := withDatabase(server, name)
	if err != nil {
		return database{}, err
	}
	d := database{url: address, server: server, name: name}
	if err := d.onServer(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()+" ENCODING 'UTF8' TEMPLATE template0"); err != nil {
		return database{}, fmt.Errorf("create a database for the benchmark: %w", err)
	}
	return d, nil
}

func (d database) drop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dropTimeout)
	defer cancel()
	if err := d.onServer(ctx, "DROP DATABASE "+pgx.Identifier{d.name}.Sanitize()+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop the benchmark's database %s: %w", d.name, err)
	}
	return nil
}

func (d database) onServer(ctx context.Context, sql string) error {
	return withConn(ctx, d.server, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql)
		return err
	})
}

func withConn(ctx context.Context, address string, do func(*pgx.Conn) error) (err error) {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	return do(conn)
}

// load migrates the database and fills it.
func (d database) load(ctx context.Context, shape dataset.Shape, progress func(string, int, int)) error {
	if _, err := db.Migrate(ctx, d.url); err != nil {
		return err
	}
	return withConn(ctx, d.url, func(conn *pgx.Conn) error {
		err := dataset.Load(ctx, conn, shape, func(messages int) { progress("load", messages, shape.Messages()) })
		if err != nil {
			return err
		}
		return dataset.Vacuum(ctx, conn)
	})
}

// withDatabase names another database of the same server.
func withDatabase(address, name string) (string, error) {
	if !strings.HasPrefix(address, "postgres://") && !strings.HasPrefix(address, "postgresql://") {
		return address + " dbname=" + name, nil // of keywords and values; the last one counts
	}
	parsed, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("read the database URL: %w", err)
	}
	parsed.Path = "/" + name
	return parsed.String(), nil
}

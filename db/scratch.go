package db

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// dropTimeout bounds the clean-up after a run that was interrupted.
const dropTimeout = time.Minute

// Scratch is a database made for one run.
type Scratch struct {
	URL          string
	server, name string
}

// CreateScratch makes an empty database beside the one named, to be dropped with
// [Scratch.Drop]. An empty name gives one of chance that begins with prefix.
func CreateScratch(ctx context.Context, server, prefix, name string) (Scratch, error) {
	if name == "" {
		name = prefix + strings.ToLower(rand.Text())
	}
	address, err := withDatabase(server, name)
	if err != nil {
		return Scratch{}, err
	}
	s := Scratch{URL: address, server: server, name: name}
	if err := s.onServer(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()+" ENCODING 'UTF8' TEMPLATE template0"); err != nil {
		return Scratch{}, fmt.Errorf("create the database %s: %w", name, err)
	}
	return s, nil
}

// Drop removes the database, also when ctx has ended.
func (s Scratch) Drop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTimeout)
	defer cancel()
	if err := s.onServer(ctx, "DROP DATABASE "+pgx.Identifier{s.name}.Sanitize()+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop the database %s: %w", s.name, err)
	}
	return nil
}

func (s Scratch) onServer(ctx context.Context, sql string) (err error) {
	conn, err := pgx.Connect(ctx, s.server)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	_, err = conn.Exec(ctx, sql)
	return err
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

// Package db opens the database and keeps its schema up to date.
package db

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says how to open the database. Zero values mean the defaults named.
type Config struct {
	// URL is a PostgreSQL connection string.
	URL string
	// MaxConns bounds the pool; pgx's default (the greater of 4 and the number of
	// CPUs) when 0.
	MaxConns int32
	// StatementTimeout ends a statement that runs longer; none when 0.
	StatementTimeout time.Duration
	// LockTimeout ends a statement that waits longer for a lock; none when 0.
	LockTimeout time.Duration
}

// idleInTransactionTimeout frees the locks of a client that went away in the
// middle of a transaction.
const idleInTransactionTimeout = time.Minute

// Open gives a pool of connections. It does not wait for the database: a pool
// opens while the server is down and works once it is up.
func Open(ctx context.Context, config Config) (*pgxpool.Pool, error) {
	poolConfig, err := pgxpool.ParseConfig(config.URL)
	if err != nil {
		return nil, fmt.Errorf("read the database URL: %w", err)
	}
	if config.MaxConns > 0 {
		poolConfig.MaxConns = config.MaxConns
	}
	params := poolConfig.ConnConfig.RuntimeParams
	if params["application_name"] == "" {
		params["application_name"] = "pgrecall"
	}
	params["statement_timeout"] = milliseconds(config.StatementTimeout)
	params["lock_timeout"] = milliseconds(config.LockTimeout)
	params["idle_in_transaction_session_timeout"] = milliseconds(idleInTransactionTimeout)
	// The statements are written so that their generic plan is the right one, and
	// planning the larger of them anew would cost more than running them.
	params["plan_cache_mode"] = "force_generic_plan"
	params["jit"] = "off"
	// Every statement reads by index; on a small table too, so that a plan made
	// while it was small is still right when it has grown.
	params["random_page_cost"] = "1.1"
	params["enable_seqscan"] = "off"
	pool, err := pgxpool.NewWithConfig(ctx, poolConfig)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	return pool, nil
}

func milliseconds(d time.Duration) string {
	return strconv.FormatInt(d.Milliseconds(), 10)
}

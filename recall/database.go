package recall

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgrecall/pgrecall/dbgen"
)

// database is where the statements of a memory run: on connections of a pool, or
// all in the one transaction that it is bound to.
type database interface {
	dbgen.DBTX
	// transact runs do in a transaction with the options.
	transact(ctx context.Context, options pgx.TxOptions, do func(pgx.Tx) error) error
}

// txAttempts bounds how often a transaction is run when PostgreSQL ends it to
// resolve a deadlock, or for a serialization failure.
const txAttempts = 5

// rollbackTimeout bounds the rollback of a transaction whose context has ended.
const rollbackTimeout = 5 * time.Second

// pooled is the database of a memory that is bound to no transaction.
type pooled struct{ *pgxpool.Pool }

// transact begins a transaction, and another one for what may succeed then.
func (p pooled) transact(ctx context.Context, options pgx.TxOptions, do func(pgx.Tx) error) error {
	var err error
	for range txAttempts {
		if err = p.attempt(ctx, options, do); !isRetryable(err) {
			break
		}
	}
	return err
}

func (p pooled) attempt(ctx context.Context, options pgx.TxOptions, do func(pgx.Tx) error) error {
	tx, err := p.BeginTx(ctx, options)
	if err != nil {
		return err
	}
	defer func() {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		// After a commit there is nothing to roll back. Else the first error is the one
		// that matters; a connection that cannot roll back is closed by the pool, which
		// ends the transaction too.
		_ = tx.Rollback(cleanup)
	}()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// bound is the database of a memory whose statements all belong to a transaction
// that another has begun, and ends.
type bound struct {
	pgx.Tx
	level pgx.TxIsoLevel
	// failed is the error of the first part that failed. It may have written before,
	// and that must not be committed, whatever became of the error.
	failed error
}

// transact runs do as a part of the transaction.
func (b *bound) transact(_ context.Context, options pgx.TxOptions, do func(pgx.Tx) error) error {
	// What is right at READ COMMITTED is right, or fails, at any other level.
	if options.IsoLevel != pgx.ReadCommitted && options.IsoLevel != b.level {
		return &levelError{options.IsoLevel}
	}
	err := do(b.Tx)
	if b.failed == nil {
		b.failed = err
	}
	return err
}

// levelError is the failure of what needs a transaction of another level than the
// one that it was made a part of.
type levelError struct{ needed pgx.TxIsoLevel }

func (e *levelError) Error() string { return fmt.Sprintf("the transaction is not %s", e.needed) }

package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgrecall/pgrecall/bench/dataset"
	"github.com/pgrecall/pgrecall/db"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
)

// load migrates the database and fills it, with vectors too.
func load(ctx context.Context, address string, shape dataset.Shape, progress func(string, int, int)) error {
	if _, err := db.Migrate(ctx, address); err != nil {
		return err
	}
	return withConn(ctx, address, func(conn *pgx.Conn) error {
		err := dataset.Load(ctx, conn, shape, func(messages int) { progress("load", messages, shape.Messages()) })
		if err != nil {
			return err
		}
		if err := backfill(ctx, address, progress); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, `VACUUM (ANALYZE) recall.embeddings_1`); err != nil {
			return fmt.Errorf("vacuum the vectors: %w", err)
		}
		return dataset.Vacuum(ctx, conn)
	})
}

// backfill gives all messages their vectors, and the graph those it should have.
func backfill(ctx context.Context, address string, progress func(string, int, int)) error {
	pool, err := db.Open(ctx, db.Config{URL: address})
	if err != nil {
		return err
	}
	defer pool.Close()
	memory := newMemory(pool)
	index, err := memory.LiveIndex(ctx)
	if err != nil {
		return err
	}
	rejected, err := memory.BackfillIndex(ctx, index.Name, progress)
	if err == nil && rejected != nil {
		err = rejected
	}
	if err != nil {
		return fmt.Errorf("backfill the vectors: %w", err)
	}
	return nil
}

// newMemory gives the memory that is measured.
func newMemory(pool *pgxpool.Pool) *recall.Memory {
	return recall.New(pool, recall.DefaultLimits(), recall.WithEmbedder(embed.Static{}))
}

func withConn(ctx context.Context, address string, do func(*pgx.Conn) error) (err error) {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	return do(conn)
}

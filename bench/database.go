package bench

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/pgrecall/pgrecall/bench/dataset"
	"github.com/pgrecall/pgrecall/db"
)

// load migrates the database and fills it.
func load(ctx context.Context, address string, shape dataset.Shape, progress func(string, int, int)) error {
	if _, err := db.Migrate(ctx, address); err != nil {
		return err
	}
	return withConn(ctx, address, func(conn *pgx.Conn) error {
		err := dataset.Load(ctx, conn, shape, func(messages int) { progress("load", messages, shape.Messages()) })
		if err != nil {
			return err
		}
		return dataset.Vacuum(ctx, conn)
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

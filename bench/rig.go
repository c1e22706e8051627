package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/bench/dataset"
	"github.com/pgrecall/pgrecall/db"
	"github.com/pgrecall/pgrecall/server"
)

// rig is what an operation is measured on: the server as it is, on a loopback
// address, and one connection for the bare SQL.
type rig struct {
	shape dataset.Shape
	conn  *pgx.Conn
	pool  *pgxpool.Pool
	http  *http.Client
	// api answers for the server, echo for a handler that does nothing.
	api, echo *listener
}

func newRig(ctx context.Context, address string, shape dataset.Shape) (*rig, error) {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return nil, err
	}
	pool, err := db.Open(ctx, db.Config{URL: address})
	if err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	r := &rig{shape: shape, conn: conn, pool: pool, http: &http.Client{Transport: &http.Transport{}}}
	// Requests are logged as in service, but to nobody.
	logger := slog.New(slog.NewJSONHandler(io.Discard, nil))
	empty := echo.New()
	empty.GET("/", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	if r.api, err = listen(ctx, server.New(newMemory(pool), server.Config{Logger: logger})); err == nil {
		r.echo, err = listen(ctx, empty)
	}
	if err != nil {
		return nil, errors.Join(err, r.close(ctx))
	}
	return r, nil
}

func (r *rig) close(ctx context.Context) error {
	r.http.CloseIdleConnections()
	err := errors.Join(r.api.close(), r.echo.close(), r.conn.Close(ctx))
	r.pool.Close()
	return err
}

// listener is a handler on a loopback address.
type listener struct {
	url    string
	server *http.Server
	ended  chan error
}

func listen(ctx context.Context, handler http.Handler) (*listener, error) {
	socket, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &listener{
		url:    "http://" + socket.Addr().String(),
		server: &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute},
		ended:  make(chan error, 1),
	}
	go func() { l.ended <- l.server.Serve(socket) }()
	return l, nil
}

func (l *listener) close() error {
	if l == nil {
		return nil
	}
	err := l.server.Close()
	if ended := <-l.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}

// post gives a call that sends a body and reads the whole answer.
func (r *rig) post(path string, body func() []byte) call {
	return func() func(context.Context) error {
		sent := body()
		return func(ctx context.Context) error {
			_, err := r.exchange(ctx, http.MethodPost, r.api.url+path, sent)
			return err
		}
	}
}

// exchange gives the body of the answer.
func (r *rig) exchange(ctx context.Context, method, target string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := r.http.Do(request)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %s: %s: %.200s", method, target, response.Status, answer)
	}
	return answer, nil
}

// query gives a call of a prepared statement that reads all rows.
func (r *rig) query(sql string, args func() []any) call {
	return func() func(context.Context) error {
		given := args()
		return func(ctx context.Context) error {
			rows, err := r.conn.Query(ctx, sql, given...)
			if err != nil {
				return err
			}
			for rows.Next() {
				rows.RawValues()
			}
			return rows.Err()
		}
	}
}

// inGraph is query for a statement that reads the graph of vectors. The settings
// and the statement are one transaction and one round trip.
func (r *rig) inGraph(sql string, args func() []any) call {
	const settings = `
		SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', '100', true)`
	return func() func(context.Context) error {
		batch := &pgx.Batch{}
		batch.Queue(settings)
		batch.Queue(sql, args()...)
		return func(ctx context.Context) error {
			results := r.conn.SendBatch(ctx, batch)
			_, err := results.Exec()
			if err == nil {
				var rows pgx.Rows
				if rows, err = results.Query(); err == nil {
					for rows.Next() {
						rows.RawValues()
					}
					err = rows.Err()
				}
			}
			return errors.Join(err, results.Close())
		}
	}
}

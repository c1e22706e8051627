package server_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db"
	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/server"
)

const pooledConns = 4

// states gives what each connection of a pool is set to, all of them at once.
func states(t *testing.T, pool *pgxpool.Pool) (all []string) {
	t.Helper()
	var held []*pgxpool.Conn
	defer func() {
		for _, conn := range held {
			conn.Release()
		}
	}()
	for range pooledConns {
		conn, err := pool.Acquire(t.Context())
		require.NoError(t, err)
		held = append(held, conn)
		// The settings of pgvector are there once a connection has used it.
		_, err = conn.Exec(t.Context(), `SELECT '[1]'::vector <#> '[1]'::vector`)
		require.NoError(t, err)
		var state string
		require.NoError(t, conn.QueryRow(t.Context(), `
			SELECT concat_ws(E'\n',
				current_user, session_user, current_schemas(true)::text,
				(SELECT string_agg(s.name || '=' || s.setting, E'\n' ORDER BY s.name) FROM pg_settings AS s
					WHERE s.name NOT LIKE 'transaction\_%' AND s.source NOT IN ('default', 'configuration file', 'override')),
				current_setting('hnsw.ef_search', true), current_setting('hnsw.iterative_scan', true), current_setting('hnsw.max_scan_tuples', true),
				(SELECT string_agg(l.locktype || l.mode, ',') FROM pg_locks AS l
					WHERE l.pid = pg_backend_pid() AND (l.locktype = 'advisory' OR l.relation IN (
						SELECT c.oid FROM pg_class AS c WHERE c.relnamespace = 'recall'::regnamespace)))
			)`).Scan(&state))
		all = append(all, state)
		require.Equal(t, byte('I'), conn.Conn().PgConn().TxStatus(), "an open transaction")
	}
	return all
}

// panicking is an embedder that panics at one text, and fails at another.
type panicking struct{ embed.Static }

func (p panicking) Embed(ctx context.Context, texts []string, kind embed.Kind) ([]embed.Vector, error) {
	for _, text := range texts {
		switch text {
		case "panic":
			panic("of the embedder")
		case "fail":
			return nil, errors.New("of the embedder")
		}
	}
	return p.Static.Embed(ctx, texts, kind)
}

// Whatever becomes of requests, the next that gets a connection finds it as new.
func TestAConnectionIsAsNewWhateverBecameOfARequest(t *testing.T) {
	t.Parallel()
	pool, err := db.Open(context.WithoutCancel(t.Context()), db.Config{URL: dbtest.URL(t), MaxConns: pooledConns, LockTimeout: time.Second})
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	fresh := states(t, pool)
	memory := recall.New(pool, recall.DefaultLimits(), recall.WithEmbedder(panicking{}))
	e := server.New(memory, quiet())
	ask := func(ctx context.Context, method, target, body, key string) int {
		r := request(method, "/api/memory"+target, body).WithContext(ctx)
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		recorder := httptest.NewRecorder()
		e.ServeHTTP(recorder, r)
		return recorder.Code
	}
	saying := func(thread, text string) string {
		return `{"createThread":true,"messages":[{"threadId":"` + thread + `","resourceId":"u","role":"user","content":` + quote(text) + `}]}`
	}
	bodies := []struct{ method, target, body string }{
		{http.MethodPost, "/save-messages", saying("t", "hello")},
		{http.MethodPost, "/save-messages", saying("t", "panic")},
		{http.MethodPost, "/save-messages", saying("t", "fail")},
		{http.MethodPost, "/recall", `{"resourceId":"u","vectorSearchString":"hello"}`},
		{http.MethodPost, "/recall", `{"resourceId":"u","vectorSearchString":"hello","threadConfig":{"semanticRecall":{"indexName":"absent"}}}`},
		{http.MethodPost, "/threads/t/clone", `{}`},
		{http.MethodPost, "/threads/absent/clone", `{}`},
		{http.MethodPost, "/threads/t/working-memory", `{"workingMemory":"x"}`},
		{http.MethodPost, "/threads/t/transfer", `{"resourceId":"v"}`},
		{http.MethodDelete, "/resources/u", ""},
	}
	for _, key := range []string{"", "key-"} {
		for i, b := range bodies {
			name := ""
			if key != "" {
				name = key + string(rune('a'+i))
			}
			ask(t.Context(), b.method, b.target, b.body, name)
		}
	}
	var running sync.WaitGroup
	for i := range 200 { // canceled at all stages of their work
		running.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*200*time.Microsecond)
			defer cancel()
			b := bodies[i%len(bodies)]
			ask(ctx, b.method, b.target, b.body, "")
		})
	}
	running.Wait()
	require.Eventually(t, func() bool { return pool.Stat().AcquiredConns() == 0 }, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, fresh, states(t, pool))
	var left int
	require.NoError(t, pool.QueryRow(t.Context(), `
		SELECT count(*) FROM pg_stat_activity AS a
		WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND (a.xact_start IS NOT NULL OR a.state LIKE '%in transaction%')`).Scan(&left))
	require.Zero(t, left)
}

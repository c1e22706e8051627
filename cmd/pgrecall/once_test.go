package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
)

const (
	waitForCommit = time.Minute
	pollForCommit = 5 * time.Millisecond
)

// silencer stands between a program and its database, and keeps from the program
// that the transaction of a request was committed.
type silencer struct {
	listener net.Listener
	database string // its address
	mark     string // what the connection has carried that is silenced
	silent   atomic.Bool
	conns    sync.WaitGroup
}

// newSilencer gives one before the database of a URL, and the URL that leads
// through it.
func newSilencer(t *testing.T, databaseURL, mark string) (*silencer, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address, err := url.Parse(databaseURL)
	require.NoError(t, err)
	s := &silencer{listener: listener, database: address.Host, mark: mark}
	s.conns.Go(s.accept)
	t.Cleanup(func() {
		assert.NoError(t, listener.Close())
		s.conns.Wait()
	})
	address.Host = listener.Addr().String()
	return s, address.String()
}

func (s *silencer) accept() {
	for {
		program, err := s.listener.Accept()
		if err != nil {
			return
		}
		database, err := net.Dial("tcp", s.database)
		if err != nil {
			_ = program.Close()
			continue
		}
		var committed atomic.Bool
		s.conns.Go(func() {
			defer database.Close()
			s.listen(program, database, &committed)
		})
		s.conns.Go(func() {
			defer program.Close()
			s.speak(database, program, &committed)
		})
	}
}

// listen passes on what the program says, and notes that it commits what the mark
// was in.
func (s *silencer) listen(program io.Reader, database io.Writer, committed *atomic.Bool) {
	buffer := make([]byte, 64<<10)
	marked := false
	for {
		n, err := program.Read(buffer)
		marked = marked || bytes.Contains(buffer[:n], []byte(s.mark))
		if marked && bytes.Contains(buffer[:n], []byte("commit\x00")) {
			committed.Store(true)
		}
		if err != nil {
			return
		}
		if _, err := database.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// speak passes on what the database says, until the commit.
func (s *silencer) speak(database io.Reader, program io.Writer, committed *atomic.Bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := database.Read(buffer)
		if err != nil {
			return
		}
		if committed.Load() {
			s.silent.Store(true)
			continue
		}
		if _, err := program.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// post sends a request under a key.
func (p *program) post(t *testing.T, key, target, body string) (status int, replayed bool, answer string, err error) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.base+target, strings.NewReader(body))
	if err != nil {
		return 0, false, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, false, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header.Get("Idempotent-Replayed") == "true", string(text), err
}

func TestARequestIsDoneOnceThoughTheServerWasKilledBeforeItsAnswer(t *testing.T) {
	t.Parallel()
	const message = `{"threadId":"t","resourceId":"u","role":"user","content":"Hello"}`
	for name, test := range map[string]struct{ target, body, count string }{
		"save":  {"/api/memory/save-messages", `{"createThread":true,"messages":[` + message + `]}`, `SELECT count(*) FROM recall.messages`},
		"clone": {"/api/memory/threads/t/clone", `{}`, `SELECT count(*) FROM recall.threads WHERE id <> 't'`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const key = "the-key-of-this-request"
			direct := dbtest.URL(t)
			pool := dbtest.Open(t, direct)
			if name == "clone" {
				_, err := pool.Exec(t.Context(), `INSERT INTO recall.threads (id, resource_id, created_at, updated_at) VALUES ('t', 'u', now(), now())`)
				require.NoError(t, err)
			}
			between, through := newSilencer(t, direct, key)
			first := startServing(t, "DATABASE_URL="+through)
			lost := make(chan error, 1)
			go func() {
				_, _, _, err := first.post(t, key, test.target, test.body)
				lost <- err
			}()
			// The database has said that it is committed, and the program has not heard.
			require.Eventually(t, between.silent.Load, waitForCommit, pollForCommit)
			require.Equal(t, 1, count(t, pool, `SELECT count(*) FROM recall.idempotency_keys WHERE status = 200`))
			first.kill(t)
			require.Error(t, <-lost, "nobody heard of it")

			second := startServing(t, "DATABASE_URL="+direct)
			defer second.kill(t)
			status, replayed, answer, err := second.post(t, key, test.target, test.body)
			require.NoError(t, err)
			assert.Equal(t, http.StatusOK, status, answer)
			assert.True(t, replayed)
			assert.Equal(t, 1, count(t, pool, test.count), "it is done once")
			_, _, again, err := second.post(t, key, test.target, test.body)
			require.NoError(t, err)
			assert.Equal(t, answer, again)
		})
	}
}

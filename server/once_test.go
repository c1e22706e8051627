package server_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db"
	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/server"
)

// keyed posts a body under a key.
func keyed(t *testing.T, s *httptest.Server, key, target, body string) answer {
	t.Helper()
	return callWith(t, s, "Idempotency-Key", key, http.MethodPost, target, body)
}

// wantFirst checks that an answer is a success, and one to a new request.
func (a answer) wantFirst(t *testing.T) {
	t.Helper()
	if a.status != http.StatusOK || a.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("%d %v %.200s, want a first answer", a.status, a.header, a.body)
	}
}

// wantReplayOf checks that an answer is another one over again.
func (a answer) wantReplayOf(t *testing.T, first answer) {
	t.Helper()
	if a.status != first.status || !bytes.Equal(a.body, first.body) || a.header.Get("ETag") != first.header.Get("ETag") ||
		a.header.Get("Content-Type") != first.header.Get("Content-Type") || a.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%d %v %.200s, want once more %d %v %.200s", a.status, a.header, a.body, first.status, first.header, first.body)
	}
}

// wantConflict checks that a key was found to be another request's.
func (a answer) wantConflict(t *testing.T) {
	t.Helper()
	if a.status != http.StatusConflict || !strings.Contains(a.problem(t).Error, "key") {
		t.Errorf("%d %s, want a conflict", a.status, a.body)
	}
}

func TestEveryPostIsDoneOnceUnderAKey(t *testing.T) {
	t.Parallel()
	e := detached(quiet())
	for _, route := range e.Routes() {
		if route.Method != http.MethodPost {
			continue
		}
		t.Run(route.Path, func(t *testing.T) {
			t.Parallel()
			s := filled(t)
			must(t, s, http.MethodPost, "/api/memory/threads/t/working-memory", `{"resourceId":"u","workingMemory":"first"}`)
			body := validBodies[route.Method+" "+route.Path]
			target := strings.Replace(route.Path, ":threadId", "t", 1)
			first := keyed(t, s, "k", target, body)
			first.wantFirst(t)
			keyed(t, s, "k", target, body).wantReplayOf(t, first)
			keyed(t, s, "k", target, body+" ").wantConflict(t)
			keyed(t, s, "k", target+"?agentId=other", body).wantConflict(t)
			keyed(t, s, "other", target, "{bad").problem(t)
			keyed(t, s, "other", target, body).wantFirst(t)

			must(t, s, http.MethodDelete, "/api/memory/threads/t", "")
			keyed(t, s, "k", target, body).wantReplayOf(t, first)
		})
	}
}

func TestOfFiftyRequestsUnderAKeyAtOnceOneIsDone(t *testing.T) {
	t.Parallel()
	const requests = 50
	for _, connections := range []int32{1, 2, 10} {
		t.Run(fmt.Sprint(connections), func(t *testing.T) {
			t.Parallel()
			pool, err := db.Open(context.WithoutCancel(t.Context()), db.Config{URL: dbtest.URL(t), MaxConns: connections})
			require.NoError(t, err)
			t.Cleanup(pool.Close)
			s := httptest.NewServer(server.New(recall.New(pool, recall.DefaultLimits(), recall.WithEmbedder(embed.Static{})), quiet()))
			t.Cleanup(s.Close)
			const body = `{"createThread":true,"messages":[{"threadId":"t","resourceId":"sam","role":"user","content":"Hello"}]}`
			answers := make([]answer, requests)
			var all sync.WaitGroup
			for i := range answers {
				all.Go(func() { answers[i] = keyed(t, s, "k", "/api/memory/save-messages", body) })
			}
			all.Wait()
			firsts := 0
			for _, got := range answers {
				if got.status != http.StatusOK || !bytes.Equal(got.body, answers[0].body) {
					t.Errorf("%d %s, want %s", got.status, got.body, answers[0].body)
				}
				if got.header.Get("Idempotent-Replayed") == "" {
					firsts++
				}
			}
			if saved := messageIDs(must(t, s, http.MethodGet, "/api/memory/threads/t/messages", "")); firsts != 1 || len(saved) != 1 {
				t.Errorf("%d first answers, %d messages, want one of each", firsts, len(saved))
			}
		})
	}
}

func TestABadKeyIsRefused(t *testing.T) {
	t.Parallel()
	e := detached(quiet())
	for name, values := range map[string][]string{
		"empty": {""}, "too long": {strings.Repeat("k", 256)}, "twice": {"a", "b"}, "not ASCII": {"é"}, "a tab": {"a\tb"}, "DEL": {"a\x7f"},
	} {
		eachRoute(e, "thread", func(method, path string) {
			if method != http.MethodPost {
				return
			}
			r := request(method, path, `{}`)
			r.Header["Idempotency-Key"] = values
			got := send(t, e, r)
			if got.status != http.StatusBadRequest || !slices.Equal(got.problem(t).fields(), []string{"Idempotency-Key"}) {
				t.Errorf("%s %s, %s: %d %s", method, path, name, got.status, got.body)
			}
		})
	}
}

func TestAKeyIsAnyPrintableTextToItsLimit(t *testing.T) {
	t.Parallel()
	s := attached(t)
	for _, key := range []string{"k", `"8e03978e-40d5-43dd-bc93-6894a57f9324"`, "a b~!", strings.Repeat("k", 255)} {
		const target, body = "/api/memory/threads", `{"resourceId":"sam"}`
		first := keyed(t, s, key, target, body)
		first.wantFirst(t)
		keyed(t, s, key, target, body).wantReplayOf(t, first)
	}
}

// A retry is tried afresh, and may succeed under the same key.
func TestAFailureIsNotKeptUnderItsKey(t *testing.T) {
	t.Parallel()
	s := attached(t)
	body := strings.Replace(saving("Hello"), `"createThread":true,`, "", 1)
	for range 2 {
		if got := keyed(t, s, "k", "/api/memory/save-messages", body); got.status != http.StatusNotFound || got.header.Get("ETag") != "" {
			t.Errorf("%d %v %s", got.status, got.header, got.body)
		}
	}
	must(t, s, http.MethodPost, "/api/memory/threads", `{"threadId":"t","resourceId":"sam"}`)
	keyed(t, s, "k", "/api/memory/save-messages", body).wantFirst(t)
}

func TestABodyThatIsZippedIsTheSameBody(t *testing.T) {
	t.Parallel()
	s := attached(t)
	send := func(encoding, body string) answer {
		r := request(http.MethodPost, "/api/memory/threads", body)
		r.Header.Set("Idempotency-Key", "k")
		r.Header.Set("Content-Encoding", encoding)
		return send(t, s.Config.Handler, r)
	}
	first := send("gzip", zipped(t, `{"resourceId":"sam"}`))
	first.wantFirst(t)
	send("", `{"resourceId":"sam"}`).wantReplayOf(t, first)
}

func TestBodiesAreTakenUnderAKeyToTheirLimit(t *testing.T) {
	t.Parallel()
	memory := recall.New(dbtest.New(t), recall.DefaultLimits())
	e := server.New(memory, small())
	for size, status := range map[int]int{bodyLimit: http.StatusOK, bodyLimit + 1: http.StatusRequestEntityTooLarge} {
		body := `{"threadId":"t","resourceId":"sam","ignored":"`
		body += strings.Repeat("x", size-len(body)-2) + `"}`
		r := request(http.MethodPost, "/api/memory/threads", body)
		r.Header.Set("Idempotency-Key", fmt.Sprint(size))
		if got := send(t, e, r); got.status != status {
			t.Errorf("%d bytes: %d, want %d: %s", size, got.status, status, got.body)
		}
	}
}

func TestAReplayTellsTheVersionThen(t *testing.T) {
	t.Parallel()
	s := attached(t)
	const target, body = "/api/memory/threads", `{"threadId":"t","resourceId":"sam"}`
	first := keyed(t, s, "k", target, body)
	must(t, s, http.MethodPatch, threadTarget, `{"title":"Tea"}`)
	again := keyed(t, s, "k", target, body)
	again.wantReplayOf(t, first)
	if again.header.Get("ETag") != `"1"` {
		t.Errorf("ETag %s", again.header.Get("ETag"))
	}
}

// The save commits first: those who make the vectors could not see it else. A
// repetition waits as the first does.
func TestASaveUnderAKeyWaitsForItsVectorsEachTime(t *testing.T) {
	t.Parallel()
	config := quiet()
	config.RequestTimeout = 2 * time.Second
	r := newRemote(t, config)
	save := func() answer { return keyed(t, r.Server, "k", saveAndWait, saving("The tomatoes are yellow.")) }
	late := save() // nobody works
	late.wantEmbedded(t, http.StatusAccepted, false, "m1")
	again := save()
	again.wantEmbedded(t, http.StatusAccepted, false, "m1")
	again.wantReplayOf(t, late)
	r.work(t, 1)
	eventually(t, func() bool { return slices.Equal(r.find(t, "tomatoes"), []string{"m1"}) })
	done := save()
	done.wantEmbedded(t, http.StatusOK, true, "m1")
	if done.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("%v", done.header)
	}
	keyed(t, r.Server, "second", saveAndWait, saving("The tomatoes are red.")).wantEmbedded(t, http.StatusOK, true, "m1")
}

func TestAQuestionUnderAKeyHoldsNoTransactionAndIsAskedOnce(t *testing.T) {
	t.Parallel()
	r := newRemote(t, quiet())
	say(t, r.Server, "sam", "t", "The tomatoes are yellow.")
	const target, body = "/api/memory/recall", `{"threadId":"t","perPage":0,"vectorSearchString":"tomatoes"}`
	hold := r.stub.Hold()
	asked := make(chan answer, 1)
	go func() { asked <- keyed(t, r.Server, "k", target, body) }()
	<-hold.Arrived()
	var open int
	require.NoError(t, r.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL AND backend_type = 'client backend'`).Scan(&open))
	if open != 0 {
		t.Errorf("%d transactions are open", open)
	}
	r.stub.Release()
	first := <-asked
	first.wantFirst(t)
	r.stub.Stop()
	must(t, r.Server, http.MethodDelete, threadTarget, "")
	keyed(t, r.Server, "k", target, body).wantReplayOf(t, first)
}

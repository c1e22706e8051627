package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed/embedtest"
	"github.com/pgrecall/pgrecall/recall/embed/remote"
	"github.com/pgrecall/pgrecall/recall/jobs"
	"github.com/pgrecall/pgrecall/server"
)

// remotely is a server whose embedder is a service.
type remotely struct {
	*httptest.Server
	stub     *embedtest.Stub
	url      string // of the database
	pool     *pgxpool.Pool
	memory   *recall.Memory
	embedder *remote.OpenAI
}

// manyQuestions is how many questions and documents each the embedder asks at once.
const manyQuestions = 100

// newRemote gives a server on an empty database, whose live index is for the
// service's vectors. Nobody works on its jobs yet.
func newRemote(t *testing.T, config server.Config) remotely {
	t.Helper()
	stub := embedtest.NewStub(t, 64)
	embedder, err := remote.NewOpenAI(remote.OpenAIConfig{
		BaseURL: stub.URL(), Model: "stub", Dimensions: 64, Attempts: 1, Timeout: time.Minute, Concurrency: manyQuestions,
	})
	require.NoError(t, err)
	t.Cleanup(embedder.Close)
	url := dbtest.URL(t)
	pool := dbtest.Open(t, url)
	memory := recall.New(pool, recall.DefaultLimits(), recall.WithRemoteEmbedder(embedder))
	_, err = memory.CreateIndex(t.Context(), recall.NewIndex{Name: "remote", Model: "stub", Dimensions: 64})
	require.NoError(t, err)
	require.NoError(t, memory.CutOver(t.Context(), "remote", false))
	s := httptest.NewServer(server.New(memory, config))
	t.Cleanup(func() {
		stub.Release()
		s.Close()
	})
	return remotely{s, stub, url, pool, memory, embedder}
}

// work starts workers that try so often what is rejected, and gives what stops
// them; else they stop at the test's end.
func (r remotely) work(t *testing.T, tries int) (stop func()) {
	t.Helper()
	workers, err := jobs.Start(context.WithoutCancel(t.Context()), jobs.Config{
		Pool: dbtest.Open(t, r.url), Logger: slog.New(heard), Tries: tries,
		Embed: r.memory.EmbedMessages, Model: r.embedder.Model(), Dimensions: r.embedder.Dimensions(),
	})
	require.NoError(t, err)
	stop = sync.OnceFunc(func() {
		r.stub.Release()
		assert.NoError(t, workers.Stop(context.WithoutCancel(t.Context())))
	})
	t.Cleanup(stop)
	return stop
}

// poison is in texts that the service rejects where r.stub.RejectTexts says so.
const poison = "POISON"

// find gives the messages that are found by meaning.
func (r remotely) find(t *testing.T, question string) []string {
	t.Helper()
	return ask(t, r.Server, `"resourceId":"sam"`, question, `{"topK":9,"mode":"semantic"}`)
}

// saving is the body of a save to the thread "t" of the resource "sam", with the
// ids m1, m2, ...
func saving(texts ...string) string {
	return `{"createThread":true,"messages":[` + list(len(texts), func(i int) string {
		return fmt.Sprintf(`{"id":"m%d","threadId":"t","resourceId":"sam","role":"user","content":%s}`, i+1, quote(texts[i]))
	}) + `]}`
}

func (r remotely) saved(t *testing.T) []string {
	t.Helper()
	return messageIDs(must(t, r.Server, http.MethodGet, "/api/memory/threads/t/messages", ""))
}

// begin sends a request and gives where its answer will be.
func begin(t *testing.T, s *httptest.Server, method, target, body string) <-chan answer {
	t.Helper()
	answers := make(chan answer, 1)
	go func() {
		defer close(answers)
		answers <- call(t, s, method, target, body)
	}()
	return answers
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, 2*time.Minute, 5*time.Millisecond)
}

const saveAndWait = "/api/memory/save-messages?wait=embedded"

// wantEmbedded checks what a save that waits says of its messages.
func (a answer) wantEmbedded(t *testing.T, status int, embedded bool, ids ...string) {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal(a.body, &body); err != nil || a.status != status || body["embedded"] != embedded || !slices.Equal(messageIDs(body), ids) {
		t.Errorf("%d %s, want %d with embedded %v and %q", a.status, a.body, status, embedded, ids)
	}
}

func TestASaveThatWaitsIsAnsweredOnceItsMessagesAreFound(t *testing.T) {
	t.Parallel()
	r := newRemote(t, quiet())
	r.work(t, 1)
	const question = "yellow tomatoes" // the service is asked for it once
	if got := r.find(t, question); len(got) != 0 {
		t.Fatalf("an empty memory finds %q", got)
	}
	hold := r.stub.Hold()
	save := begin(t, r.Server, http.MethodPost, saveAndWait, saving("The tomatoes are yellow.", "The roses are red."))
	<-hold.Arrived()
	if got := r.find(t, question); len(got) != 0 {
		t.Errorf("found before they are embedded: %q", got)
	}
	select {
	case got := <-save:
		t.Errorf("answered before: %d %s", got.status, got.body)
	default:
	}
	r.stub.Release()
	(<-save).wantEmbedded(t, http.StatusOK, true, "m1", "m2")
	if got := r.find(t, question); !slices.Equal(got, []string{"m1", "m2"}) {
		t.Errorf("found afterwards: %q", got)
	}
}

func TestASaveThatWaitsInVainSaysSoAndIsASave(t *testing.T) {
	t.Parallel()
	config := quiet()
	config.RequestTimeout = 2 * time.Second
	r := newRemote(t, config)
	r.work(t, 1)
	hold := r.stub.Hold()
	got := call(t, r.Server, http.MethodPost, saveAndWait, saving("The tomatoes are yellow."))
	<-hold.Arrived() // the job was under way
	got.wantEmbedded(t, http.StatusAccepted, false, "m1")
	if got := r.saved(t); !slices.Equal(got, []string{"m1"}) {
		t.Errorf("saved: %q", got)
	}
	r.stub.Release()
	eventually(t, func() bool { return slices.Equal(r.find(t, "tomatoes"), []string{"m1"}) })
}

func TestASaveDoesNotWaitForADeadJob(t *testing.T) {
	t.Parallel()
	r := newRemote(t, quiet())
	r.work(t, 1)
	r.stub.RejectTexts(poison)
	got := call(t, r.Server, http.MethodPost, saveAndWait, saving("The tomatoes are yellow.", poison))
	got.wantEmbedded(t, http.StatusAccepted, false, "m1", "m2")
	if backlog := r.backlog(t); backlog["dead"] != 1.0 {
		t.Errorf("answered with the backlog %v", backlog)
	}
	if got := r.saved(t); !slices.Equal(got, []string{"m1", "m2"}) {
		t.Errorf("saved: %q", got)
	}
	if got := r.find(t, "tomatoes"); !slices.Equal(got, []string{"m1"}) {
		t.Errorf("found: %q, want what was not rejected", got)
	}
}

func TestASaveHasItsVectorsAtOnceFromAnEmbedderInTheProcess(t *testing.T) {
	t.Parallel()
	call(t, attached(t), http.MethodPost, saveAndWait, saving("The tomatoes are yellow.")).
		wantEmbedded(t, http.StatusOK, true, "m1")
}

func TestASaveThatDoesNotWaitSaysNothingOfVectors(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*httptest.Server{"static": attached(t), "remote": newRemote(t, quiet()).Server} {
		saved := must(t, s, http.MethodPost, "/api/memory/save-messages", saving("The tomatoes are yellow."))
		if _, given := saved["embedded"]; given || len(saved) != 1 {
			t.Errorf("%s: %v, want messages alone", name, saved)
		}
	}
}

func TestWhileTheServiceIsDownWordsAreFoundAndMeaningIsA503(t *testing.T) {
	t.Parallel()
	r := newRemote(t, quiet())
	r.work(t, 1)
	r.stub.Stop()
	say(t, r.Server, "sam", "garden", "The tomatoes have yellow leaves.", "Water them less.")
	r.age(t, "sam")
	hybrid := must(t, r.Server, http.MethodPost, "/api/memory/recall", `{"threadId":"garden","perPage":0,"vectorSearchString":"tomatoes","explain":true}`)
	if got := hitIDs(hybrid); hybrid["degraded"] != true || len(got) == 0 || got[0] != "garden1" {
		t.Errorf("hybrid finds %q, degraded %v", got, hybrid["degraded"])
	}
	if explain := hybrid["explain"].(map[string]any); explain["pending"] != 2.0 || !anHour(explain["backlogSeconds"]) {
		t.Errorf("explain is %v", explain)
	}
	for method, target := range map[string]string{
		http.MethodGet:  search("searchQuery", "tomatoes", "resourceId", "sam", "memoryConfig", `{"semanticRecall":{"mode":"semantic"}}`),
		http.MethodPost: "/api/memory/recall",
	} {
		got := call(t, r.Server, method, target, `{"threadId":"garden","vectorSearchString":"tomatoes","threadConfig":{"semanticRecall":{"mode":"semantic"}}}`)
		if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
			t.Errorf("%s by meaning: %d %s, Retry-After %q", target, got.status, got.body, got.header.Get("Retry-After"))
		}
	}
	if backlog := r.backlog(t); backlog["waiting"] != 1.0 || backlog["dead"] != 0.0 {
		t.Errorf("the backlog is %v, want a job that waits for the service", backlog)
	}
}

func TestAServiceThatAsksForARestIsLeftAloneAndTheCallerIsToldHowLong(t *testing.T) {
	t.Parallel()
	r := newRemote(t, quiet())
	say(t, r.Server, "sam", "garden", "The tomatoes have yellow leaves.")
	r.stub.Fail(embedtest.TooManyRequests(10 * time.Minute))
	byMeaning := func(question string) answer {
		return call(t, r.Server, http.MethodGet,
			search("searchQuery", question, "resourceId", "sam", "memoryConfig", `{"semanticRecall":{"mode":"semantic"}}`), "")
	}
	for _, question := range []string{"tomatoes", "roses"} {
		got := byMeaning(question)
		seconds, err := strconv.Atoi(got.header.Get("Retry-After"))
		if got.status != http.StatusServiceUnavailable || err != nil || seconds < 500 || seconds > 600 {
			t.Errorf("%s: %d %s, Retry-After %q", question, got.status, got.body, got.header.Get("Retry-After"))
		}
	}
	hybrid := must(t, r.Server, http.MethodPost, "/api/memory/recall", `{"threadId":"garden","perPage":0,"vectorSearchString":"tomatoes"}`)
	if hybrid["degraded"] != true {
		t.Errorf("hybrid answers %v", hybrid)
	}
	if n := r.stub.Requests(); n != 1 {
		t.Errorf("the service was asked %d times", n)
	}
}

func TestQuestionsThatWaitForTheServiceDoNotBlockThreads(t *testing.T) {
	t.Parallel()
	r := newRemote(t, quiet())
	say(t, r.Server, "sam", "garden", "The tomatoes have yellow leaves.")
	hold := r.stub.Hold()
	recalls := make(chan answer, manyQuestions)
	for i := range manyQuestions {
		body := fmt.Sprintf(`{"threadId":"garden","vectorSearchString":"question %d"}`, i)
		go func() { recalls <- call(t, r.Server, http.MethodPost, "/api/memory/recall", body) }()
	}
	for range manyQuestions {
		<-hold.Arrived()
	}
	must(t, r.Server, http.MethodGet, "/api/memory/threads/garden", "")
	must(t, r.Server, http.MethodGet, "/api/memory/threads?resourceId=sam", "")
	must(t, r.Server, http.MethodPost, "/api/memory/threads", `{"threadId":"new","resourceId":"sam"}`)
	say(t, r.Server, "sam", "new", "Meanwhile I talk of roses.")
	must(t, r.Server, http.MethodGet, "/api/memory/threads/new/messages", "")
	if answered := len(recalls); answered != 0 {
		t.Errorf("%d of the questions were answered before", answered)
	}
	r.stub.Release()
	for range manyQuestions {
		if got := <-recalls; got.status != http.StatusOK || strings.Contains(string(got.body), "degraded") {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}

func TestAnIndexOfOtherVectorsThanTheQuestionsIsRefused(t *testing.T) {
	t.Parallel()
	r := newRemote(t, quiet())
	say(t, r.Server, "sam", "garden", "The tomatoes have yellow leaves.")
	_, err := r.memory.CreateIndex(t.Context(), recall.NewIndex{Name: "shorter", Model: "stub", Dimensions: 32})
	require.NoError(t, err)
	for _, index := range []string{"potion-base-8M", "shorter", "none"} {
		config := `{"semanticRecall":{"indexName":"` + index + `"}}`
		got := call(t, r.Server, http.MethodPost, "/api/memory/recall", `{"threadId":"garden","vectorSearchString":"tomatoes","threadConfig":`+config+`}`)
		if got.status != http.StatusBadRequest || !slices.Equal(got.problem(t).fields(), []string{"threadConfig.semanticRecall.indexName"}) {
			t.Errorf("recall with %s: %d %s", index, got.status, got.body)
		}
		got = call(t, r.Server, http.MethodGet, search("searchQuery", "tomatoes", "resourceId", "sam", "memoryConfig", config), "")
		if got.status != http.StatusBadRequest || !slices.Equal(got.problem(t).fields(), []string{"memoryConfig.semanticRecall.indexName"}) {
			t.Errorf("search with %s: %d %s", index, got.status, got.body)
		}
	}
	must(t, r.Server, http.MethodPost, "/api/memory/recall",
		`{"threadId":"garden","vectorSearchString":"tomatoes","threadConfig":{"semanticRecall":{"indexName":"remote"}}}`)
}

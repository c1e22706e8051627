package embedtest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Stub is a service with OpenAI's /v1/embeddings, for one test. Its vectors are
// those of [Words]. It counts what it is asked and fails when it is told to.
// Safe for concurrent use.
type Stub struct {
	server     *httptest.Server
	dimensions int

	mu       sync.Mutex
	key      string
	marker   string
	marked   Failure   // of requests with a text that holds marker
	failures []Failure // of the next requests
	always   *Failure  // of every request after these
	hold     *Hold
	slow     time.Duration
	requests int
	texts    []string
	sent     []int
}

// Hold keeps the requests to a [Stub] waiting.
type Hold struct {
	arrived chan struct{}
	release chan struct{}
	once    sync.Once
}

// NewStub starts a stub whose vectors have these dimensions, unless a request
// asks for others. It ends with the test.
func NewStub(t testing.TB, dimensions int) *Stub {
	t.Helper()
	s := &Stub{dimensions: dimensions}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/embeddings", s.serve)
	s.server = httptest.NewServer(mux)
	t.Cleanup(func() {
		s.Release()
		s.server.Close()
	})
	return s
}

// URL is the base URL, which ends in /v1.
func (s *Stub) URL() string { return s.server.URL + "/v1" }

// Stop ends the service; its port refuses connections from then on.
func (s *Stub) Stop() {
	s.Release()
	s.server.CloseClientConnections()
	s.server.Close()
}

// RequireKey answers 401 to requests without this key.
func (s *Stub) RequireKey(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = key
}

// RejectTexts answers 400 to requests with a text that holds marker; "" ends it.
func (s *Stub) RejectTexts(marker string) {
	s.FailTexts(marker, Status(http.StatusBadRequest))
}

// FailTexts makes requests with a text that holds marker fail; "" ends it.
func (s *Stub) FailTexts(marker string, failure Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marker, s.marked = marker, failure
}

// FailNext makes the next requests fail, one each, after those that are to
// fail already.
func (s *Stub) FailNext(failures ...Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, failures...)
}

// Fail makes every request fail, until Heal.
func (s *Stub) Fail(failure Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always = &failure
}

// Slow makes every request take so long from now on.
func (s *Stub) Slow(each time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow = each
}

// Heal ends all failures.
func (s *Stub) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures, s.always = nil, nil
}

// Hold keeps requests waiting, from now until it is released, the stub stops,
// or their callers are gone. What is answered then is what holds then.
func (s *Stub) Hold() *Hold {
	s.Release()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = &Hold{arrived: make(chan struct{}, 10_000), release: make(chan struct{})}
	return s.hold
}

// Release ends the hold, if there is one.
func (s *Stub) Release() {
	s.mu.Lock()
	hold := s.hold
	s.hold = nil
	s.mu.Unlock()
	if hold != nil {
		hold.Release()
	}
}

// Arrived gives a value for each request that has begun to wait.
func (h *Hold) Arrived() <-chan struct{} { return h.arrived }

// Release lets the waiting requests go on.
func (h *Hold) Release() { h.once.Do(func() { close(h.release) }) }

// Requests counts the requests so far, failed ones too.
func (s *Stub) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// Texts gives the texts embedded so far, in the order of arrival, prefixes
// included; those of failed requests are not among them.
func (s *Stub) Texts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.texts)
}

// SentDimensions gives the dimensions that each request asked for, 0 for none.
func (s *Stub) SentDimensions() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

// Reset sets the counts to zero.
func (s *Stub) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.texts, s.sent = 0, nil, nil
}

func (s *Stub) serve(w http.ResponseWriter, r *http.Request) {
	var body request
	if json.NewDecoder(r.Body).Decode(&body) != nil || len(body.Input) == 0 || body.Model == "" {
		writeError(w, http.StatusBadRequest)
		return
	}
	s.wait(r)
	dimensions := s.dimensions
	if body.Dimensions > 0 {
		dimensions = body.Dimensions
	}
	switch failure := s.next(r, body); {
	case failure == nil:
		writeItems(w, answer(body.Input, dimensions))
	case failure.hangs:
		<-r.Context().Done()
	default:
		failure.respond(w, dimensions, len(body.Input))
	}
}

// wait takes as long as it is to, and waits for the hold to end, if there is one.
func (s *Stub) wait(r *http.Request) {
	s.mu.Lock()
	hold, slow := s.hold, s.slow
	s.mu.Unlock()
	time.Sleep(slow)
	if hold == nil {
		return
	}
	hold.arrived <- struct{}{}
	select {
	case <-hold.release:
	case <-r.Context().Done():
	}
}

// next counts the request and says how it fails: nil for not at all.
func (s *Stub) next(r *http.Request, body request) *Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	s.sent = append(s.sent, body.Dimensions)
	failure := s.failure(r, body.Input)
	if failure == nil {
		s.texts = append(s.texts, body.Input...)
	}
	return failure
}

func (s *Stub) failure(r *http.Request, texts []string) *Failure {
	if s.key != "" && r.Header.Get("Authorization") != "Bearer "+s.key {
		return ptr(Status(http.StatusUnauthorized))
	}
	if len(s.failures) > 0 {
		failure := s.failures[0]
		s.failures = s.failures[1:]
		return &failure
	}
	if s.always != nil {
		return s.always
	}
	holds := func(text string) bool { return strings.Contains(text, s.marker) }
	if s.marker != "" && slices.ContainsFunc(texts, holds) {
		return ptr(s.marked)
	}
	return nil
}

func ptr[T any](value T) *T { return &value }

// answer gives the vectors last to first: the index counts, not the place.
func answer(texts []string, dimensions int) []item {
	all := make([]item, len(texts))
	for i, text := range texts {
		values := make([]any, dimensions)
		for j, value := range Words(text, dimensions) {
			values[j] = value
		}
		all[len(texts)-1-i] = item{Index: i, Embedding: values}
	}
	return all
}

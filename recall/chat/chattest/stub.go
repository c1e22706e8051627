// Package chattest is for the tests of what asks language models: [Stub], a service
// with OpenAI's /v1/chat/completions that fails in the ways such services do.
package chattest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Request is what a [Stub] was asked.
type Request struct {
	Model  string
	System string
	User   string
}

// Stub is a service with OpenAI's /v1/chat/completions, for one test. It remembers
// what it is asked and fails when it is told to. Safe for concurrent use.
type Stub struct {
	server *httptest.Server

	mu       sync.Mutex
	key      string
	answer   string
	failure  Failure
	models   []string // those that there are; empty for all
	hold     *Hold
	requests []Request
}

// Failure is a way in which a [Stub] answers wrongly.
type Failure func(w http.ResponseWriter)

// The failures.
var (
	// Hangup closes the connection without an answer.
	Hangup Failure = func(http.ResponseWriter) { panic(http.ErrAbortHandler) }
	// Garbage answers 200 with a page of HTML.
	Garbage = body("text/html", "<html>SECRET-KEY SECRET-TEXT</html>")
	// NoChoices answers 200 with an object that is no completion.
	NoChoices = body("application/json", `{"detail":"SECRET-TEXT"}`)
	// Empty answers with an empty text.
	Empty = completion(`"content":""`, "stop")
	// Null answers with no text at all, as models do that think until they must stop.
	Null = completion(`"content":null`, "length")
	// Refusal answers that it will not.
	Refusal = completion(`"content":null,"refusal":"I will not speak of SECRET-TEXT"`, "stop")
	// Filtered answers with a part of a text that a filter has stopped.
	Filtered = completion(`"content":"About SECRET-TEXT"`, "content_filter")
)

// Status answers with an error of this HTTP status. Its message quotes a key and a
// text, as some services' do, so that tests can see that nothing repeats it.
func Status(status int) Failure {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"message":"SECRET-KEY may not say SECRET-TEXT","type":"invalid_request_error","code":"%d"}}`, status)
	}
}

// TooManyRequests answers 429 with Retry-After, in whole seconds.
func TooManyRequests(retryAfter time.Duration) Failure {
	return func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
		Status(http.StatusTooManyRequests)(w)
	}
}

func body(kind, text string) Failure {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", kind)
		fmt.Fprint(w, text)
	}
}

func completion(message, finishReason string) Failure {
	return body("application/json", `{"id":"1","object":"chat.completion","created":1,"model":"stub","choices":[{"index":0,`+
		`"message":{"role":"assistant",`+message+`},"finish_reason":"`+finishReason+`"}]}`)
}

// Hold keeps the requests to a [Stub] waiting.
type Hold struct {
	arrived chan struct{}
	release chan struct{}
	once    sync.Once
}

// NewStub starts a stub that answers with this text. It ends with the test.
func NewStub(t testing.TB, answer string) *Stub {
	t.Helper()
	s := &Stub{answer: answer}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.serve)
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

// Answer makes it answer with this text from now on.
func (s *Stub) Answer(text string) { s.set(func() { s.answer = text }) }

// Fail makes every request fail, until Heal.
func (s *Stub) Fail(failure Failure) { s.set(func() { s.failure = failure }) }

// Heal ends the failure.
func (s *Stub) Heal() { s.set(func() { s.failure = nil }) }

// RequireKey answers 401 to requests without this key.
func (s *Stub) RequireKey(key string) { s.set(func() { s.key = key }) }

// HasModels answers 404 to requests for other models.
func (s *Stub) HasModels(names ...string) { s.set(func() { s.models = names }) }

func (s *Stub) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// Hold keeps requests waiting, from now until it is released, the stub stops, or
// their callers are gone. What is answered then is what holds then.
func (s *Stub) Hold() *Hold {
	hold := &Hold{arrived: make(chan struct{}, 10_000), release: make(chan struct{})}
	s.Release()
	s.set(func() { s.hold = hold })
	return hold
}

// Release ends the hold, if there is one.
func (s *Stub) Release() {
	var hold *Hold
	s.set(func() { hold, s.hold = s.hold, nil })
	if hold != nil {
		hold.once.Do(func() { close(hold.release) })
	}
}

// Arrived gives a value for each request that has begun to wait.
func (h *Hold) Arrived() <-chan struct{} { return h.arrived }

// Requests gives what it was asked so far, in the order of arrival, failed requests
// too.
func (s *Stub) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Stub) serve(w http.ResponseWriter, r *http.Request) {
	request, ok := read(r)
	if !ok {
		Status(http.StatusBadRequest)(w)
		return
	}
	s.set(func() { s.requests = append(s.requests, request) })
	s.wait(r)
	s.respond(r, request)(w)
}

// read reads a request of one instruction and one text, and of nothing else.
func read(r *http.Request) (Request, bool) {
	var sent struct {
		Model    string `json:"model"`
		Messages []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		} `json:"messages"`
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if decoder.Decode(&sent) != nil || sent.Model == "" || len(sent.Messages) != 2 ||
		sent.Messages[0].Role != "system" || sent.Messages[1].Role != "user" {
		return Request{}, false
	}
	return Request{sent.Model, sent.Messages[0].Content, sent.Messages[1].Content}, true
}

// wait waits for the hold to end, if there is one.
func (s *Stub) wait(r *http.Request) {
	s.mu.Lock()
	hold := s.hold
	s.mu.Unlock()
	if hold == nil {
		return
	}
	hold.arrived <- struct{}{}
	select {
	case <-hold.release:
	case <-r.Context().Done():
	}
}

// respond says what to answer.
func (s *Stub) respond(r *http.Request, request Request) Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.key != "" && r.Header.Get("Authorization") != "Bearer "+s.key:
		return Status(http.StatusUnauthorized)
	case len(s.models) > 0 && !slices.Contains(s.models, request.Model):
		return Status(http.StatusNotFound)
	case s.failure != nil:
		return s.failure
	}
	text, _ := json.Marshal(s.answer)
	return completion(`"content":`+string(text), "stop")
}

package server_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/server"
)

// quiet are the settings of a server whose log is looked at in the end only.
func quiet() server.Config { return server.Config{Logger: slog.New(heard)} }

// detached gives a server without a database: a request that gets past the
// checks of its shape ends as a 500.
func detached(config server.Config) *echo.Echo {
	return server.New(recall.New(nil, recall.DefaultLimits()), config)
}

// request builds a request whose body, if any, is JSON.
func request(method, target, body string) *http.Request {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, target, reader)
	if reader != nil {
		r.Header.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	}
	return r
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send hands a request to a handler, and checks both sides against the document.
func send(t *testing.T, handler http.Handler, r *http.Request) answer {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	heard.told(r, body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, r.Clone(t.Context())) // which it may change
	got := answer{recorder.Code, recorder.Header(), recorder.Body.Bytes()}
	published().check(t, r, body, got)
	return got
}

// problem is the body of an error.
type problem struct {
	Error  string
	Issues []issue
}

type issue struct{ Field, Message string }

func (a answer) problem(t *testing.T) problem {
	t.Helper()
	var p problem
	if err := json.Unmarshal(a.body, &p); err != nil || p.Error == "" {
		t.Errorf("%d %q is not the body of an error", a.status, a.body)
	}
	return p
}

func (p problem) fields() []string {
	var fields []string
	for _, issue := range p.Issues {
		fields = append(fields, issue.Field)
	}
	return fields
}

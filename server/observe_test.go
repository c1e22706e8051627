package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/server"
)

func TestARequestIDIsKeptWhereItIsFit(t *testing.T) {
	t.Parallel()
	e := detached(quiet())
	for id, kept := range map[string]bool{
		"a":                       true,
		"req-1 of 2":              true,
		strings.Repeat("x", 128):  true,
		strings.Repeat("x", 129):  false,
		"":                        false,
		"é":                       false,
		"a\x7f":                   false,
		"line\r\nSet-Cookie: a=b": false,
	} {
		r := request(http.MethodGet, "/healthz", "")
		r.Header.Set(echo.HeaderXRequestID, id)
		got := send(t, e, r).header.Get(echo.HeaderXRequestID)
		if got == "" || (got == id) != kept {
			t.Errorf("X-Request-Id %q came back as %q, want kept: %v", id, got, kept)
		}
	}
}

func TestTheLogHasOneLineARequestAndNothingPersonal(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	e := detached(server.Config{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	for _, target := range []string{
		"/api/memory/threads/secret/messages?resourceId=secret&perPage=x",
		"/api/memory/secret",
		"/secret",
	} {
		log.Reset()
		send(t, e, request(http.MethodGet, target, ""))
		var line map[string]any
		if err := json.Unmarshal(log.Bytes(), &line); err != nil {
			t.Fatalf("%s: the log is not one line of JSON: %q", target, log.String())
		}
		for _, name := range []string{"method", "route", "status", "duration_ms", "bytes", "request_id"} {
			if _, ok := line[name]; !ok {
				t.Errorf("%s: no %s in %s", target, name, log.String())
			}
		}
		if strings.Contains(log.String(), "secret") {
			t.Errorf("%s: the log tells: %s", target, log.String())
		}
	}
}

func TestFailuresKeepTheirCauseFromTheCaller(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		fail   echo.HandlerFunc
		status int
		logged string
	}{
		{"panic", func(echo.Context) error { panic("SELECT secret") }, 500, "observe_test.go"},
		{"error", func(echo.Context) error { return errors.New("SELECT secret") }, 500, "SELECT secret"},
		{"timeout", func(c echo.Context) error {
			<-c.Request().Context().Done()
			return context.Cause(c.Request().Context())
		}, 503, "deadline"},
	} {
		var log bytes.Buffer
		e := detached(server.Config{
			Logger:         slog.New(slog.NewJSONHandler(&log, nil)),
			RequestTimeout: time.Millisecond,
		})
		e.GET("/fail", test.fail)
		got := send(t, e, request(http.MethodGet, "/fail", ""))
		_ = got.problem(t)
		if got.status != test.status {
			t.Errorf("%s: %d, want %d", test.name, got.status, test.status)
		}
		if bytes.Contains(got.body, []byte("SELECT")) || bytes.Contains(got.body, []byte("goroutine")) {
			t.Errorf("%s: the body tells the cause: %s", test.name, got.body)
		}
		if !strings.Contains(log.String(), test.logged) {
			t.Errorf("%s: %q is not in the log: %s", test.name, test.logged, log.String())
		}
		if retry := got.header.Get(echo.HeaderRetryAfter); (retry == "1") != (test.status == 503) {
			t.Errorf("%s: Retry-After %q", test.name, retry)
		}
	}
}

package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pgrecall/pgrecall/db/dbtest"
)

func TestServeFinishesWhatRunsBeforeItStops(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	running, finish := make(chan struct{}), make(chan struct{})
	served := make(chan error, 1)
	go func() {
		served <- serve(ctx, listener, &http.Server{
			ReadHeaderTimeout: time.Second,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				close(running)
				<-finish
				_, _ = io.WriteString(w, "finished")
			}),
		}, time.Minute)
	}()
	base := "http://" + listener.Addr().String()
	answered := make(chan string, 1)
	go func() { answered <- get(t, base) }()

	<-running
	stop()
	// The listener closes before the request that runs is waited for.
	for {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			break
		}
		_ = conn.Close()
	}
	close(finish)
	if got := <-answered; got != "finished" {
		t.Errorf("the running request ended with %q", got)
	}
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
}

func get(t *testing.T, url string) string {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// lines hands over what is written to it, write by write.
type lines chan string

func (l lines) Write(text []byte) (int, error) {
	l <- string(text)
	return len(text), nil
}

func TestServeMigratesAnswersAndStops(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	out := make(lines, 10)
	code := make(chan int, 1)
	args := []string{"serve", "--migrate", "--addr=127.0.0.1:0", "--database-url=" + dbtest.EmptyURL(t)}
	go func() { code <- run(ctx, args, terminal{out: out, log: io.Discard}) }()

	text := <-out
	_, base, _ := strings.Cut(text, "The API is at ")
	base, _, _ = strings.Cut(base, "/api\n")
	if !strings.Contains(text, "curl -s "+base+"/api/memory/threads") || !strings.Contains(text, "no credentials") {
		t.Errorf("serve announces %q", text)
	}
	if got := get(t, base+"/readyz"); got != `{"status":"ready","backlog":{"waiting":0,"oldestSeconds":0,"dead":0}}` {
		t.Errorf("/readyz: %s", got)
	}
	if got := get(t, base+"/healthz"); got != `{"status":"ok"}` {
		t.Errorf("/healthz: %s", got)
	}
	if got := get(t, base+"/api/memory/search?resourceId=me&searchQuery=anything"); !strings.Contains(got, `"count":0`) {
		t.Errorf("a search, which needs the embedder: %s", got)
	}
	stop()
	if got := <-code; got != exitOK {
		t.Errorf("exit code %d, want %d", got, exitOK)
	}
}

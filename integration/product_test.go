package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/server"
)

// product is the server on a migrated database, with a client's view of it.
type product struct {
	base   string
	client *http.Client
	// process is the program; nil where the server runs inside the test.
	process *exec.Cmd
}

func startProduct(t *testing.T, p *postgres) *product {
	t.Helper()
	_, err := db.Migrate(t.Context(), p.url)
	require.NoError(t, err)
	pool, err := db.Open(t.Context(), db.Config{URL: p.url, MaxConns: 8, StatementTimeout: 10 * time.Second, LockTimeout: 10 * time.Second})
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	handler := server.New(recall.New(pool, recall.DefaultLimits()), server.Config{
		Logger:         slog.New(slog.NewTextHandler(io.Discard, nil)),
		RequestTimeout: 10 * time.Second,
	})
	served := httptest.NewServer(handler)
	t.Cleanup(served.Close)
	return &product{base: served.URL, client: served.Client()}
}

// programDir holds the program once it is built.
var programDir string

// buildProgram builds the program once for all tests.
var buildProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "pgrecall-integration-")
	if err != nil {
		return "", err
	}
	programDir = dir
	path := filepath.Join(dir, "pgrecall")
	output, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, "github.com/pgrecall/pgrecall/cmd/pgrecall").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, output)
	}
	return path, err
})

// startProgram is startProduct with the program in a process of its own, which can be killed.
func startProgram(t *testing.T, database *postgres) *product {
	t.Helper()
	p := &product{base: fmt.Sprintf("http://127.0.0.1:%d", freePort(t)), client: &http.Client{}}
	t.Cleanup(p.client.CloseIdleConnections)
	t.Cleanup(func() { _ = p.process.Process.Kill() })
	p.run(t, database)
	return p
}

// run starts the program at its address, for the first time or after a kill.
func (p *product) run(t *testing.T, database *postgres) {
	t.Helper()
	path, err := buildProgram()
	require.NoError(t, err)
	p.process = exec.Command(path, "serve", "--migrate", "--addr", strings.TrimPrefix(p.base, "http://"))
	p.process.Env = append(os.Environ(), "DATABASE_URL="+database.url)
	require.NoError(t, p.process.Start())
	require.Eventually(t, func() bool {
		got, err := p.send(t.Context(), http.MethodGet, "/readyz", "")
		return err == nil && got.status == http.StatusOK
	}, upTimeout, pollInterval, "the program does not answer")
}

// kill ends the program at once, in the middle of whatever it does.
func (p *product) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.process.Process.Kill())
	require.Error(t, p.process.Wait(), "it was killed")
}

// answer is a response, read to its end.
type answer struct {
	status     int
	retryAfter string
	body       []byte
}

// send sends a request; an empty body means none.
func (p *product) send(ctx context.Context, method, path, body string) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, p.base+path, bytes.NewBufferString(body))
	if err != nil {
		return answer{}, err
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := p.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{status: response.StatusCode, retryAfter: response.Header.Get("Retry-After"), body: text}, err
}

// must sends a request that has to succeed and decodes its answer into what out points to.
func (p *product) must(t *testing.T, method, path, body string, out any) {
	t.Helper()
	got, err := p.send(t.Context(), method, path, body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, got.status, "%s %s: %s", method, path, got.body)
	if out != nil {
		require.NoError(t, json.Unmarshal(got.body, out))
	}
}

func (p *product) createThread(t *testing.T, id string) {
	t.Helper()
	p.must(t, http.MethodPost, "/api/memory/threads", fmt.Sprintf(`{"threadId":%q,"resourceId":"user"}`, id), nil)
}

// saveBody is the body that saves one message.
func saveBody(thread, id string) string {
	return fmt.Sprintf(`{"messages":[{"id":%q,"threadId":%q,"resourceId":"user","role":"user",`+
		`"content":{"format":2,"parts":[{"type":"text","text":"message %s"}]}}]}`, id, thread, id)
}

// messageIDs reads all messages of a thread.
func (p *product) messageIDs(t *testing.T, thread string) []string {
	t.Helper()
	var got struct {
		Messages []struct{ ID string }
	}
	p.must(t, http.MethodGet, "/api/memory/threads/"+thread+"/messages?perPage=false", "", &got)
	ids := make([]string, 0, len(got.Messages))
	for _, message := range got.Messages {
		ids = append(ids, message.ID)
	}
	return ids
}

func TestMigratingTwiceAtOnceAndAgainIsFine(t *testing.T) {
	t.Parallel()
	database := startPostgres(t)
	const migrators = 4
	done := make(chan error, migrators)
	for range migrators {
		go func() {
			_, err := db.Migrate(t.Context(), database.url)
			done <- err
		}()
	}
	for range migrators {
		require.NoError(t, <-done)
	}
	applied, err := db.Migrate(t.Context(), database.url)
	require.NoError(t, err)
	require.Empty(t, applied)
	status, err := db.Status(t.Context(), database.url)
	require.NoError(t, err)
	require.Equal(t, status.Latest, status.Current)
}

func TestAThreadIsSavedRecalledAndCloned(t *testing.T) {
	t.Parallel()
	p := startProduct(t, startPostgres(t))
	p.createThread(t, "trip")
	want := make([]string, 0, 30)
	for i := range cap(want) {
		id := fmt.Sprintf("m%02d", i)
		p.must(t, http.MethodPost, "/api/memory/save-messages", saveBody("trip", id), nil)
		want = append(want, id)
	}
	require.Equal(t, want, p.messageIDs(t, "trip"))

	var page struct {
		Messages []struct{ ID string }
	}
	include := `?perPage=0&include=[{"id":"m10","withPreviousMessages":2,"withNextMessages":1}]`
	p.must(t, http.MethodGet, "/api/memory/threads/trip/messages"+include, "", &page)
	var ids []string
	for _, message := range page.Messages {
		ids = append(ids, message.ID)
	}
	require.Equal(t, []string{"m08", "m09", "m10", "m11"}, ids)

	p.must(t, http.MethodPost, "/api/memory/threads/trip/clone", `{"newThreadId":"copy"}`, nil)
	require.Len(t, p.messageIDs(t, "copy"), len(want))
	require.Equal(t, want, p.messageIDs(t, "trip"), "the source is as it was")
}

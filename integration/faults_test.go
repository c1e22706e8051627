package integration

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// writers save at the same time, each into a thread of its own.
	writers = 4
	// batch is how many saves are awaited before a fault and after it.
	batch = 100
	// saveTimeout is longer than the server may take for a request.
	saveTimeout = 30 * time.Second
)

// workload saves messages without pause and keeps count of what was acknowledged.
type workload struct {
	product *product
	stop    context.CancelFunc
	done    sync.WaitGroup

	mu           sync.Mutex
	acknowledged map[string][]string // ids by thread, in the order of their saves
	saves        int
	refused      int
	wrong        []string // answers that are neither 200 nor 503 with Retry-After

	// breaks tells that the server itself is killed: then connections may break.
	breaks bool
}

// startWorkload writes until finish is called.
func startWorkload(t *testing.T, p *product) *workload {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	w := &workload{product: p, stop: stop, acknowledged: make(map[string][]string), breaks: p.process != nil}
	for i := range writers {
		thread := fmt.Sprintf("thread-%d", i)
		p.createThread(t, thread)
		w.done.Go(func() { w.write(ctx, thread) })
	}
	t.Cleanup(w.done.Wait)
	t.Cleanup(stop)
	return w
}

func (w *workload) write(ctx context.Context, thread string) {
	for i := 0; ctx.Err() == nil; i++ {
		id := fmt.Sprintf("%s-%06d", thread, i)
		// Not ended with the workload: an answer under way must be counted.
		request, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTimeout)
		got, err := w.product.send(request, http.MethodPost, "/api/memory/save-messages", saveBody(thread, id))
		cancel()
		w.count(thread, id, got, err)
		if err != nil || got.status != http.StatusOK {
			time.Sleep(pollInterval) // a polite client; the next save is a new message
		}
	}
}

func (w *workload) count(thread, id string, got answer, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil && w.breaks:
		w.refused++
	case err != nil:
		w.wrong = append(w.wrong, err.Error())
	case got.status == http.StatusOK:
		w.acknowledged[thread] = append(w.acknowledged[thread], id)
		w.saves++
	case got.status == http.StatusServiceUnavailable && got.retryAfter != "":
		w.refused++
	default:
		w.wrong = append(w.wrong, fmt.Sprintf("%d, Retry-After %q: %s", got.status, got.retryAfter, got.body))
	}
}

func (w *workload) counts() (saves, refused int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.saves, w.refused
}

// awaitSaves waits until that many more saves are acknowledged.
func (w *workload) awaitSaves(t *testing.T, more int) {
	t.Helper()
	before, _ := w.counts()
	require.Eventually(t, func() bool {
		saves, _ := w.counts()
		return saves >= before+more
	}, upTimeout, pollInterval, "no saves: does the server not recover?")
}

// awaitRefusals waits until the fault has shown.
func (w *workload) awaitRefusals(t *testing.T) {
	t.Helper()
	_, before := w.counts()
	require.Eventually(t, func() bool {
		_, refused := w.counts()
		return refused >= before+writers
	}, upTimeout, pollInterval, "the database is away, but nothing was refused")
}

// finish ends the writers and checks that nothing acknowledged was lost.
func (w *workload) finish(t *testing.T) {
	t.Helper()
	w.stop()
	w.done.Wait()
	require.Empty(t, w.wrong, "each answer is a 200, or a 503 with Retry-After")
	for thread, acknowledged := range w.acknowledged {
		stored := w.product.messageIDs(t, thread)
		require.True(t, slices.IsSorted(stored), "%s: the order is that of the saves", thread)
		for _, id := range acknowledged {
			_, found := slices.BinarySearch(stored, id)
			require.True(t, found, "%s was acknowledged and is lost", id)
		}
	}
}

func TestNothingAcknowledgedIsLostWhenTheDatabaseIsKilled(t *testing.T) {
	t.Parallel()
	database := startPostgres(t)
	p := startProduct(t, database)
	w := startWorkload(t, p)
	w.awaitSaves(t, batch)

	database.killContainer(t)
	w.awaitRefusals(t)
	requireUnavailable(t, p, http.MethodGet, "/readyz")
	requireUnavailable(t, p, http.MethodGet, "/api/memory/threads/thread-0/messages")
	alive, err := p.send(t.Context(), http.MethodGet, "/healthz", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, alive.status, "the server itself is alive")

	database.startAgain(t)
	database.awaitUp(t)
	w.awaitSaves(t, batch)
	p.must(t, http.MethodGet, "/readyz", "", nil)
	w.finish(t)
}

func TestNothingAcknowledgedIsLostWhenAServerProcessIsKilled(t *testing.T) {
	t.Parallel()
	database := startPostgres(t)
	w := startWorkload(t, startProduct(t, database))
	for range 3 {
		w.awaitSaves(t, batch)
		database.killBackend(t)
		database.awaitUp(t)
	}
	w.awaitSaves(t, batch)
	w.finish(t)
}

func TestTheServerOutlivesARestartOfTheDatabase(t *testing.T) {
	t.Parallel()
	database := startPostgres(t)
	w := startWorkload(t, startProduct(t, database))
	w.awaitSaves(t, batch)
	patience := 30 * time.Second
	require.NoError(t, database.container.Stop(t.Context(), &patience))
	w.awaitRefusals(t)
	database.startAgain(t)
	database.awaitUp(t)
	w.awaitSaves(t, batch)
	w.finish(t)
}

func TestNothingAcknowledgedIsLostWhenTheServerIsKilled(t *testing.T) {
	t.Parallel()
	database := startPostgres(t)
	p := startProgram(t, database)
	w := startWorkload(t, p)
	for range 3 {
		w.awaitSaves(t, batch)
		p.kill(t)
		w.awaitRefusals(t)
		p.run(t, database)
	}
	w.awaitSaves(t, batch)
	w.finish(t)
}

func requireUnavailable(t *testing.T, p *product, method, path string) {
	t.Helper()
	got, err := p.send(t.Context(), method, path, "")
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, got.status, "%s %s: %s", method, path, got.body)
	require.NotEmpty(t, got.retryAfter, "%s %s", method, path)
}

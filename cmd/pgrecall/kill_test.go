package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall/embed/embedtest"
)

const (
	kills = 20
	// saversAtOnce save one message after the other.
	saversAtOnce = 4
	// savesBeforeKill are acknowledged before each kill.
	savesBeforeKill = 15
	// slowness is how long the embedder takes, so that a kill meets it at work.
	slowness = 60 * time.Millisecond
)

// program is a process that serves.
type program struct {
	command *exec.Cmd
	base    string
}

// startServing starts a process of the program and waits until it answers.
func startServing(t *testing.T, environment ...string) *program {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], "serve", "--addr=127.0.0.1:0")
	command.Env = append(os.Environ(), append(environment, asProgram+"=1")...)
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	var log strings.Builder
	command.Stderr = &log
	require.NoError(t, command.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = command.Wait()
		require.Fail(t, "it does not serve", log.String())
	}
	return &program{command, strings.TrimSuffix(strings.TrimPrefix(line, "The API is at "), "/api\n")}
}

// kill ends the process at once.
func (p *program) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.command.Process.Kill())
	_ = p.command.Wait() // says that it was killed
}

// save tells whether a save was acknowledged.
func (p *program) save(t *testing.T, id, text string) bool {
	body := fmt.Sprintf(`{"createThread":true,"messages":[{"id":%q,"threadId":"t","resourceId":"u","role":"user","content":%q}]}`, id, text)
	response, err := http.Post(p.base+"/api/memory/save-messages", "application/json", strings.NewReader(body))
	if err != nil {
		return false
	}
	return assert.NoError(t, response.Body.Close()) && response.StatusCode == http.StatusOK
}

// saveUntil saves until so many are acknowledged, then calls do and goes on until
// a save fails. It gives the ids that were acknowledged.
func (p *program) saveUntil(t *testing.T, prefix string, do func()) []string {
	var mu sync.Mutex
	var acknowledged []string
	enough := make(chan struct{})
	var writers sync.WaitGroup
	for writer := range saversAtOnce {
		writers.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%s-%d-%d", prefix, writer, i)
				if !p.save(t, id, "The text of "+id) {
					return
				}
				mu.Lock()
				if acknowledged = append(acknowledged, id); len(acknowledged) == savesBeforeKill {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	<-enough
	do()
	writers.Wait()
	return acknowledged
}

func TestNoAcknowledgedMessageLosesItsVectorWhenTheServerIsKilled(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	stub := embedtest.NewStub(t, 64)
	flag := "--database-url=" + url
	for _, args := range [][]string{
		{"index", "create", "remote", "--model=stub", "--dimensions=64", flag},
		{"index", "cutover", "remote", flag},
	} {
		got := execute(t, args...)
		require.Equal(t, exitOK, got.code, got.log)
	}
	environment := []string{
		"DATABASE_URL=" + url, "PGRECALL_EMBEDDER=openai", "PGRECALL_EMBEDDER_URL=" + stub.URL(), "PGRECALL_EMBEDDER_MODEL=stub",
		// Short, as are then the times after which a job counts as abandoned.
		"PGRECALL_EMBEDDER_TIMEOUT=500ms", "PGRECALL_EMBEDDER_TRIES=2",
	}
	pool := dbtest.Open(t, url)
	stub.FailTexts("poison", embedtest.Status(500))

	first := startServing(t, environment...)
	stub.Slow(slowness)
	require.True(t, first.save(t, "poison", "This is poison"))
	first.kill(t)
	all := []string{}
	abandoned := 0
	for round := range kills {
		p := startServing(t, environment...)
		all = append(all, p.saveUntil(t, fmt.Sprint("round", round), func() { p.kill(t) })...)
		abandoned += count(t, pool, `SELECT count(*) FROM recall.river_job WHERE state = 'running' AND queue <> 'maintenance'`)
	}
	require.Positive(t, abandoned, "no kill met a job at work")

	last := startServing(t, environment...)
	defer last.kill(t)
	require.Eventually(t, func() bool {
		return count(t, pool, `SELECT count(*) FROM recall.river_job WHERE finalized_at IS NULL AND queue <> 'maintenance'`) == 0
	}, 5*time.Minute, 100*time.Millisecond)
	rows, err := pool.Query(t.Context(), `
		SELECT m.id FROM recall.messages AS m
		WHERE EXISTS (SELECT FROM recall.embeddings_2 AS e WHERE e.message_id = m.id AND e.embedding IS NOT NULL)`)
	require.NoError(t, err)
	embedded, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	slices.Sort(embedded)
	for _, id := range all {
		_, found := slices.BinarySearch(embedded, id)
		assert.True(t, found, "%s was acknowledged and is not embedded", id)
	}
	assert.NotContains(t, embedded, "poison")
	stored := count(t, pool, `SELECT count(*) FROM recall.messages`)
	assert.Len(t, embedded, stored-1, "all but the one that fails always, also those that nobody heard of")
	assert.Equal(t, stored, count(t, pool, `SELECT count(DISTINCT content) FROM recall.messages`), "each is stored once")

	var dead struct {
		Jobs []struct{ MessageIDs []string }
	}
	got := execute(t, "jobs", "list", "--dead", "--json", flag)
	require.NoError(t, json.Unmarshal([]byte(got.out), &dead))
	require.Len(t, dead.Jobs, 1)
	assert.Equal(t, []string{"poison"}, dead.Jobs[0].MessageIDs)
}

func count(t *testing.T, pool *pgxpool.Pool, query string) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), query).Scan(&n))
	return n
}

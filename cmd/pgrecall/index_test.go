package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/embed/embedtest"
)

// filled gives a database with a thread of messages.
func filled(t *testing.T, messages int) (flag string) {
	t.Helper()
	url := dbtest.URL(t)
	memory := recall.New(dbtest.Open(t, url), recall.DefaultLimits(), recall.WithEmbedder(embed.Static{}))
	var all []recall.NewMessage
	for range messages {
		all = append(all, recall.NewMessage{ThreadID: "t", ResourceID: "u", Role: "user", Content: []byte(`"Some words"`)})
	}
	_, err := memory.SaveMessages(t.Context(), all, true)
	require.NoError(t, err)
	return "--database-url=" + url
}

func TestFromOneModelToAnotherByCommands(t *testing.T) {
	t.Parallel()
	flag := filled(t, 20)
	stub := embedtest.NewStub(t, 64)
	service := []string{"--embedder=openai", "--embedder-url=" + stub.URL(), "--embedder-model=stub", flag}
	do := func(code int, want string, args ...string) outcome {
		t.Helper()
		got := execute(t, args...)
		require.Equal(t, code, got.code, "%q: %s%s", args, got.out, got.log)
		assert.Contains(t, got.out+got.log, want, "%q", args)
		return got
	}

	do(exitFailed, "pgrecall index create NAME --model stub --dimensions 64", append([]string{"serve", "--addr=127.0.0.1:0"}, service...)...)
	do(exitFailed, "dimensions: must be between 1 and 4000", "index", "create", "new", "--model=stub", "--dimensions=4001", flag)
	do(exitUsage, "--graph", "index", "create", "new", "--model=stub", "--dimensions=64", "--graph=some", flag)
	do(exitOK, "pgrecall index backfill new", "index", "create", "new", "--model=stub", "--dimensions=64", "--graph=none", flag)
	do(exitFailed, "exists already", "index", "create", "new", "--model=stub", "--dimensions=64", flag)
	do(exitFailed, "0.0 %", "index", "cutover", "new", flag)
	do(exitFailed, "is of the model", "index", "backfill", "new", flag)
	do(exitUsage, "none makes no vectors", "index", "backfill", "new", "--embedder=none", flag)

	stub.RejectTexts("Some")
	do(exitFailed, "The embedder rejects", append([]string{"index", "backfill", "new"}, service...)...)
	stub.RejectTexts("")
	got := do(exitOK, `"missing":0`, append([]string{"index", "backfill", "new", "--json"}, service...)...)
	assert.Contains(t, got.log, "embed: 20 of 20\n")
	do(exitOK, "Now start the servers", "index", "cutover", "new", flag)
	list := decode(t, do(exitOK, "", "index", "list", "--json", flag))["indexes"].([]any)
	first, second := list[0].(map[string]any), list[1].(map[string]any)
	assert.Equal(t, "retired", first["state"])
	for key, want := range map[string]any{
		"name": "new", "state": "live", "model": "stub", "dimensions": 64.0, "graph": "none", "embedded": 20.0, "missing": 0.0,
	} {
		assert.Equal(t, want, second[key], key)
	}
	do(exitOK, "potion-base-8M", "index", "list", flag)
	do(exitFailed, "is live", "index", "drop", "new", flag)
	do(exitFailed, "roll-back", "index", "drop", "potion-base-8M", flag)
	do(exitOK, "potion-base-8M is live again.", "index", "rollback", "new", flag)
	do(exitFailed, "roll-back", "index", "drop", "new", flag)
	do(exitOK, "Dropped new.", "index", "drop", "new", "--force", flag)
	do(exitFailed, "There is no embedding index", "index", "drop", "new", flag)
}

func TestAServiceThatIsDownKeepsNoServerFromStarting(t *testing.T) {
	t.Parallel()
	flag := filled(t, 1)
	stub := embedtest.NewStub(t, 64)
	for _, args := range [][]string{{"create", "new", "--model=stub", "--dimensions=64"}, {"cutover", "new", "--force"}} {
		require.Equal(t, exitOK, execute(t, append(append([]string{"index"}, args...), flag)...).code)
	}
	stub.Stop()
	ctx, stop := context.WithCancel(t.Context())
	out, code := make(lines, 10), make(chan int, 1)
	var log strings.Builder
	args := []string{"serve", "--addr=127.0.0.1:0", flag, "--embedder=openai", "--embedder-url=" + stub.URL(), "--embedder-model=stub"}
	go func() { code <- run(ctx, args, terminal{out: out, log: io.MultiWriter(&log)}) }()
	base := strings.TrimPrefix(strings.SplitN(<-out, "/api\n", 2)[0], "The API is at ")
	assert.Contains(t, get(t, base+"/readyz"), `"status":"ready"`)
	stop()
	assert.Equal(t, exitOK, <-code)
	assert.Contains(t, log.String(), "until it answers, messages wait for their vectors")
}

func TestJobsByCommands(t *testing.T) {
	t.Parallel()
	flag := filled(t, 1)
	require.Equal(t, exitOK, execute(t, "index", "create", "new", "--model=stub", "--dimensions=64", flag).code)
	url := strings.TrimPrefix(flag, "--database-url=")
	memory := recall.New(dbtest.Open(t, url), recall.DefaultLimits(), recall.WithEmbedder(embed.Static{}))
	_, err := memory.SaveMessages(t.Context(), []recall.NewMessage{{ID: "m", ThreadID: "t", ResourceID: "u", Role: "user", Content: []byte(`"Words"`)}}, true)
	require.NoError(t, err)

	got := execute(t, "jobs", "list", flag)
	assert.Equal(t, exitOK, got.code)
	assert.Contains(t, got.out, "1 waiting, the oldest for ")
	assert.Contains(t, got.out, "embed  waiting  1 messages")
	list := decode(t, execute(t, "jobs", "list", "--json", flag))
	assert.Equal(t, []any{"m"}, list["jobs"].([]any)[0].(map[string]any)["messageIds"])
	assert.Empty(t, decode(t, execute(t, "jobs", "list", "--dead", "--json", flag))["jobs"])
	assert.JSONEq(t, `{"retried":0}`, execute(t, "jobs", "retry", "--json", flag).out)
	assert.Equal(t, exitUsage, execute(t, "jobs", "retry", "0", flag).code)
}

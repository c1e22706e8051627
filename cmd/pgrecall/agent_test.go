package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
)

func TestAgentsByCommands(t *testing.T) {
	t.Parallel()
	flag := "--database-url=" + dbtest.URL(t)
	file := filepath.Join(t.TempDir(), "agent.json")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }

	write(`{"lastMessages":-1}`)
	refused := execute(t, "agent", "set", "support", file, flag)
	assert.Equal(t, exitFailed, refused.code)
	assert.Contains(t, refused.log, "config.lastMessages")
	write("{}\n{}")
	assert.Equal(t, exitFailed, execute(t, "agent", "set", "support", file, flag).code)

	write(`{"lastMessages": 3}` + "\n")
	require.Equal(t, exitOK, execute(t, "agent", "set", "support", file, flag).code)
	got := decode(t, execute(t, "agent", "get", "support", "--json", flag))["config"].(map[string]any)
	assert.InDelta(t, 3, got["lastMessages"], 0)
	assert.Equal(t, false, got["generateTitle"])
	assert.Equal(t, map[string]any{"topK": 4.0, "messageRange": 1.0, "scope": "resource"}, got["semanticRecall"], "as the server says it")
	got = decode(t, execute(t, "agent", "get", "support", "--json", "--embedder=none", flag))["config"].(map[string]any)
	assert.Equal(t, false, got["semanticRecall"])
	assert.Equal(t, "support  {\"lastMessages\": 3}\n", execute(t, "agent", "list", flag).out)
	assert.Equal(t, exitOK, execute(t, "agent", "delete", "support", flag).code)
	assert.Equal(t, exitFailed, execute(t, "agent", "delete", "support", flag).code)
	assert.JSONEq(t, `{"agents":[]}`, execute(t, "agent", "list", "--json", flag).out)
}

package main

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
)

func TestRolesByCommand(t *testing.T) {
	t.Parallel()
	flag := "--database-url=" + dbtest.URL(t)
	name := strings.ToLower("analyst_" + rand.Text()[:8])
	t.Cleanup(func() {
		run(t.Context(), []string{"roles", "drop", name, flag}, terminal{out: t.Output(), log: t.Output()})
	})
	for range 2 { // as often as one likes
		got := execute(t, "roles", "--resource=u", "--role="+name, "--json", flag)
		require.Equal(t, exitOK, got.code, got.log)
		assert.Equal(t, map[string]any{"role": name, "resourceId": "u"}, decode(t, got))
	}
	other := execute(t, "roles", "--resource=v", "--role="+name, flag)
	assert.Equal(t, exitFailed, other.code)
	assert.Contains(t, other.log, "is bound to another resource")

	got := execute(t, "roles", "drop", name, "--json", flag)
	require.Equal(t, exitOK, got.code, got.log)
	assert.Equal(t, map[string]any{"role": name, "dropped": true}, decode(t, got))
	again := execute(t, "roles", "drop", name, flag)
	assert.Equal(t, exitFailed, again.code)
	assert.Contains(t, again.log, "does not exist")

	serving := execute(t, "roles", "--server="+name, flag)
	assert.Equal(t, exitFailed, serving.code)
	assert.Contains(t, serving.log, "CREATE ROLE")
	for _, wrong := range [][]string{{"--role=x"}, {"--resource=x"}, {"--role=recall_analyst", "--resource=x"}, {"--server=x", "--role=y", "--resource=z"}} {
		assert.Equal(t, exitUsage, execute(t, append([]string{"roles", flag}, wrong...)...).code, "%s", wrong)
	}
}

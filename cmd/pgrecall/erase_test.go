package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEraseByCommand(t *testing.T) {
	t.Parallel()
	flag := filled(t, 3)
	refused := execute(t, "erase", "u", flag)
	assert.Equal(t, exitFailed, refused.code)
	assert.Contains(t, refused.log, "PGRECALL_YES")
	assert.Equal(t, exitFailed, execute(t, "erase", "nobody", flag).code, "there is nothing to ask about")
	assert.Equal(t, exitUsage, execute(t, "erase", flag).code)

	got := execute(t, "erase", "u", "--yes", "--json", flag)
	require.Equal(t, exitOK, got.code, got.log)
	receipt := decode(t, got)
	assert.Equal(t, "u", receipt["resourceId"])
	assert.NotEmpty(t, receipt["erasedAt"])
	assert.Equal(t, map[string]any{
		"threads": 1.0, "messages": 3.0, "vectors": 3.0, "workingMemory": 0.0, "versions": 0.0, "jobs": 0.0, "idempotencyKeys": 0.0,
	}, receipt["counts"])
	again := execute(t, "erase", "u", "--yes", flag)
	assert.Equal(t, exitOK, again.code)
	assert.Contains(t, again.out, ": 0 threads, 0 messages")
}

func TestOnlyAYesIsAYes(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"y\n", "yes\n", " YES \n", "y"} {
		require.NoError(t, isYes(t.Context(), strings.NewReader(answer)), "%q", answer)
	}
	for _, answer := range []string{"", "\n", "n\n", "no\n", "yep\n"} {
		require.Error(t, isYes(t.Context(), strings.NewReader(answer)), "%q", answer)
	}
}

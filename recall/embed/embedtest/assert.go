package embedtest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/recall/embed"
)

// EqualVectors fails the test unless the vectors are equal, but for rounding.
func EqualVectors(t *testing.T, want, got []embed.Vector) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		require.Len(t, got[i], len(want[i]), "vector %d", i)
		assert.InDeltaSlice(t, []float32(want[i]), []float32(got[i]), 1e-6, "vector %d", i)
	}
}

// FailureOf gives err as the [*embed.Error] that it must be.
func FailureOf(t *testing.T, err error) *embed.Error {
	t.Helper()
	var failure *embed.Error
	require.ErrorAs(t, err, &failure)
	return failure
}

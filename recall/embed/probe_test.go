package embed_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/embed/embedtest"
)

func TestProbeGivesTheDimensions(t *testing.T) {
	t.Parallel()
	got, err := embed.Probe(t.Context(), embed.Static{})
	require.NoError(t, err)
	assert.Equal(t, 256, got)
}

func TestProbeFailsWithTheEmbedder(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, nil)
	stub.Fail(embedtest.Status(401))
	_, err := embed.Probe(t.Context(), e)
	require.ErrorIs(t, err, embed.ErrSettings)
}

func TestProbeHoldsTheEmbedderToItsWord(t *testing.T) {
	t.Parallel()
	for name, vector := range map[string]embed.Vector{"none": nil, "other dimensions": {1, 0, 0}} {
		inner := fixed()
		inner.Set("hello world", vector)
		_, err := embed.Probe(t.Context(), inner)
		require.ErrorIs(t, err, embed.ErrReply, name)
	}
}

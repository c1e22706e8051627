package embed_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/embed/embedtest"
	"github.com/pgrecall/pgrecall/recall/embed/remote"
)

// dimensions are those of the stub's vectors.
const dimensions = 8

// connect gives a stub and an embedder that asks it, and waits next to nothing
// between attempts.
func connect(t *testing.T, change func(*remote.OpenAIConfig)) (*embedtest.Stub, *remote.OpenAI) {
	t.Helper()
	stub := embedtest.NewStub(t, dimensions)
	config := remote.OpenAIConfig{BaseURL: stub.URL(), Model: "stub", Backoff: time.Nanosecond}
	if change != nil {
		change(&config)
	}
	e, err := remote.NewOpenAI(config)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return stub, e
}

func words(texts ...string) []embed.Vector {
	vectors := make([]embed.Vector, len(texts))
	for i, text := range texts {
		for _, value := range embedtest.Words(text, dimensions) {
			vectors[i] = append(vectors[i], float32(value))
		}
	}
	return vectors
}

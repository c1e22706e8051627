package embed_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/embed/embedtest"
	"github.com/pgrecall/pgrecall/recall/embed/remote"
)

func TestEmbedEachFindsTheTextsToBlame(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, nil)
	stub.RejectTexts("too long")
	var texts []string
	for i := range 32 {
		texts = append(texts, fmt.Sprintf("text %d", i))
	}
	texts[3], texts[17] = "too long", "too long as well"

	vectors, errs := embed.EmbedEach(t.Context(), e, texts, embed.Document)
	for i, text := range texts {
		if i == 3 || i == 17 {
			require.ErrorIs(t, errs[i], embed.ErrRejected)
			assert.Nil(t, vectors[i])
			continue
		}
		require.NoError(t, errs[i])
		embedtest.EqualVectors(t, words(text), vectors[i:i+1])
	}
	assert.LessOrEqual(t, stub.Requests(), 20)
}

func TestEmbedEachDoesNotSplitWhatNoTextIsToBlameFor(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 503} {
		stub, e := connect(t, func(c *remote.OpenAIConfig) { c.Attempts = 1 })
		stub.Fail(embedtest.Status(status))
		_, errs := embed.EmbedEach(t.Context(), e, []string{"a", "b", "c", "d"}, embed.Document)
		for _, err := range errs {
			require.Error(t, err)
		}
		assert.Equal(t, 1, stub.Requests())
	}
}

func TestEmbedEachOfNothing(t *testing.T) {
	t.Parallel()
	inner := fixed()
	vectors, errs := embed.EmbedEach(t.Context(), inner, nil, embed.Document)
	assert.Empty(t, vectors)
	assert.Empty(t, errs)
	assert.Zero(t, inner.Calls())
}

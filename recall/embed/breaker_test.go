package embed_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/embed/embedtest"
	"github.com/pgrecall/pgrecall/recall/embed/remote"
)

func TestAServiceOutOfReachIsLeftAloneForAMoment(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, func(c *remote.OpenAIConfig) { c.Attempts = 1 })
	asking := embed.NewBreaker(e, time.Hour)
	stub.FailNext(embedtest.Status(503))
	for range 3 {
		_, err := asking.Embed(t.Context(), []string{"a"}, embed.Query)
		require.ErrorIs(t, err, embed.ErrUnavailable)
	}
	assert.Equal(t, 1, stub.Requests())

	again := embed.NewBreaker(e, 0)
	stub.FailNext(embedtest.Status(401))
	_, err := again.Embed(t.Context(), []string{"a"}, embed.Query)
	require.ErrorIs(t, err, embed.ErrSettings)
	_, err = again.Embed(t.Context(), []string{"a"}, embed.Query)
	require.NoError(t, err, "the moment is over")
}

func TestATextThatIsRejectedClosesNothing(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, nil)
	stub.RejectTexts("bad")
	asking := embed.NewBreaker(e, time.Hour)
	_, err := asking.Embed(t.Context(), []string{"bad"}, embed.Query)
	require.ErrorIs(t, err, embed.ErrRejected)
	_, err = asking.Embed(t.Context(), []string{"good"}, embed.Query)
	require.NoError(t, err)
}

package embed_test

import (
	"context"
	"testing"
	"testing/synctest"
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

// Whoever asks meanwhile is told how much of the moment is left.
func TestAServiceIsLeftAloneAsLongAsItAsks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service := fixed()
		asking := embed.NewBreaker(service, 2*time.Second)
		ask := func() error {
			_, err := asking.Embed(t.Context(), []string{"a"}, embed.Query)
			return err
		}
		fail := func(retryAfter time.Duration) {
			service.Fail(&embed.Error{Reason: embed.ErrUnavailable, Detail: "status 429", Status: 429, RetryAfter: retryAfter})
		}
		wait := func() time.Duration {
			err := ask()
			require.ErrorIs(t, err, embed.ErrUnavailable)
			failure := embedtest.FailureOf(t, err)
			assert.Equal(t, "status 429", failure.Detail)
			return failure.RetryAfter
		}
		fail(20 * time.Second)
		assert.Equal(t, 20*time.Second, wait())
		fail(0)
		time.Sleep(15 * time.Second)
		assert.Equal(t, 5*time.Second, wait())
		assert.Equal(t, 1, service.Calls())
		time.Sleep(6 * time.Second)
		assert.Equal(t, 2*time.Second, wait(), "it did not say")
		assert.Equal(t, 2, service.Calls())
		service.Fail(nil)
		time.Sleep(3 * time.Second)
		require.NoError(t, ask())
	})
}

// waiting answers with the failures that it is given.
type waiting struct {
	embed.Embedder
	answers <-chan error
}

func (w waiting) Embed(context.Context, []string, embed.Kind) ([]embed.Vector, error) {
	return nil, <-w.answers
}

// A failure of a call that began before does not end the rest that the service has
// asked for.
func TestTheLongerRestHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answers, late := make(chan error), make(chan error)
		asking := embed.NewBreaker(waiting{fixed(), answers}, 2*time.Second)
		for range 2 {
			go func() {
				_, err := asking.Embed(t.Context(), []string{"a"}, embed.Query)
				late <- err
			}()
		}
		synctest.Wait()
		answers <- &embed.Error{Reason: embed.ErrUnavailable, RetryAfter: 20 * time.Second}
		require.Error(t, <-late)
		answers <- &embed.Error{Reason: embed.ErrUnavailable}
		assert.Equal(t, 20*time.Second, embedtest.FailureOf(t, <-late).RetryAfter)
		_, err := asking.Embed(t.Context(), []string{"a"}, embed.Query)
		assert.Equal(t, 20*time.Second, embedtest.FailureOf(t, err).RetryAfter)
	})
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

package remote

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/recall/embed"
)

func TestRetriedWaitsLongerEachTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		last := time.Now()
		var waits []time.Duration
		_, err := retried(t.Context(), 4, time.Second, func() (int, error) {
			waits = append(waits, time.Since(last))
			last = time.Now()
			return 0, &embed.Error{Reason: embed.ErrUnavailable}
		})
		require.ErrorIs(t, err, embed.ErrUnavailable)
		require.Len(t, waits, 4)
		for i, most := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second} {
			assert.LessOrEqual(t, waits[i], most)
			assert.GreaterOrEqual(t, waits[i], most/2)
		}
	})
}

func TestRetriedWaitsAsLongAsItIsAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		calls := 0
		_, err := retried(t.Context(), 3, time.Second, func() (int, error) {
			if calls++; calls == 1 {
				return 0, &embed.Error{Reason: embed.ErrUnavailable, RetryAfter: queryPatience}
			}
			return 0, nil
		})
		require.NoError(t, err)
		assert.Equal(t, queryPatience, time.Since(begin))
	})
}

func TestRetriedDoesNotWaitForAServiceThatWantsALongRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		calls := 0
		_, err := retried(t.Context(), 3, time.Second, func() (int, error) {
			calls++
			return 0, &embed.Error{Reason: embed.ErrUnavailable, RetryAfter: queryPatience + 1}
		})
		require.ErrorIs(t, err, embed.ErrUnavailable)
		assert.Equal(t, 1, calls)
		assert.Zero(t, time.Since(begin))
	})
}

func TestRetriedDoesNotWaitForADeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begin := time.Now()
		_, err := retried(ctx, 3, time.Second, func() (int, error) {
			return 0, &embed.Error{Reason: embed.ErrUnavailable, RetryAfter: 10 * time.Second}
		})
		require.ErrorIs(t, err, embed.ErrUnavailable)
		assert.Zero(t, time.Since(begin))
	})
}

func TestRetriedEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		begin := time.Now()
		_, err := retried(ctx, 3, time.Minute, func() (int, error) {
			return 0, &embed.Error{Reason: embed.ErrUnavailable}
		})
		require.ErrorIs(t, err, embed.ErrUnavailable)
		assert.Equal(t, time.Second, time.Since(begin))
	})
}

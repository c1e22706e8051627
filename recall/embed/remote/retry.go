package remote

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/pgrecall/pgrecall/recall/embed"
)

// queryPatience is the longest wait that a service can ask for within a query.
// Somebody waits for it, and holds up others: a failure at once, which says how long
// to leave the service alone, is worth more.
const queryPatience = 2 * time.Second

// retried calls call up to attempts times while it fails with embed.ErrUnavailable.
// The wait before the next call is backoff, doubled each time, or what the
// service asked for where that is longer. Where that is more than queryPatience, or
// the context ends sooner, it returns at once: the caller can use the time better.
func retried[T any](ctx context.Context, attempts int, backoff time.Duration, call func() (T, error)) (T, error) {
	for attempt := 1; ; attempt++ {
		result, err := call()
		asked := askedWait(err)
		if !errors.Is(err, embed.ErrUnavailable) || attempt == attempts || asked > queryPatience {
			return result, err
		}
		if !wait(ctx, max(spread(backoff), asked)) {
			return result, err
		}
		backoff *= 2
	}
}

// askedWait is how long the service wants to be left alone.
func askedWait(err error) time.Duration {
	var failure *embed.Error
	if errors.As(err, &failure) {
		return failure.RetryAfter
	}
	return 0
}

// spread gives a time of half of d to d, so that callers who failed together do
// not come back together.
func spread(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1) //nolint:gosec // nobody gains by guessing it
}

// wait waits for d and reports true, or false where ctx ends before: at once
// when that can be seen coming.
func wait(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

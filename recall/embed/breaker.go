package embed

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Breaker is an [Embedder] that leaves a service alone for a moment after it was
// out of reach, or for as long as the service asked for: those who ask then get the
// same error at once, instead of waiting in a row for the next one. Its errors say
// in [Error.RetryAfter] how much of that is left.
type Breaker struct {
	Embedder
	pause time.Duration

	mu     sync.Mutex
	failed error
	until  time.Time
}

// NewBreaker leaves the service alone for pause after a failure, or longer where it
// asks for that.
func NewBreaker(e Embedder, pause time.Duration) *Breaker { return &Breaker{Embedder: e, pause: pause} }

// Embed asks the embedder, unless it has just been out of reach.
func (b *Breaker) Embed(ctx context.Context, texts []string, kind Kind) ([]Vector, error) {
	if err := b.open(); err != nil {
		return nil, err
	}
	vectors, err := b.Embedder.Embed(ctx, texts, kind)
	if errors.Is(err, ErrUnavailable) || errors.Is(err, ErrSettings) {
		return nil, b.note(err)
	}
	return vectors, err
}

func (b *Breaker) open() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := time.Until(b.until)
	if left <= 0 {
		return nil
	}
	return retryAfter(b.failed, left)
}

// note gives the error with the time that is left, which an earlier failure may have
// made longer.
func (b *Breaker) note(err error) error {
	pause := b.pause
	var failure *Error
	if errors.As(err, &failure) {
		pause = max(pause, failure.RetryAfter)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if until := time.Now().Add(pause); until.After(b.until) {
		b.failed, b.until = err, until
	}
	return retryAfter(err, time.Until(b.until))
}

// retryAfter gives the failure with another RetryAfter.
func retryAfter(err error, wait time.Duration) error {
	var failure *Error
	if !errors.As(err, &failure) {
		return err
	}
	told := *failure
	told.RetryAfter = wait
	return &told
}

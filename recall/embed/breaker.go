package embed

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Breaker is an [Embedder] that leaves a service alone for a moment after it was
// out of reach: those who ask then get the same error at once, instead of waiting
// in a row for the next one.
type Breaker struct {
	Embedder
	pause time.Duration

	mu     sync.Mutex
	failed error
	until  time.Time
}

// NewBreaker leaves the service alone for pause after a failure.
func NewBreaker(e Embedder, pause time.Duration) *Breaker { return &Breaker{Embedder: e, pause: pause} }

// Embed asks the embedder, unless it has just been out of reach.
func (b *Breaker) Embed(ctx context.Context, texts []string, kind Kind) ([]Vector, error) {
	if err := b.open(); err != nil {
		return nil, err
	}
	vectors, err := b.Embedder.Embed(ctx, texts, kind)
	if errors.Is(err, ErrUnavailable) || errors.Is(err, ErrSettings) {
		b.note(err)
	}
	return vectors, err
}

func (b *Breaker) open() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Now().After(b.until) {
		return nil
	}
	return b.failed
}

func (b *Breaker) note(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed, b.until = err, time.Now().Add(b.pause)
}

package embedtest

import (
	"context"
	"maps"
	"sync"

	"github.com/pgrecall/pgrecall/recall/embed"
)

// Fixed is an embedder whose vectors the test chooses, the same for queries
// and documents. Safe for concurrent use.
type Fixed struct {
	model      string
	dimensions int

	mu      sync.Mutex
	vectors map[string]embed.Vector
	err     error
	calls   int
	texts   map[embed.Kind]int
}

var _ embed.Embedder = (*Fixed)(nil)

// NewFixed gives an embedder with these vectors, as they are: for similarities
// that mean something they should have length 1. A text that is not among them
// has no vector.
func NewFixed(dimensions int, vectors map[string]embed.Vector) *Fixed {
	return &Fixed{model: "fixed", dimensions: dimensions, vectors: maps.Clone(vectors), texts: map[embed.Kind]int{}}
}

// Model is "fixed".
func (f *Fixed) Model() string { return f.model }

// Dimensions is what NewFixed was given.
func (f *Fixed) Dimensions() int { return f.dimensions }

// MaxTokens is 0.
func (f *Fixed) MaxTokens() int { return 0 }

// LengthPrior is false.
func (f *Fixed) LengthPrior() bool { return false }

// Set gives text another vector; nil for none.
func (f *Fixed) Set(text string, vector embed.Vector) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.vectors == nil {
		f.vectors = map[string]embed.Vector{}
	}
	f.vectors[text] = vector
}

// Fail makes every call fail with err; nil ends it.
func (f *Fixed) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// Calls counts the calls of Embed so far, failed ones too.
func (f *Fixed) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Texts counts the texts of this kind embedded so far.
func (f *Fixed) Texts(kind embed.Kind) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.texts[kind]
}

// Embed gives the chosen vectors.
func (f *Fixed) Embed(ctx context.Context, texts []string, kind embed.Kind) ([]embed.Vector, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f.err != nil {
		return nil, f.err
	}
	f.texts[kind] += len(texts)
	vectors := make([]embed.Vector, len(texts))
	for i, text := range texts {
		vectors[i] = f.vectors[text]
	}
	return vectors, nil
}

package embed

import (
	"context"
	"errors"
)

// EmbedEach embeds texts together and, where the service cannot take them
// together, finds the ones to blame: for each text it gives a vector, which may
// be nil as in [Embedder], or an error. A failure that is not about the texts
// (service down, key wrong, context over) is the error of every text that it
// met; then nothing is split.
func EmbedEach(ctx context.Context, e Embedder, texts []string, kind Kind) ([]Vector, []error) {
	vectors, errs := make([]Vector, len(texts)), make([]error, len(texts))
	embedPart(ctx, e, texts, kind, vectors, errs)
	return vectors, errs
}

// embedPart halves texts until the ones to blame are alone: about two calls for
// each halving and each of them.
func embedPart(ctx context.Context, e Embedder, texts []string, kind Kind, vectors []Vector, errs []error) {
	if len(texts) == 0 {
		return
	}
	got, err := e.Embed(ctx, texts, kind)
	switch {
	case err == nil:
		copy(vectors, got)
	case len(texts) == 1 || !blamesTexts(err):
		for i := range errs {
			errs[i] = err
		}
	default:
		half := len(texts) / 2
		embedPart(ctx, e, texts[:half], kind, vectors[:half], errs[:half])
		embedPart(ctx, e, texts[half:], kind, vectors[half:], errs[half:])
	}
}

// blamesTexts is true of failures that fewer texts may not have. One text can
// also be what makes a model answer with something that is no number.
func blamesTexts(err error) bool {
	return errors.Is(err, ErrRejected) || errors.Is(err, ErrReply)
}

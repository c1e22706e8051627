package embed

import (
	"context"
	"errors"
	"net/http"
	"slices"
)

// EmbedEach embeds texts together and, where the service cannot take them
// together, finds the ones to blame. Each text has its vector in vectors, which
// may be nil as in [Embedder], or in blamed why it has none: an [*Error] with
// the reason [ErrRejected], whatever the service answered.
//
// A failure that any text would meet (service down or too busy, key wrong,
// context over) is err, and nobody is blamed for it. Then vectors and blamed
// are shorter than texts: they end before the first text that is not settled.
// What they hold is worth keeping.
//
// The two kinds of failure are told apart by [Probe], asked at most once for a
// call that fails. To find one of n texts takes about 3 log2(n) + 2 calls, the
// probes among them: 17 for one of 32, at most 30 for two.
func EmbedEach(ctx context.Context, e Embedder, texts []string, kind Kind) (vectors []Vector, blamed []error, err error) {
	vectors, blamed, err = EmbedTogether(ctx, e, texts, kind)
	if err != nil || len(texts) < 2 || blamed[0] == nil {
		return vectors, blamed, err
	}
	return embedHalves(ctx, e, texts, kind)
}

// EmbedTogether is [EmbedEach] that does not look for the texts to blame: where the
// service does not take them together, all are blamed. It makes one call and, where
// that fails, a probe.
func EmbedTogether(ctx context.Context, e Embedder, texts []string, kind Kind) (vectors []Vector, blamed []error, err error) {
	if len(texts) == 0 {
		return nil, nil, nil
	}
	vectors, err = e.Embed(ctx, texts, kind)
	if err == nil {
		return vectors, make([]error, len(texts)), nil
	}
	if failure := generalFailure(ctx, e, err); failure != nil {
		return nil, nil, failure
	}
	return make([]Vector, len(texts)), slices.Repeat([]error{rejection(err)}, len(texts)), nil
}

// embedHalves goes from left to right, so that what is settled when it ends
// early are the first of texts.
func embedHalves(ctx context.Context, e Embedder, texts []string, kind Kind) (vectors []Vector, blamed []error, err error) {
	half := len(texts) / 2
	vectors, blamed, err = EmbedEach(ctx, e, texts[:half], kind)
	if err != nil {
		return vectors, blamed, err
	}
	moreVectors, moreBlamed, err := EmbedEach(ctx, e, texts[half:], kind)
	return slices.Concat(vectors, moreVectors), slices.Concat(blamed, moreBlamed), err
}

// generalFailure gives the failure that any text meets now, or nil where the
// texts are to blame for err. The status does not tell: some services answer
// 500 to one text that the model cannot take, some 403 to one that they do not like,
// others 400 to every text.
func generalFailure(ctx context.Context, e Embedder, err error) error {
	if ctx.Err() != nil || tooBusy(err) || isGeneral(err) {
		return err
	}
	_, err = Probe(ctx, e)
	return err
}

// general is a failure that is known to be general: the probe failed too.
type general struct{ error }

// Unwrap gives the failure.
func (g *general) Unwrap() error { return g.error }

func isGeneral(err error) bool {
	var known *general
	return errors.As(err, &known)
}

// tooBusy is true of a service that wants fewer calls, not a probe on top.
func tooBusy(err error) bool {
	var failure *Error
	return errors.As(err, &failure) && failure.Status == http.StatusTooManyRequests
}

// rejection is what err means for a text that fails alone while the probe
// passes. To wait or to try again would not help it.
func rejection(err error) error {
	failure := &Error{} // stays empty for an error of another type
	errors.As(err, &failure)
	return &Error{Reason: ErrRejected, Detail: failure.Detail, Status: failure.Status}
}

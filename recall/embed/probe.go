package embed

import (
	"context"
)

// lane says beside what a call is made.
type lane int

const (
	merging lane = iota // a [Merger] may merge it with others
	alone
	probing // it waits for no other call
)

type laneKey struct{}

func laneOf(ctx context.Context) lane {
	l, _ := ctx.Value(laneKey{}).(lane)
	return l
}

// Alone marks calls that no [Merger] is to merge with others, since their texts are
// likely to fail.
func Alone(ctx context.Context) context.Context { return context.WithValue(ctx, laneKey{}, alone) }

// IsProbe says whether a call is that of [Probe], which must not wait for the calls
// that it is to tell something about.
func IsProbe(ctx context.Context) bool { return laneOf(ctx) == probing }

// probeText is plain enough for every model to have a vector for it.
const probeText = "hello world"

// Probe embeds a short text and gives the dimensions of its vector, 1 or more.
// It fails where the embedder does, or says one thing and does another.
func Probe(ctx context.Context, e Embedder) (dimensions int, err error) {
	vectors, err := e.Embed(context.WithValue(ctx, laneKey{}, probing), []string{probeText}, Document)
	if err != nil {
		return 0, err
	}
	if len(vectors) != 1 || len(vectors[0]) == 0 {
		return 0, ReplyErrorf("no vector for the probe text")
	}
	if want := e.Dimensions(); want != 0 && want != len(vectors[0]) {
		return 0, ReplyErrorf("%d dimensions, not %d", len(vectors[0]), want)
	}
	return len(vectors[0]), nil
}

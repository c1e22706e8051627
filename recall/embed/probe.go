package embed

import (
	"context"
)

// probeText is plain enough for every model to have a vector for it.
const probeText = "hello world"

// Probe embeds a short text and gives the dimensions of its vector, 1 or more.
// It fails where the embedder does, or says one thing and does another.
func Probe(ctx context.Context, e Embedder) (dimensions int, err error) {
	vectors, err := e.Embed(ctx, []string{probeText}, Document)
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

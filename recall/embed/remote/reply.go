package remote

import (
	"bytes"
	"encoding/json"
	"math"

	"github.com/pgrecall/pgrecall/recall/embed"
)

// reply is what is read of an answer to /v1/embeddings.
type reply struct {
	Data []struct {
		Index     *int            `json:"index"`
		Embedding json.RawMessage `json:"embedding"`
	} `json:"data"`
}

// readReply gives the vectors of a reply to texts texts, at least one, in the
// order of the texts and of length 1. It fails with embed.ErrReply unless there is
// exactly one for each, of finite numbers that are not all 0.
func readReply(body []byte, texts int) ([]embed.Vector, error) {
	var r reply
	if json.Unmarshal(body, &r) != nil {
		return nil, embed.ReplyErrorf("not the JSON of embeddings")
	}
	if len(r.Data) != texts {
		return nil, embed.ReplyErrorf("%d vectors for %d texts", len(r.Data), texts)
	}
	vectors := make([]embed.Vector, texts)
	for _, item := range r.Data {
		if item.Index == nil || *item.Index < 0 || *item.Index >= texts || vectors[*item.Index] != nil {
			return nil, embed.ReplyErrorf("the indexes are not 0 to %d, each once", texts-1)
		}
		vector, err := readVector(item.Embedding)
		if err != nil {
			return nil, err
		}
		vectors[*item.Index] = vector
	}
	return vectors, nil
}

func readVector(raw json.RawMessage) (embed.Vector, error) {
	var values []float64
	// Unmarshal leaves null as 0, which is how some services write NaN.
	if bytes.Contains(raw, []byte("null")) || json.Unmarshal(raw, &values) != nil {
		return nil, embed.ReplyErrorf("a vector has values that are not numbers")
	}
	return unit(values)
}

// unit gives values the length 1.
func unit(values []float64) (embed.Vector, error) {
	var largest float64
	for _, value := range values {
		largest = max(largest, math.Abs(value))
	}
	switch {
	case math.IsNaN(largest) || math.IsInf(largest, 0):
		return nil, embed.ReplyErrorf("a vector has values that are not finite")
	case largest == 0:
		return nil, embed.ReplyErrorf("a vector is zero")
	}
	var squares float64
	for _, value := range values { // scaled, since squares overflow early
		squares += (value / largest) * (value / largest)
	}
	length := math.Sqrt(squares)
	vector := make(embed.Vector, len(values))
	for i, value := range values {
		vector[i] = float32(value / largest / length)
	}
	return vector, nil
}

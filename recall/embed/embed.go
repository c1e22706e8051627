// Package embed turns texts into vectors for semantic recall.
//
// [Static] runs in the process and needs nothing. The package remote asks any
// service with OpenAI's /v1/embeddings. No embedder at all is a nil [Embedder].
// [Cache] keeps the vectors of questions, [Chunks] cuts texts that are too long
// for one vector, [Probe] asks an embedder for its dimensions, [EmbedEach] finds
// the texts that a service cannot embed, [Merger] makes one call of many small ones.
//
// What every embedder keeps:
//
//   - The inner product of a query vector and a document vector is their
//     similarity, -1 to 1, whichever embedder made them.
//   - A vector is finite and not zero. A text without meaning to the model has
//     no vector: nil.
//   - Errors never carry a text or a key.
package embed

import "context"

// Kind says what a text is for. Some models want to be told.
type Kind string

// The kinds of text.
const (
	Query    Kind = "query"    // a question
	Document Kind = "document" // a message, or a chunk of one
)

// Vector is the embedding of one text. It may be shared: do not change it.
type Vector []float32

// Embedder turns texts into vectors. Its methods may be called concurrently.
type Embedder interface {
	// Model names the model; vectors of different models do not compare.
	Model() string
	// Dimensions is the length of every vector, 0 while it is not known yet.
	Dimensions() int
	// MaxTokens is how many tokens of a text the model reads, 0 when unknown
	// or unlimited.
	MaxTokens() int
	// LengthPrior is true where document vectors are shorter than 1 so that
	// texts of few or common words score lower: the similarity is then
	// cosine * |v| / (|v| + 150), v being the sum of the token rows. Elsewhere
	// vectors have length 1 and the similarity is the cosine.
	LengthPrior() bool
	// Embed gives one vector a text, in the order of texts; nil for a text that
	// has none. It gives all or fails. It ends in bounded time also under a
	// context that has no deadline. Failures are an [*Error], or
	// context.Canceled once ctx is cancelled.
	Embed(ctx context.Context, texts []string, kind Kind) ([]Vector, error)
}

package recall

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pgrecall/pgrecall/dbgen"
	"github.com/pgrecall/pgrecall/recall/embed"
)

// CheckEmbedder fails unless the live index has the embedder's vectors.
func (m *Memory) CheckEmbedder(ctx context.Context) error {
	if m.embedder == nil {
		return nil
	}
	live, err := m.queries.EmbeddingIndexLive(ctx, m.pool)
	if isNoRows(err) {
		return fmt.Errorf("no embedding index is live")
	}
	if err != nil {
		return databaseError(err)
	}
	if live.Model != m.embedder.Model() || int(live.Dimensions) != m.embedder.Dimensions() {
		return fmt.Errorf("the live index %q is of the model %q with %d dimensions, the embedder of %q with %d",
			live.Name, live.Model, live.Dimensions, m.embedder.Model(), m.embedder.Dimensions())
	}
	return nil
}

// written is a message that a transaction has just written.
type written struct {
	id    string
	text  string // what is embedded; empty for nothing
	fresh bool   // it was not there before
}

// embedWritten brings the vectors of messages in line with their texts, in the
// transaction that wrote them. A text that has its vectors already is not
// embedded again.
func (m *Memory) embedWritten(ctx context.Context, tx pgx.Tx, messages []written) error {
	hashes := make(map[string][]byte, len(messages))
	var known dbgen.EmbeddingForgetManyParams
	for _, message := range messages {
		hash := []byte{}
		if message.text != "" {
			sum := sha256.Sum256([]byte(message.text))
			hash = sum[:]
		}
		hashes[message.id] = hash
		if !message.fresh {
			known.MessageIds = append(known.MessageIds, message.id)
			known.TextHashes = append(known.TextHashes, hash)
		}
	}
	stored := map[string]bool{}
	if len(known.MessageIds) > 0 {
		if err := m.queries.EmbeddingForgetMany(ctx, tx, known); err != nil {
			return err
		}
	}
	if m.embedder == nil {
		return nil
	}
	if len(known.MessageIds) > 0 {
		ids, err := m.queries.EmbeddingListStored(ctx, tx, dbgen.EmbeddingListStoredParams{
			MessageIds: known.MessageIds, TextHashes: known.TextHashes,
			Model: m.embedder.Model(), Dimensions: int32(m.embedder.Dimensions()),
		})
		if err != nil {
			return err
		}
		for _, id := range ids {
			stored[id] = true
		}
	}
	return m.embedTexts(ctx, tx, messages, func(w written) ([]byte, bool) {
		return hashes[w.id], w.text != "" && !stored[w.id]
	})
}

// embedTexts embeds the messages that wanted picks, and stores their vectors.
func (m *Memory) embedTexts(ctx context.Context, tx pgx.Tx, messages []written, wanted func(written) ([]byte, bool)) error {
	var texts []string
	params := dbgen.EmbeddingStoreManyParams{
		Model: m.embedder.Model(), Dimensions: int32(m.embedder.Dimensions()),
	}
	for _, message := range messages {
		hash, ok := wanted(message)
		if !ok {
			continue
		}
		for i, chunk := range embed.Chunks(message.text, m.embedder.MaxTokens()) {
			texts = append(texts, chunk)
			params.MessageIds = append(params.MessageIds, message.id)
			params.Chunks = append(params.Chunks, int16(i))
			params.TextHashes = append(params.TextHashes, hash)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	vectors, err := m.embedder.Embed(ctx, texts, embed.Document)
	if err != nil {
		return embedderError(err)
	}
	params.Numbers = make([]float32, 0, len(vectors)*m.embedder.Dimensions())
	for _, vector := range vectors {
		params.HasVectors = append(params.HasVectors, vector != nil)
		params.Numbers = append(params.Numbers, vector...)
	}
	return m.queries.EmbeddingStoreMany(ctx, tx, params)
}

// embedderError turns what an embedder reports into an [*Error].
func embedderError(err error) error {
	var failed *embed.Error
	if errors.As(err, &failed) {
		return &Error{Code: CodeUnavailable, Message: "The embedder is out of reach", cause: err}
	}
	return err
}

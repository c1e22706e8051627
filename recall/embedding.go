package recall

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

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

// hash tells texts apart; empty where nothing is embedded.
func (w written) hash() []byte {
	if w.text == "" {
		return []byte{}
	}
	sum := sha256.Sum256([]byte(w.text))
	return sum[:]
}

// embedWritten brings the vectors of messages in line with their texts, in the
// transaction that wrote them. A text that has its vectors already is not
// embedded again.
func (m *Memory) embedWritten(ctx context.Context, tx pgx.Tx, messages []written) error {
	var known dbgen.EmbeddingForgetManyParams
	for _, message := range messages {
		if !message.fresh {
			known.MessageIds = append(known.MessageIds, message.id)
			known.TextHashes = append(known.TextHashes, message.hash())
		}
	}
	if len(known.MessageIds) > 0 {
		if err := m.queries.EmbeddingForgetMany(ctx, tx, known); err != nil {
			return err
		}
	}
	if m.embedder == nil {
		return nil
	}
	stored, err := m.storedVectors(ctx, tx, known)
	if err != nil {
		return err
	}
	slices.Sort(stored)
	return m.embedTexts(ctx, tx, slices.DeleteFunc(messages, func(w written) bool {
		_, has := slices.BinarySearch(stored, w.id)
		return has || w.text == ""
	}))
}

// storedVectors gives the messages whose texts have their vectors already.
func (m *Memory) storedVectors(ctx context.Context, tx pgx.Tx, known dbgen.EmbeddingForgetManyParams) ([]string, error) {
	if len(known.MessageIds) == 0 {
		return nil, nil
	}
	return m.queries.EmbeddingListStored(ctx, tx, dbgen.EmbeddingListStoredParams{
		MessageIds: known.MessageIds, TextHashes: known.TextHashes,
		Model: m.embedder.Model(), Dimensions: int32(m.embedder.Dimensions()),
	})
}

// embedTexts embeds messages and stores their vectors.
func (m *Memory) embedTexts(ctx context.Context, tx pgx.Tx, messages []written) error {
	var texts []string
	params := dbgen.EmbeddingStoreManyParams{
		Model: m.embedder.Model(), Dimensions: int32(m.embedder.Dimensions()),
	}
	for _, message := range messages {
		hash := message.hash()
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

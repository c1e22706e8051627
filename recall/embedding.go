package recall

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/pgrecall/pgrecall/dbgen"
	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/jobs"
)

// written is a message that a transaction has just written.
type written struct {
	id         string
	threadID   string
	resourceID string
	text       string // what is embedded; empty for nothing
	fresh      bool   // it was not there before
}

// hash tells texts apart; empty where nothing is embedded.
func (w written) hash() []byte {
	if w.text == "" {
		return []byte{}
	}
	sum := sha256.Sum256([]byte(w.text))
	return sum[:]
}

// knownOf gives those of messages that were there before, with the hashes of their
// texts.
func knownOf(messages []written) (known dbgen.EmbeddingForgetManyParams) {
	for _, message := range messages {
		if !message.fresh {
			known.MessageIds = append(known.MessageIds, message.id)
			known.TextHashes = append(known.TextHashes, message.hash())
		}
	}
	return known
}

func (w written) hasText() bool { return w.text != "" }

// embedWritten brings the vectors of messages in line with their texts, in the
// transaction that wrote them: at once where the embedder is in the process, and
// by a job of that transaction for every other model that an index is in use of. A
// text that has its vectors already is not embedded again.
func (m *Memory) embedWritten(ctx context.Context, tx pgx.Tx, messages []written) error {
	known := knownOf(messages)
	if len(known.MessageIds) > 0 {
		if err := m.queries.EmbeddingForgetMany(ctx, tx, known); err != nil {
			return err
		}
	}
	return m.embedLacking(ctx, tx, messages, known)
}

// embedLacking gives messages the vectors that they lack: all of the fresh, and
// those that are due of the known.
func (m *Memory) embedLacking(ctx context.Context, tx pgx.Tx, messages []written, known dbgen.EmbeddingForgetManyParams) error {
	if m.embedder == nil || !slices.ContainsFunc(messages, written.hasText) {
		return nil
	}
	models, err := m.due(ctx, tx, known)
	if err != nil {
		return err
	}
	for _, model := range models {
		lacking := slices.DeleteFunc(slices.Clone(messages), func(w written) bool {
			return !w.hasText() || !w.fresh && !slices.Contains(model.MessageIds, w.id)
		})
		if err := m.embedFor(ctx, tx, model, lacking); err != nil {
			return err
		}
	}
	return nil
}

// due gives the models that vectors are due of, each with those of the messages
// that lack them.
func (m *Memory) due(ctx context.Context, db dbgen.DBTX, known dbgen.EmbeddingForgetManyParams) ([]dbgen.EmbeddingListDueRow, error) {
	return m.queries.EmbeddingListDue(ctx, db, dbgen.EmbeddingListDueParams{
		MessageIds: append([]string{}, known.MessageIds...), TextHashes: append([][]byte{}, known.TextHashes...),
		Model: m.embedder.Model(), Dimensions: int32(m.embedder.Dimensions()),
	})
}

// isOurs says whether the embedder makes vectors of a model.
func (m *Memory) isOurs(model string, dimensions int32) bool {
	return model == m.embedder.Model() && int(dimensions) == m.embedder.Dimensions()
}

// embedFor gives messages the vectors of a model: now, or by jobs.
func (m *Memory) embedFor(ctx context.Context, tx pgx.Tx, model dbgen.EmbeddingListDueRow, messages []written) error {
	if len(messages) == 0 {
		return nil
	}
	if m.remote || !m.isOurs(model.Model, model.Dimensions) {
		return m.queue.InsertEmbed(ctx, tx, model.Model, int(model.Dimensions), embedJobs(messages))
	}
	return m.embedNow(ctx, tx, messages)
}

// embedNow gives messages the vectors of the embedder, in tx.
func (m *Memory) embedNow(ctx context.Context, tx pgx.Tx, messages []written) error {
	all, texts := m.cut(messages)
	vectors, err := m.embedder.Embed(ctx, texts, embed.Document)
	if err != nil {
		return embedderError(err)
	}
	for i := range all {
		vectors = all[i].take(vectors)
	}
	return m.storeVectors(ctx, tx, all)
}

// embedJobs shares messages out among jobs, each of one thread.
func embedJobs(messages []written) []jobs.Embed {
	var all []jobs.Embed
	open := make(map[string]int) // the job of a thread that has room
	for _, message := range messages {
		i, ok := open[message.threadID]
		if !ok || len(all[i].MessageIDs) == jobs.EmbedBatch {
			i = len(all)
			open[message.threadID] = i
			all = append(all, jobs.Embed{ResourceID: message.resourceID, ThreadID: message.threadID})
		}
		all[i].MessageIDs = append(all[i].MessageIDs, message.id)
	}
	return all
}

// embedding is a message with its chunks, and then with their vectors.
type embedding struct {
	written
	chunks  []string
	vectors []embed.Vector
}

// cut cuts messages into what is embedded, and gives all of that in their order.
func (m *Memory) cut(messages []written) (all []embedding, texts []string) {
	for _, message := range messages {
		chunks := embed.Chunks(message.text, m.embedder.MaxTokens())
		all = append(all, embedding{written: message, chunks: chunks})
		texts = append(texts, chunks...)
	}
	return all, texts
}

// take takes a message's own from the front of vectors, and gives the rest.
func (e *embedding) take(vectors []embed.Vector) []embed.Vector {
	e.vectors = vectors[:len(e.chunks)]
	return vectors[len(e.chunks):]
}

// storeVectors stores the vectors of messages in the indexes of the embedder's
// model. A message without a text gets an entry too, so as not to seem to lack one.
func (m *Memory) storeVectors(ctx context.Context, tx pgx.Tx, messages []embedding) error {
	params := dbgen.EmbeddingStoreManyParams{
		Numbers: []float32{}, Model: m.embedder.Model(), Dimensions: int32(m.embedder.Dimensions()),
	}
	for _, message := range messages {
		vectors := message.vectors
		if len(vectors) == 0 {
			vectors = []embed.Vector{nil}
		}
		hash := message.hash()
		for i, vector := range vectors {
			params.MessageIds = append(params.MessageIds, message.id)
			params.Chunks = append(params.Chunks, int16(i))
			params.TextHashes = append(params.TextHashes, hash)
			params.HasVectors = append(params.HasVectors, vector != nil)
			params.Numbers = append(params.Numbers, vector...)
		}
	}
	indexes, err := m.queries.EmbeddingStoreMany(ctx, tx, params)
	if err == nil && indexes == 0 {
		return errNoIndex
	}
	return err
}

// errNoIndex keeps vectors from vanishing that no index is for.
var errNoIndex = errors.New("there is no embedding index for the embedder's vectors")

// embedderError turns what an embedder reports into an [*Error].
func embedderError(err error) error {
	var failed *embed.Error
	if errors.As(err, &failed) {
		return &Error{Code: CodeUnavailable, Message: "The embedder is out of reach", RetryAfter: failed.RetryAfter, cause: err}
	}
	return err
}

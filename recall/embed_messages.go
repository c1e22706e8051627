package recall

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/pgrecall/pgrecall/dbgen"
	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/jobs"
)

// groupTexts is how many texts are embedded before their vectors are stored: what
// a failure or a kill can undo.
const groupTexts = 256

// EmbedMessages gives messages their vectors, as far as they are there, have a text
// and lack them. No connection is held while the embedder is asked. A message that
// the embedder cannot embed is in a [*jobs.Rejected], after all others have been
// embedded; any other error means that it is worth trying again.
func (m *Memory) EmbedMessages(ctx context.Context, ids []string) error {
	rejected, err := m.embedMessages(ctx, ids)
	if err != nil {
		return err
	}
	if rejected != nil {
		return rejected
	}
	return nil
}

// embedMessages tells what is rejected from what fails.
func (m *Memory) embedMessages(ctx context.Context, ids []string) (*jobs.Rejected, error) {
	lacking, err := m.lacking(ctx, ids)
	if err != nil {
		return nil, err
	}
	var rejected *jobs.Rejected
	for group := range m.groups(lacking) {
		refused, err := m.embedGroup(ctx, group)
		rejected = also(rejected, refused)
		if err != nil {
			return rejected, err
		}
	}
	return rejected, nil
}

// also adds what else is rejected, of which either may be nothing.
func also(rejected, more *jobs.Rejected) *jobs.Rejected {
	switch {
	case rejected == nil:
		return more
	case more == nil:
		return rejected
	default:
		return &jobs.Rejected{MessageIDs: slices.Concat(rejected.MessageIDs, more.MessageIDs), Cause: rejected.Cause}
	}
}

// lacking reads the messages that lack vectors of the embedder's model.
func (m *Memory) lacking(ctx context.Context, ids []string) ([]written, error) {
	messages, err := m.contents(ctx, m.db, ids)
	if err != nil || len(messages) == 0 {
		return nil, databaseError(err)
	}
	models, err := m.due(ctx, m.db, knownOf(messages))
	if err != nil {
		return nil, databaseError(err)
	}
	i := slices.IndexFunc(models, func(r dbgen.EmbeddingListDueRow) bool { return m.isOurs(r.Model, r.Dimensions) })
	if i < 0 {
		return nil, errNoIndex
	}
	return slices.DeleteFunc(messages, func(w written) bool { return !slices.Contains(models[i].MessageIds, w.id) }), nil
}

// contents reads what messages say now.
func (m *Memory) contents(ctx context.Context, db dbgen.DBTX, ids []string) ([]written, error) {
	rows, err := m.queries.MessageListContents(ctx, db, ids)
	messages := make([]written, len(rows))
	for i, row := range rows {
		messages[i] = written{id: row.ID, text: embeddedText(row.Role, row.Content)}
	}
	return messages, err
}

// groups shares messages out among groups of about groupTexts texts.
func (m *Memory) groups(messages []written) iter.Seq[[]written] {
	return func(yield func([]written) bool) {
		var group []written
		texts := 0
		for i, message := range messages {
			group = append(group, message)
			texts += max(1, len(embed.Chunks(message.text, m.embedder.MaxTokens())))
			if texts < groupTexts && i < len(messages)-1 {
				continue
			}
			if !yield(group) {
				return
			}
			group, texts = nil, 0
		}
	}
}

// embedGroup embeds messages and stores the vectors of those whose texts are still
// the same. Those that come after a general failure are left for the next time.
func (m *Memory) embedGroup(ctx context.Context, messages []written) (*jobs.Rejected, error) {
	all, texts := m.cut(messages)
	vectors, blamed, failure := embed.EmbedEach(ctx, m.embedder, texts, embed.Document)
	var rejected *jobs.Rejected
	var done []embedding
	for _, message := range all {
		chunks := len(message.chunks)
		if chunks > len(vectors) {
			break
		}
		if cause := cmp.Or(blamed[:chunks]...); cause != nil {
			rejected = also(rejected, &jobs.Rejected{MessageIDs: []string{message.id}, Cause: cause})
		}
		vectors, blamed = message.take(vectors), blamed[chunks:]
		done = append(done, message)
	}
	if rejected != nil {
		done = slices.DeleteFunc(done, func(e embedding) bool { return slices.Contains(rejected.MessageIDs, e.id) })
	}
	if err := m.storeUnchanged(ctx, done); err != nil {
		return rejected, err
	}
	return rejected, failure
}

// storeUnchanged stores the vectors of messages in one transaction. A message that
// was deleted or edited meanwhile gets none: its edit has brought a job of its own.
func (m *Memory) storeUnchanged(ctx context.Context, messages []embedding) error {
	if len(messages) == 0 {
		return nil
	}
	ids := make([]string, len(messages))
	for i, message := range messages {
		ids[i] = message.id
	}
	return m.write(ctx, func(tx pgx.Tx) error {
		if _, err := m.queries.ThreadLockManyOfMessages(ctx, tx, ids); err != nil {
			return err
		}
		current, err := m.contents(ctx, tx, ids)
		if err != nil {
			return err
		}
		texts := make(map[string]string)
		for _, message := range current {
			texts[message.id] = message.text
		}
		unchanged := slices.DeleteFunc(slices.Clone(messages), func(e embedding) bool {
			text, there := texts[e.id]
			return !there || text != e.text
		})
		if len(unchanged) == 0 {
			return nil
		}
		return m.storeVectors(ctx, tx, unchanged)
	})
}

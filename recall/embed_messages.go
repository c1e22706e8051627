package recall

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/pgrecall/pgrecall/dbgen"
	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/jobs"
)

const (
	// groupTexts is how many texts are embedded before their vectors are stored, where
	// the embedder does not say how many it takes at once: what a failure or a kill
	// can undo.
	groupTexts = 256
	// groupsAtOnce is how many groups of texts are embedded at once.
	groupsAtOnce = 8
)

// EmbedMessages gives messages their vectors, as far as they are there, have a text
// and lack them. No connection is held while the embedder is asked. Messages that it
// does not take together are in a [*jobs.Rejected], and with them those that were
// not tried any more; all others have their vectors. Of one message alone it says
// that it cannot be embedded. Any other error means that it is worth trying again.
func (m *Memory) EmbedMessages(ctx context.Context, ids []string) error {
	if err := m.caller.mayWrite(); err != nil {
		return err
	}
	rejected, err := m.embedMessages(ctx, ids, together)
	if err != nil {
		return err
	}
	if rejected != nil {
		return rejected
	}
	return nil
}

// manner is how messages are embedded.
type manner struct {
	texts func(context.Context, embed.Embedder, []string, embed.Kind) ([]embed.Vector, []error, error)
	// goesOn is true where a rejection does not keep others from being tried.
	goesOn bool
}

var (
	// together takes no longer than a job has, whatever the service does.
	together = manner{texts: embed.EmbedTogether}
	// oneByOne finds the messages to blame, however long that takes.
	oneByOne = manner{texts: embed.EmbedEach, goesOn: true}
)

// embedMessages tells what is rejected from what fails.
func (m *Memory) embedMessages(ctx context.Context, ids []string, how manner) (*jobs.Rejected, error) {
	lacking, err := m.lacking(ctx, ids)
	if err != nil {
		return nil, err
	}
	return m.embedGroups(ctx, slices.Collect(m.groups(lacking)), how)
}

// embedGroups embeds several groups at once. Each fails on its own: what the others
// have embedded is stored.
func (m *Memory) embedGroups(ctx context.Context, groups [][]written, how manner) (*jobs.Rejected, error) {
	rejections, failures := make([]*jobs.Rejected, len(groups)), make([]error, len(groups))
	var failed, refused atomic.Bool
	var running errgroup.Group
	running.SetLimit(groupsAtOnce)
	for i, group := range groups {
		running.Go(func() error {
			switch {
			case failed.Load():
			case refused.Load() && !how.goesOn:
				rejections[i] = &jobs.Rejected{MessageIDs: idsOf(group)}
			default:
				rejections[i], failures[i] = m.embedGroup(ctx, group, how)
				failed.CompareAndSwap(false, failures[i] != nil)
				refused.CompareAndSwap(false, rejections[i] != nil)
			}
			return nil
		})
	}
	_ = running.Wait() // they are in failures
	var rejected *jobs.Rejected
	for _, one := range rejections {
		rejected = also(rejected, one)
	}
	return rejected, cmp.Or(failures...)
}

func idsOf(messages []written) []string {
	ids := make([]string, len(messages))
	for i, message := range messages {
		ids[i] = message.id
	}
	return ids
}

// also adds what else is rejected, of which either may be nothing.
func also(rejected, more *jobs.Rejected) *jobs.Rejected {
	switch {
	case rejected == nil:
		return more
	case more == nil:
		return rejected
	default:
		return &jobs.Rejected{
			MessageIDs: slices.Concat(rejected.MessageIDs, more.MessageIDs), Cause: cmp.Or(rejected.Cause, more.Cause),
		}
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
	rows, err := m.queries.MessageListContents(ctx, db, dbgen.MessageListContentsParams{Ids: ids, Reach: m.reach()})
	messages := make([]written, len(rows))
	for i, row := range rows {
		messages[i] = written{id: row.ID, text: embeddedText(row.Role, row.Content)}
	}
	return messages, err
}

// groups shares messages out among groups of the texts that the embedder takes at
// once; a message that has more is a group.
func (m *Memory) groups(messages []written) iter.Seq[[]written] {
	return func(yield func([]written) bool) {
		var group []written
		texts := 0
		for _, message := range messages {
			more := max(1, len(embed.Chunks(message.text, m.embedder.MaxTokens())))
			if len(group) > 0 && texts+more > m.groupTexts {
				if !yield(group) {
					return
				}
				group, texts = nil, 0
			}
			group = append(group, message)
			texts += more
		}
		if len(group) > 0 {
			yield(group)
		}
	}
}

// embedGroup embeds messages and stores the vectors of those whose texts are still
// the same. Those that come after a general failure are left for the next time.
func (m *Memory) embedGroup(ctx context.Context, messages []written, how manner) (*jobs.Rejected, error) {
	all, texts := m.cut(messages)
	vectors, blamed, failure := how.texts(ctx, m.embedder, texts, embed.Document)
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
		if err := m.lockManyOfMessages(ctx, tx, ids); err != nil {
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

package recall

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgrecall/pgrecall/dbgen"
)

// ThreadClone describes a copy of a thread.
type ThreadClone struct {
	SourceID string
	// ID of the new thread; generated when empty. A taken one is a conflict.
	ID string
	// SourceResourceID, when given, must own the source.
	SourceResourceID string
	// ResourceID owns the copy; the source's owner when empty.
	ResourceID string
	// Title defaults to "Clone of " and the source's title.
	Title    *string
	Metadata json.RawMessage
	// MessageLimit copies the newest that many messages; nil means all.
	MessageLimit *int
	// StartsAt and EndsAt bound createdAt, both inclusive, where not nil.
	StartsAt, EndsAt *time.Time
	// MessageIDs copies just these messages of the source where not nil.
	MessageIDs []string
	// ResourceMemory gives the copy's owner the working memory of the source's, where
	// that is another and has none. That of the source itself is copied in any case.
	ResourceMemory bool
}

// ClonedThread is the outcome of a clone.
type ClonedThread struct {
	Thread Thread
	// Messages are the copies, oldest first.
	Messages []Message
	// SourceIDs holds, at each copy's position, the id of the message it copies.
	SourceIDs []string
}

// maxCloneGenerations bounds the chain that CloneHistory follows.
const maxCloneGenerations = 1000

// CloneThread copies a thread inside the database, of one snapshot: what a
// writer appends meanwhile is in the copy up to some commit of his, without a
// hole. A working memory is that of the last message copied. CodeConflict when the
// new id is taken.
func (m *Memory) CloneThread(ctx context.Context, in ThreadClone) (ClonedThread, error) {
	if err := m.checkClone(in); err != nil {
		return ClonedThread{}, err
	}
	if in.ResourceID != "" {
		if err := m.reachable(in.ResourceID); err != nil {
			return ClonedThread{}, err
		}
	}
	if in.ID == "" {
		in.ID = newID()
	}
	starts, ends := DateRange{Start: in.StartsAt, End: in.EndsAt}.halfOpen()
	params := dbgen.ThreadCloneParams{
		SourceID: in.SourceID, SourceResourceID: in.SourceResourceID,
		ID: in.ID, ResourceID: in.ResourceID, Title: in.Title, Metadata: in.Metadata,
		StartsAt: starts, EndsAt: ends,
		HasMessageIds: in.MessageIDs != nil, MessageIds: append([]string{}, in.MessageIDs...), Reach: m.reach(),
	}
	if in.MessageLimit != nil {
		rows := int64(*in.MessageLimit)
		params.MaxRows = &rows
	}
	var clone ClonedThread
	// REPEATABLE READ: messages and vectors of one snapshot.
	err := m.writeAt(ctx, pgx.RepeatableRead, func(tx pgx.Tx) error {
		rows, err := m.queries.ThreadClone(ctx, tx, params)
		if err == nil && len(rows) == 0 {
			err = sourceError(m.orMissing(ctx, tx, pgx.ErrNoRows, in.SourceID, in.SourceResourceID))
		}
		if err != nil {
			return err
		}
		clone = cloned(rows)
		if err := m.copyWorkingMemory(ctx, tx, in, clone); err != nil {
			return err
		}
		return m.copyEmbeddings(ctx, tx, clone)
	})
	if err != nil {
		return ClonedThread{}, err
	}
	return clone, nil
}

// copyEmbeddings carries the vectors of a clone's sources over to it. What the
// sources wait for, the copies wait for too.
func (m *Memory) copyEmbeddings(ctx context.Context, tx pgx.Tx, clone ClonedThread) error {
	if len(clone.Messages) == 0 {
		return nil
	}
	params := dbgen.EmbeddingCopyManyParams{SourceIds: clone.SourceIDs}
	var copies []written
	for _, message := range clone.Messages {
		params.Ids = append(params.Ids, message.ID)
		copies = append(copies, written{
			id: message.ID, threadID: message.ThreadID, resourceID: message.ResourceID, text: embeddedText(message.Role, message.Content),
		})
	}
	if err := m.queries.EmbeddingCopyMany(ctx, tx, params); err != nil {
		return err
	}
	return m.embedLacking(ctx, tx, copies, knownOf(copies))
}

func (m *Memory) checkClone(in ThreadClone) error {
	c := m.check()
	c.requiredID("threadId", in.SourceID)
	c.id("newThreadId", in.ID)
	c.id("resourceId", in.SourceResourceID)
	c.id("resourceId", in.ResourceID)
	c.threadFields(in.Title, in.Metadata)
	c.time("options.messageFilter.startDate", in.StartsAt)
	c.time("options.messageFilter.endDate", in.EndsAt)
	if in.MessageLimit != nil {
		c.between("options.messageLimit", *in.MessageLimit, 0, maxClonedMessages)
	}
	if len(in.MessageIDs) > c.limits.Messages {
		c.fail("options.messageFilter.messageIds", "has more than %d ids", c.limits.Messages)
	}
	for i, id := range in.MessageIDs {
		c.requiredID(itemField("options.messageFilter.messageIds", i, ""), id)
	}
	return c.err()
}

// maxClonedMessages bounds messageLimit, whose only effect is to copy less.
const maxClonedMessages = 1 << 30

// sourceError words the absence of a source as the reference does.
func sourceError(err error) error {
	if codeOf(err) == CodeNotFound {
		return errorf(CodeNotFound, "Source thread not found")
	}
	return err
}

func cloned(rows []dbgen.ThreadCloneRow) ClonedThread {
	first := rows[0]
	out := ClonedThread{
		Thread: Thread{
			ID: first.ThreadID, ResourceID: first.ResourceID, Title: first.Title, Metadata: first.Metadata,
			CreatedAt: first.ThreadCreatedAt.UTC(), UpdatedAt: first.ThreadUpdatedAt.UTC(), Version: first.Version,
		},
		Messages: []Message{},
	}
	if first.ID == "" {
		return out
	}
	for _, row := range rows {
		out.SourceIDs = append(out.SourceIDs, row.SourceMessageID)
		out.Messages = append(out.Messages, Message{
			ID: row.ID, ThreadID: row.ThreadID, ResourceID: row.ResourceID, Role: row.Role, Type: row.Type,
			Content: row.Content, CreatedAt: row.CreatedAt.UTC(),
		})
	}
	return out
}

// Clones lists the threads copied from a thread, oldest first: those of
// resourceID, or where that is empty those of the thread's owner.
func (m *Memory) Clones(ctx context.Context, id, resourceID string) ([]Thread, error) {
	if err := m.checkThreadID(id, resourceID); err != nil {
		return nil, err
	}
	var rows []dbgen.Thread
	err := m.read(ctx, func(tx pgx.Tx) error {
		source, err := m.owned(ctx, tx, id, resourceID)
		if err != nil {
			return err
		}
		rows, err = m.queries.ThreadListClones(ctx, tx, dbgen.ThreadListClonesParams{
			SourceThreadID: id, ResourceID: source.ResourceID, Reach: m.reach(),
		})
		return err
	})
	return threads(rows), err
}

// SourceThread gives the thread that a thread was copied from; nil when it is no
// copy, or the source is gone or, where resourceID is given, another's.
func (m *Memory) SourceThread(ctx context.Context, id, resourceID string) (*Thread, error) {
	history, err := m.cloneHistory(ctx, id, resourceID, 2)
	if err != nil || len(history) < 2 {
		return nil, err
	}
	return &history[len(history)-2], nil
}

// CloneHistory gives the chain of sources from the original to the thread
// itself. It begins later where a source is gone or, where resourceID is given,
// another's.
func (m *Memory) CloneHistory(ctx context.Context, id, resourceID string) ([]Thread, error) {
	return m.cloneHistory(ctx, id, resourceID, maxCloneGenerations)
}

func (m *Memory) cloneHistory(ctx context.Context, id, resourceID string, generations int32) ([]Thread, error) {
	if err := m.checkThreadID(id, resourceID); err != nil {
		return nil, err
	}
	var rows []dbgen.Thread
	err := m.read(ctx, func(tx pgx.Tx) error {
		if _, err := m.owned(ctx, tx, id, resourceID); err != nil {
			return err
		}
		var err error
		rows, err = m.queries.ThreadListCloneHistory(ctx, tx, dbgen.ThreadListCloneHistoryParams{
			ID: id, ResourceID: resourceID, MaxGenerations: generations, Reach: m.reach(),
		})
		return err
	})
	return threads(rows), err
}

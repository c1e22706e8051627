package recall

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgrecall/pgrecall/dbgen"
)

// Counts says how much there is of a resource, by kind.
type Counts struct {
	Threads  int64
	Messages int64
	// Vectors counts the entries of all embedding indexes: one for each chunk of a
	// message.
	Vectors int64
	// WorkingMemory counts the texts that are kept up to date, Versions the forms that
	// they had.
	WorkingMemory int64
	Versions      int64
	// Jobs counts those that wait, are under way or dead, and those that are done, for
	// as long as River keeps them.
	Jobs int64
	// IdempotencyKeys counts the answers that are kept for requests sent again.
	IdempotencyKeys int64
}

// of gives the count that the rows of a table go into.
func (c *Counts) of(table string) *int64 {
	switch {
	case table == "threads":
		return &c.Threads
	case table == "messages":
		return &c.Messages
	case strings.HasPrefix(table, "embeddings_"):
		return &c.Vectors
	case table == "working_memories":
		return &c.WorkingMemory
	case table == "working_memory_versions":
		return &c.Versions
	case table == "river_job":
		return &c.Jobs
	case table == "idempotency_keys":
		return &c.IdempotencyKeys
	default:
		return nil
	}
}

// Holdings is what is held of a resource.
type Holdings struct {
	ResourceID string
	Counts     Counts
	// FirstActivityAt and LastActivityAt are the times of the first and the last
	// message, or change of a thread; nil where there are no threads.
	FirstActivityAt, LastActivityAt *time.Time
}

// Receipt says what an erasure has removed.
type Receipt struct {
	ResourceID string
	ErasedAt   time.Time
	Counts     Counts
}

// Resource counts what is held of a resource, in every table. CodeNotFound when
// nothing is: then nothing tells that it ever was.
func (m *Memory) Resource(ctx context.Context, id string) (Holdings, error) {
	if err := m.checkResourceID(id); err != nil {
		return Holdings{}, err
	}
	if err := m.reachable(id); err != nil {
		return Holdings{}, err
	}
	holdings := Holdings{ResourceID: id}
	err := m.read(ctx, func(tx pgx.Tx) error {
		rows, err := m.queries.ResourceHeld(ctx, tx, id)
		if err != nil {
			return err
		}
		held := false
		for _, row := range rows {
			held = held || row.Held > 0
			if count := holdings.Counts.of(row.TableName); count != nil {
				*count += row.Held
			}
		}
		switch {
		case !held:
			return resourceNotFound()
		case holdings.Counts.Threads == 0:
			return nil
		}
		activity, err := m.queries.ResourceActivity(ctx, tx, id)
		first, last := activity.FirstAt.UTC(), activity.LastAt.UTC()
		holdings.FirstActivityAt, holdings.LastActivityAt = &first, &last
		return err
	})
	return holdings, err
}

func (m *Memory) checkResourceID(id string) error {
	c := m.check()
	c.requiredID("resourceId", id)
	return c.err()
}

// EraseResource removes all that is held of a resource in one transaction, and says
// how much that was: nothing, when nothing is. Clones of its threads that others own
// stay, and forget what they are copies of. CodeNotFound of what the caller does not
// reach: a receipt would say that nothing is held of it.
//
// What others write at the same time is erased as a whole, or comes after it as a
// whole, in a thread that is new. Jobs under way find nothing left to do.
func (m *Memory) EraseResource(ctx context.Context, id string) (Receipt, error) {
	if err := m.checkResourceID(id); err != nil {
		return Receipt{}, err
	}
	if err := m.reachable(id); err != nil {
		return Receipt{}, err
	}
	var receipt Receipt
	err := m.write(ctx, func(tx pgx.Tx) error {
		receipt = Receipt{ResourceID: id}
		locked, err := m.lockResource(ctx, tx, id)
		if err != nil {
			return err
		}
		for _, kind := range m.erasedKinds(&receipt, locked) {
			if *kind.count, err = kind.erase(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Receipt{}, err
	}
	return receipt, nil
}

// lockedResource names what is locked of a resource.
type lockedResource struct{ threads, workingMemories []string }

// lockResource locks what is there of a resource, in the order of writers: keys, the
// threads, their working memories and the resource's. From here on nobody adds to
// the threads, or copies from them.
func (m *Memory) lockResource(ctx context.Context, tx pgx.Tx, id string) (locked lockedResource, err error) {
	if err := m.queries.ErasureLock(ctx, tx); err != nil {
		return locked, err
	}
	if err := m.queries.IdempotencyKeyLockManyOfResource(ctx, tx, id); err != nil {
		return locked, err
	}
	if locked.threads, err = m.lockThreadsOfResource(ctx, tx, id); err != nil {
		return locked, err
	}
	locked.workingMemories, err = m.queries.WorkingMemoryLockManyOfResource(ctx, tx, dbgen.WorkingMemoryLockManyOfResourceParams{
		ResourceID: id, ThreadIds: locked.threads,
	})
	return locked, err
}

// lockThreadsOfResource locks the threads of a resource, makes the clones of them
// that others own forget them, and gives their ids.
func (m *Memory) lockThreadsOfResource(ctx context.Context, tx pgx.Tx, id string) (threads []string, err error) {
	locked, err := m.queries.ThreadLockManyOfResource(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	threads, all := []string{}, []string{}
	for _, thread := range locked {
		all = append(all, thread.ID)
		if thread.ResourceID == id { // still: it may have been transferred before the lock
			threads = append(threads, thread.ID)
		}
	}
	beside, err := m.queries.ThreadCountClonesBeside(ctx, tx, dbgen.ThreadCountClonesBesideParams{Ids: threads, LockedIds: all})
	switch {
	case err != nil:
		return nil, err
	case beside > 0: // locked now, it would be out of order
		return nil, errClonedMeanwhile
	}
	return threads, m.queries.ThreadForgetSources(ctx, tx, dbgen.ThreadForgetSourcesParams{Ids: all, SourceThreadIds: threads})
}

// erasedKind is one kind of what an erasure removes.
type erasedKind struct {
	count *int64
	erase func(context.Context, pgx.Tx) (int64, error)
}

// erasedKinds gives all kinds, in an order in which no foreign key removes what is
// to be counted. A test looks into every table for what this leaves.
func (m *Memory) erasedKinds(receipt *Receipt, locked lockedResource) []erasedKind {
	counts := &receipt.Counts
	return []erasedKind{
		{&counts.Versions, func(ctx context.Context, tx pgx.Tx) (int64, error) {
			return m.queries.WorkingMemoryVersionDeleteMany(ctx, tx, locked.workingMemories)
		}},
		{&counts.WorkingMemory, func(ctx context.Context, tx pgx.Tx) (int64, error) {
			return m.queries.WorkingMemoryDeleteMany(ctx, tx, locked.workingMemories)
		}},
		{&counts.Vectors, func(ctx context.Context, tx pgx.Tx) (int64, error) {
			return m.queries.EmbeddingDeleteByThreads(ctx, tx, locked.threads)
		}},
		{&counts.Messages, func(ctx context.Context, tx pgx.Tx) (int64, error) {
			return m.queries.MessageDeleteByThreads(ctx, tx, locked.threads)
		}},
		{&counts.Threads, func(ctx context.Context, tx pgx.Tx) (int64, error) {
			if err := m.queries.ResourceDelete(ctx, tx, receipt.ResourceID); err != nil {
				return 0, err
			}
			return m.queries.ThreadDeleteMany(ctx, tx, locked.threads)
		}},
		// Counted before, and not long before the end: who keeps the answer to a read
		// waits from here on, and does not keep it then.
		{&counts.IdempotencyKeys, func(ctx context.Context, tx pgx.Tx) (int64, error) {
			erasedAt, err := m.queries.ErasureCountUp(ctx, tx)
			if err != nil {
				return 0, err
			}
			receipt.ErasedAt = erasedAt.UTC()
			keys, err := m.queries.IdempotencyKeyDeleteByResource(ctx, tx, receipt.ResourceID)
			if err == nil && keys.Held > keys.Removed {
				err = errTakenMeanwhile
			}
			return keys.Removed, err
		}},
		// Last, since workers wait for their rows.
		{&counts.Jobs, func(ctx context.Context, tx pgx.Tx) (int64, error) {
			return m.queries.JobDeleteByResource(ctx, tx, receipt.ResourceID)
		}},
	}
}

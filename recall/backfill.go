package recall

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgrecall/pgrecall/dbgen"
	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/jobs"
)

// Progress hears how far a phase of long work is.
type Progress func(phase string, done, total int)

const (
	// backfillPage is how many messages are looked up at a time.
	backfillPage = 512
	// backfillRetries is how often a page is tried again while the embedder is out
	// of reach, and backfillWait how long after, doubled each time.
	backfillRetries = 5
	backfillWait    = time.Second
	// completedJobs is how many jobs are looked at at a time.
	completedJobs = 64
	// promoteRows is how many vectors go into a graph by one statement, each at
	// about a millisecond.
	promoteRows = 200
)

// BackfillIndex gives an index the vectors of all messages that it lacks, and then
// its graph those it should have. It can be stopped at any time, and goes on where
// it was. Messages that the embedder rejects are left out and given back. Searches
// and saves go on meanwhile. Jobs whose work it has done are done. It keeps a
// connection and works on others. CodeConflict when the index is for another
// embedder, or is being backfilled already.
func (m *Memory) BackfillIndex(ctx context.Context, name string, progress Progress) (rejected *jobs.Rejected, err error) {
	if err := m.caller.mayOperate(); err != nil {
		return nil, err
	}
	if err := m.checkEmbedderOf(ctx, name); err != nil {
		return nil, err
	}
	err = m.write(ctx, func(tx pgx.Tx) error {
		if err := m.queries.EmbeddingIndexStayIdle(ctx, tx); err != nil {
			return err
		}
		taken, err := m.queries.EmbeddingIndexTryBackfill(ctx, tx, name)
		if err != nil {
			return err
		}
		if !taken {
			return errorf(CodeConflict, "The embedding index %q is being backfilled already", name)
		}
		rejected, err = m.backfill(ctx, name, progress)
		return err
	})
	return rejected, err
}

func (m *Memory) backfill(ctx context.Context, name string, progress Progress) (rejected *jobs.Rejected, err error) {
	coverage, err := m.IndexCoverage(ctx, name)
	if err != nil {
		return nil, err
	}
	done, total := 0, int(coverage.Missing)
	for after := ""; ; {
		ids, err := m.queries.EmbeddingIndexListMissing(ctx, m.db, dbgen.EmbeddingIndexListMissingParams{
			Name: name, AfterID: after, MaxRows: backfillPage,
		})
		if err != nil {
			return rejected, databaseError(err)
		}
		if len(ids) == 0 {
			return rejected, m.finishBackfill(ctx, name, progress)
		}
		refused, err := m.embedPatiently(ctx, ids)
		rejected = also(rejected, refused)
		if err != nil {
			return rejected, err
		}
		after = ids[len(ids)-1]
		done += len(ids)
		progress("embed", done, max(total, done)) // more may have come meanwhile
	}
}

func (m *Memory) finishBackfill(ctx context.Context, name string, progress Progress) error {
	if err := m.completeJobs(ctx); err != nil {
		return err
	}
	return m.Promote(ctx, name, progress)
}

// completeJobs ends the jobs for the embedder whose messages lack nothing any more:
// there may be no server yet that works on them.
func (m *Memory) completeJobs(ctx context.Context) error {
	queue := jobs.QueueOf(m.embedder.Model(), m.embedder.Dimensions())
	for after := int64(0); ; {
		rows, err := m.queries.JobListWaiting(ctx, m.db, dbgen.JobListWaitingParams{Queue: queue, AfterID: after, MaxRows: completedJobs})
		if err != nil || len(rows) == 0 {
			return databaseError(err)
		}
		done, err := m.doneJobs(ctx, rows)
		if err != nil {
			return err
		}
		if err := m.queries.JobCompleteMany(ctx, m.db, done); err != nil {
			return databaseError(err)
		}
		after = rows[len(rows)-1].ID
	}
}

// doneJobs gives the ids of those jobs whose messages all have their vectors, are
// deleted or say nothing.
func (m *Memory) doneJobs(ctx context.Context, rows []dbgen.JobListWaitingRow) ([]int64, error) {
	messages := make([][]string, len(rows)) // of each job
	for i, row := range rows {
		var args jobs.Embed
		if err := json.Unmarshal(row.Args, &args); err != nil {
			return nil, err
		}
		messages[i] = args.MessageIDs
	}
	lacking, err := m.lacking(ctx, slices.Concat(messages...))
	if err != nil {
		return nil, err
	}
	lacks := make(map[string]bool, len(lacking))
	for _, message := range lacking {
		lacks[message.id] = message.hasText()
	}
	done := []int64{}
	for i, row := range rows {
		if !slices.ContainsFunc(messages[i], func(id string) bool { return lacks[id] }) {
			done = append(done, row.ID)
		}
	}
	return done, nil
}

// checkEmbedderOf fails unless an index is for the embedder's vectors.
func (m *Memory) checkEmbedderOf(ctx context.Context, name string) error {
	index, err := m.queries.EmbeddingIndexGet(ctx, m.db, name)
	switch {
	case isNoRows(err):
		return indexNotFound(name)
	case err != nil:
		return databaseError(err)
	case m.embedder == nil || !m.isOurs(index.Model, index.Dimensions):
		return errorf(CodeConflict, "The embedding index %q is of the model %q with %d dimensions, and the embedder of %q with %d",
			name, index.Model, index.Dimensions, m.model(), m.dimensions())
	}
	return nil
}

// embedPatiently embeds messages, and waits a while for an embedder that is out of
// reach. Its requests are full, but for those that look for the texts to blame: none
// is to be merged with others.
func (m *Memory) embedPatiently(ctx context.Context, ids []string) (*jobs.Rejected, error) {
	wait := backfillWait
	for try := 0; ; try++ {
		rejected, err := m.embedMessages(embed.Alone(ctx), ids, oneByOne)
		var failed *embed.Error
		if try == backfillRetries || !errors.As(err, &failed) || errors.Is(err, embed.ErrSettings) {
			return rejected, databaseError(err)
		}
		select {
		case <-time.After(max(wait, failed.RetryAfter)):
		case <-ctx.Done():
			return rejected, ctx.Err()
		}
		wait *= 2
	}
}

// Promote puts the vectors into the graph of an index, or of all where name is
// empty, that it should have: those of resources that have outgrown the comparison
// of all their vectors.
func (m *Memory) Promote(ctx context.Context, name string, progress Progress) error {
	if err := m.caller.mayOperate(); err != nil {
		return err
	}
	backlog, err := m.queries.GraphBacklogList(ctx, m.db, name)
	if err != nil {
		return databaseError(err)
	}
	done, total := 0, 0
	for _, entry := range backlog {
		total += int(entry.Vectors)
	}
	for _, entry := range backlog {
		for {
			promoted, err := m.queries.GraphPromote(ctx, m.db, dbgen.GraphPromoteParams{
				Name: entry.Name, ResourceID: entry.ResourceID, MaxRows: promoteRows,
			})
			if err != nil && !isNoRows(err) { // no row: it was dropped meanwhile
				return databaseError(err)
			}
			if promoted == 0 {
				break
			}
			done += int(promoted)
			progress("graph", done, max(total, done))
		}
	}
	return nil
}

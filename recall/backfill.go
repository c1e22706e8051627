package recall

import (
	"context"
	"errors"
	"time"

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
	// promoteRows is how many vectors go into a graph by one statement, each at
	// about a millisecond.
	promoteRows = 200
)

// BackfillIndex gives an index the vectors of all messages that it lacks, and then
// its graph those it should have. It can be stopped at any time, and goes on where
// it was. Messages that the embedder rejects are left out and given back. Searches
// and saves go on meanwhile. CodeConflict when the index is for another embedder.
func (m *Memory) BackfillIndex(ctx context.Context, name string, progress Progress) (rejected *jobs.Rejected, err error) {
	if err := m.checkEmbedderOf(ctx, name); err != nil {
		return nil, err
	}
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
			return rejected, m.Promote(ctx, name, progress)
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

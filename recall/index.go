package recall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgrecall/pgrecall/dbgen"
	"github.com/pgrecall/pgrecall/recall/jobs"
)

// IndexState says what an embedding index is used for.
type IndexState string

// The states of an index.
const (
	IndexBuilding IndexState = "building" // filled, not searched
	IndexLive     IndexState = "live"     // filled and searched; at most one is
	IndexRetired  IndexState = "retired"  // was live
)

// Graph says which vectors of an index are in its HNSW graph. Searches compare the
// others one by one.
type Graph string

// The values of a [Graph].
const (
	GraphLarge Graph = "large" // those of resources of more than 5,000 vectors
	GraphAll   Graph = "all"
	GraphNone  Graph = "none"
)

// Index is an embedding index: the vectors of one model.
type Index struct {
	Name       string
	Model      string
	Dimensions int
	State      IndexState
	Graph      Graph
	// HNSWM and HNSWEfConstruction are the graph's m and ef_construction.
	HNSWM, HNSWEfConstruction int
	CreatedAt                 time.Time
	// LiveAt is when it last became live; nil for never.
	LiveAt *time.Time
}

// Coverage says how many messages an index has.
type Coverage struct {
	// Embedded counts those it has, Missing those with a text that it lacks.
	Embedded, Missing int64
}

// Share is the part that it has, 0 to 1.
func (c Coverage) Share() float64 {
	if c.Missing == 0 {
		return 1
	}
	return float64(c.Embedded) / float64(c.Embedded+c.Missing)
}

// percent is the share in per cent to one decimal, never 100 while any is missing.
func (c Coverage) percent() float64 { return math.Floor(1000*c.Share()) / 10 }

// NewIndex is an index to create.
type NewIndex struct {
	Name string
	// Model and Dimensions say whose vectors it is for.
	Model      string
	Dimensions int // 1 to 4,000; above 2,000 numbers are stored with half precision
	// LengthPrior is that of the model's embedder.
	LengthPrior bool
	// Graph is GraphLarge when empty.
	Graph Graph
	// HNSWM is 16 when 0, 2 to 100. HNSWEfConstruction is 64 when 0, at least
	// twice HNSWM, to 1,000. More of either finds more, and costs time and room.
	HNSWM, HNSWEfConstruction int
}

// The defaults and bounds of a [NewIndex].
const (
	defaultHNSWM              = 16
	defaultHNSWEfConstruction = 64
	maxIndexDimensions        = 4000
)

// Indexes gives all embedding indexes, in the order of their creation.
func (m *Memory) Indexes(ctx context.Context) ([]Index, error) {
	rows, err := m.queries.EmbeddingIndexList(ctx, m.db)
	return indexesOf(rows), databaseError(err)
}

func indexesOf(rows []dbgen.RecallEmbeddingIndex) []Index {
	indexes := make([]Index, len(rows))
	for i, row := range rows {
		indexes[i] = indexOf(row)
	}
	return indexes
}

func indexOf(row dbgen.RecallEmbeddingIndex) Index {
	return Index{
		Name: row.Name, Model: row.Model, Dimensions: int(row.Dimensions), State: IndexState(row.State), Graph: Graph(row.Graph),
		HNSWM: int(row.HnswM), HNSWEfConstruction: int(row.HnswEfConstruction), CreatedAt: row.CreatedAt.UTC(), LiveAt: row.LiveAt,
	}
}

// IndexCoverage reads all of an index, and all messages that it lacks.
func (m *Memory) IndexCoverage(ctx context.Context, name string) (Coverage, error) {
	if err := m.caller.maySeeAll(); err != nil {
		return Coverage{}, err
	}
	row, err := m.queries.EmbeddingIndexCoverage(ctx, m.db, name)
	if isNoRows(err) {
		return Coverage{}, indexNotFound(name)
	}
	return Coverage(row), databaseError(err)
}

func indexNotFound(name string) *Error {
	return errorf(CodeNotFound, "There is no embedding index %q", name)
}

// CreateIndex creates an index, which every save is to be embedded for from then
// on. It needs the right to create tables. CodeConflict when the name is taken.
func (m *Memory) CreateIndex(ctx context.Context, in NewIndex) (Index, error) {
	in = in.withDefaults()
	if err := m.checkNewIndex(in); err != nil {
		return Index{}, err
	}
	var row dbgen.RecallEmbeddingIndex
	err := m.operate(ctx, func(tx pgx.Tx) (err error) {
		if err := m.queries.EmbeddingIndexLockWriters(ctx, tx); err != nil {
			return err
		}
		row, err = m.queries.EmbeddingIndexCreate(ctx, tx, dbgen.EmbeddingIndexCreateParams{
			Name: in.Name, Model: in.Model, Dimensions: int32(in.Dimensions), LengthPrior: in.LengthPrior, Graph: string(in.Graph),
			HnswM: int32(in.HNSWM), HnswEfConstruction: int32(in.HNSWEfConstruction),
		})
		if err != nil {
			return err
		}
		return m.queries.EmbeddingIndexCreateTable(ctx, tx, in.Name)
	})
	return indexOf(row), err
}

func (in NewIndex) withDefaults() NewIndex {
	if in.Graph == "" {
		in.Graph = GraphLarge
	}
	if in.HNSWM == 0 {
		in.HNSWM = defaultHNSWM
	}
	if in.HNSWEfConstruction == 0 {
		in.HNSWEfConstruction = max(defaultHNSWEfConstruction, 2*in.HNSWM)
	}
	return in
}

func (m *Memory) checkNewIndex(in NewIndex) error {
	c := m.check()
	c.requiredID("name", in.Name)
	c.requiredID("model", in.Model)
	c.between("dimensions", in.Dimensions, 1, maxIndexDimensions)
	c.between("hnswM", in.HNSWM, 2, 100)
	c.between("hnswEfConstruction", in.HNSWEfConstruction, max(4, 2*in.HNSWM), 1000)
	if in.Graph != GraphLarge && in.Graph != GraphAll && in.Graph != GraphNone {
		c.fail("graph", "must be large, all or none")
	}
	return c.err()
}

// CutOver makes an index the live one, and the live one a retired one. Where the
// memory has the index's embedder, it embeds first what came since the backfill:
// the last few while writers wait. CodeConflict when the index lacks messages then,
// unless forced.
func (m *Memory) CutOver(ctx context.Context, name string, force bool) error {
	err := m.cutOver(ctx, name, force)
	for range catchUps {
		if !errors.Is(err, errNearlyComplete) || m.checkEmbedderOf(ctx, name) != nil {
			break
		}
		if rejected, err := m.BackfillIndex(ctx, name, func(string, int, int) {}); err != nil || rejected != nil {
			return cmp.Or(err, error(errorf(CodeConflict, "The embedder rejects some messages: pgrecall index backfill %s names them", name)))
		}
		err = m.cutOver(ctx, name, force)
	}
	return err
}

const (
	// catchUps is how often what came meanwhile is embedded before a cut-over.
	catchUps = 5
	// mostUnderLock is how many messages are embedded while writers wait.
	mostUnderLock = 64
)

// nearlyAll is the share above which an index is taken for one that was backfilled.
const nearlyAll = .9

// errNearlyComplete is the cause of a refusal for the few that came meanwhile.
var errNearlyComplete = errors.New("the index lacks the newest messages")

func (m *Memory) cutOver(ctx context.Context, name string, force bool) error {
	return m.changeIndexes(ctx, func(tx pgx.Tx, indexes []Index) error {
		index, err := named(indexes, name)
		if err != nil {
			return err
		}
		if index.State == IndexLive {
			return errorf(CodeConflict, "The embedding index %q is live already", name)
		}
		if !force {
			if err := m.complete(ctx, tx, index); err != nil {
				return err
			}
		}
		return m.makeLive(ctx, tx, indexes, name)
	})
}

// complete fails unless an index has all messages, of which it embeds the last few.
// Writers wait until tx ends.
func (m *Memory) complete(ctx context.Context, tx pgx.Tx, index Index) error {
	if err := m.queries.EmbeddingIndexLockWriters(ctx, tx); err != nil {
		return err
	}
	row, err := m.queries.EmbeddingIndexCoverage(ctx, tx, index.Name)
	if err != nil {
		return err
	}
	coverage := Coverage(row)
	if coverage.Missing == 0 {
		return nil
	}
	nearly := coverage.Share() > nearlyAll
	if nearly && coverage.Missing <= mostUnderLock && m.embedder != nil && m.isOurs(index.Model, int32(index.Dimensions)) {
		return m.embedLast(ctx, tx, index)
	}
	refused := errorf(CodeConflict, "The embedding index %q has %.1f %% of the messages and lacks %d",
		index.Name, coverage.percent(), coverage.Missing)
	if nearly {
		refused.cause = errNearlyComplete
	}
	return refused
}

// embedLast embeds the last few messages that an index lacks, in tx.
func (m *Memory) embedLast(ctx context.Context, tx pgx.Tx, index Index) error {
	ids, err := m.queries.EmbeddingIndexListMissing(ctx, tx, dbgen.EmbeddingIndexListMissingParams{Name: index.Name, MaxRows: mostUnderLock})
	if err != nil {
		return err
	}
	messages, err := m.contents(ctx, tx, ids)
	if err != nil {
		return err
	}
	return m.embedNow(ctx, tx, messages)
}

// RollBack takes the cut-over of the live index back and gives the name of the one
// that is live again: the one that was before. CodeConflict when name is not live,
// or none was before.
func (m *Memory) RollBack(ctx context.Context, name string) (revived string, err error) {
	err = m.changeIndexes(ctx, func(tx pgx.Tx, indexes []Index) error {
		index, err := named(indexes, name)
		if err != nil {
			return err
		}
		if index.State != IndexLive {
			return errorf(CodeConflict, "The embedding index %q is not live: there is nothing to roll back", name)
		}
		before := lastRetired(indexes)
		if before == nil {
			return errorf(CodeConflict, "No embedding index was live before %q", name)
		}
		revived = before.Name
		return m.makeLive(ctx, tx, indexes, revived)
	})
	return revived, err
}

// DropIndex removes an index with its vectors, and the jobs that are for it alone.
// CodeConflict when it is live and, unless forced, when a roll-back would need it.
func (m *Memory) DropIndex(ctx context.Context, name string, force bool) error {
	err := m.dropIndex(ctx, name, force)
	for range dropAttempts {
		if !isLockTimeout(err) {
			break
		}
		// Readers and this one may each have had what the other waits for.
		select {
		case <-time.After(dropPause):
		case <-ctx.Done():
			return databaseError(ctx.Err())
		}
		err = m.dropIndex(ctx, name, force)
	}
	return err
}

// How often an index is tried to be dropped among readers, and the pause between.
const (
	dropAttempts = 100
	dropPause    = 50 * time.Millisecond
)

func (m *Memory) dropIndex(ctx context.Context, name string, force bool) error {
	return m.changeIndexes(ctx, func(tx pgx.Tx, indexes []Index) error {
		index, err := named(indexes, name)
		if err != nil {
			return err
		}
		if index.State == IndexLive {
			return errorf(CodeConflict, "The embedding index %q is live: cut over to another one first", name)
		}
		if before := lastRetired(indexes); !force && before != nil && before.Name == name {
			return errorf(CodeConflict, "The embedding index %q is the one that a roll-back would make live again", name)
		}
		if err := m.queries.EmbeddingIndexWaitBriefly(ctx, tx); err != nil {
			return err
		}
		if err := m.queries.EmbeddingIndexLockAll(ctx, tx); err != nil {
			return err
		}
		if err := m.queries.EmbeddingIndexDropTable(ctx, tx, name); err != nil {
			return err
		}
		if err := m.queries.EmbeddingIndexDelete(ctx, tx, name); err != nil {
			return err
		}
		for _, other := range indexes {
			if other.Name != name && other.Model == index.Model && other.Dimensions == index.Dimensions {
				return nil
			}
		}
		return m.queries.JobDeleteByQueue(ctx, tx, jobs.QueueOf(index.Model, index.Dimensions))
	})
}

// changeIndexes runs do with all indexes, locked, the one that was live last first.
func (m *Memory) changeIndexes(ctx context.Context, do func(tx pgx.Tx, indexes []Index) error) error {
	return m.operate(ctx, func(tx pgx.Tx) error {
		rows, err := m.queries.EmbeddingIndexLockMany(ctx, tx)
		if err != nil {
			return err
		}
		return do(tx, indexesOf(rows))
	})
}

func named(indexes []Index, name string) (Index, error) {
	for _, index := range indexes {
		if index.Name == name {
			return index, nil
		}
	}
	return Index{}, indexNotFound(name)
}

// lastRetired gives the index that was live before the one that is.
func lastRetired(indexes []Index) *Index {
	for i := range indexes {
		if indexes[i].State == IndexRetired {
			return &indexes[i]
		}
	}
	return nil
}

// makeLive makes one index live, and retires the one that is.
func (m *Memory) makeLive(ctx context.Context, tx pgx.Tx, indexes []Index, name string) error {
	for _, index := range indexes {
		if index.State != IndexLive {
			continue
		}
		if err := m.queries.EmbeddingIndexSetState(ctx, tx, dbgen.EmbeddingIndexSetStateParams{Name: index.Name, State: string(IndexRetired)}); err != nil {
			return err
		}
	}
	return m.queries.EmbeddingIndexSetState(ctx, tx, dbgen.EmbeddingIndexSetStateParams{Name: name, State: string(IndexLive)})
}

// LiveIndex gives the index that searches use. CodeNotFound when none is.
func (m *Memory) LiveIndex(ctx context.Context) (Index, error) {
	row, err := m.queries.EmbeddingIndexGetLive(ctx, m.db)
	if isNoRows(err) {
		return Index{}, errorf(CodeNotFound, "No embedding index is live")
	}
	return indexOf(row), databaseError(err)
}

// CheckEmbedder fails unless the live index is for the embedder's vectors. The
// error says which commands make one that is.
func (m *Memory) CheckEmbedder(ctx context.Context) error {
	if m.embedder == nil {
		return nil
	}
	live, err := m.LiveIndex(ctx)
	if err != nil || m.isOurs(live.Model, int32(live.Dimensions)) {
		return err
	}
	indexes, err := m.Indexes(ctx)
	if err != nil {
		return err
	}
	name := "NAME"
	steps := fmt.Sprintf("pgrecall index create %s --model %s --dimensions %d, ", name, m.embedder.Model(), m.embedder.Dimensions())
	for _, index := range indexes {
		if m.isOurs(index.Model, int32(index.Dimensions)) {
			name, steps = index.Name, ""
		}
	}
	return errorf(CodeConflict, "The live embedding index %q is of the model %q with %d dimensions, the embedder of %q with %d: "+
		"run %spgrecall index backfill %s and pgrecall index cutover %s, or take the embedder of the live index",
		live.Name, live.Model, live.Dimensions, m.embedder.Model(), m.embedder.Dimensions(), steps, name, name)
}

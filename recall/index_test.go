package recall_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/embed/embedtest"
	"github.com/pgrecall/pgrecall/recall/jobs"
)

func TestWhatAnIndexCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	for field, in := range map[string]recall.NewIndex{
		"name":               {Model: "m", Dimensions: 3},
		"model":              {Name: "n", Dimensions: 3},
		"dimensions":         {Name: "n", Model: "m", Dimensions: 4001},
		"hnswM":              {Name: "n", Model: "m", Dimensions: 3, HNSWM: 1},
		"hnswEfConstruction": {Name: "n", Model: "m", Dimensions: 3, HNSWM: 40, HNSWEfConstruction: 79},
		"graph":              {Name: "n", Model: "m", Dimensions: 3, Graph: "some"},
	} {
		_, err := m.CreateIndex(ctx, in)
		requireCode(t, err, recall.CodeInvalid, field)
	}
	_, err := m.CreateIndex(ctx, recall.NewIndex{Name: "n", Model: "m"})
	requireCode(t, err, recall.CodeInvalid, "dimensions")
	_, err = m.IndexCoverage(ctx, "none")
	requireCode(t, err, recall.CodeNotFound)
	requireCode(t, m.CutOver(ctx, "none", true), recall.CodeNotFound)
	requireCode(t, m.DropIndex(ctx, "none", true), recall.CodeNotFound)
	_, err = m.RollBack(ctx, "none")
	requireCode(t, err, recall.CodeNotFound)
	indexes, err := m.Indexes(ctx)
	require.NoError(t, err)
	assert.Len(t, indexes, 1, "nothing is left of them")
}

func TestAnIndexOf3072DimensionsIsFilledAndSearched(t *testing.T) {
	t.Parallel()
	r := remotelyOn(t, dbtest.URL(t), "wide", 3072)
	r.goLive(t, "wide")
	r.save(t, said("m", "Penguins of the Antarctic"), said("n", "Camels of the desert"))
	require.NoError(t, r.EmbedMessages(ctx, []string{"m", "n"}))
	hits := r.hits(t, recall.Request{ThreadID: thread, Search: meaning("penguins antarctic of the", 1)})
	require.Equal(t, []string{"m"}, ids(hits))
	assert.InDelta(t, 1, *hits[0].Explain.Hit.Similarity, 1e-3)
}

// From the embedder in the program to a service and back, as an operator goes
// there, while both kinds of servers run.
func TestTheWayToAnotherModelAndBack(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	old := memory{recall.New(dbtest.Open(t, url), recall.DefaultLimits(), recall.WithEmbedder(embed.Static{})), dbtest.Open(t, url)}
	r := remotelyOn(t, url, "stub", stubDimensions)
	history := talk("m", 600)
	old.save(t, history...)
	question := recall.Request{ThreadID: thread, Search: meaning("whales and mountains", 10)}
	before := old.hitIDs(t, question)

	require.ErrorContains(t, r.CheckEmbedder(ctx), "pgrecall index create NAME --model stub --dimensions 64, pgrecall index backfill NAME and pgrecall index cutover NAME")
	r.newIndex(t, "second")
	require.ErrorContains(t, r.CheckEmbedder(ctx), "run pgrecall index backfill second and pgrecall index cutover second")

	// Half of it is there.
	require.NoError(t, r.EmbedMessages(ctx, newIDs(history[:300])))
	coverage, err := r.IndexCoverage(ctx, "second")
	require.NoError(t, err)
	assert.Equal(t, recall.Coverage{Embedded: 300, Missing: 300}, coverage)
	err = r.CutOver(ctx, "second", false)
	requireCode(t, err, recall.CodeConflict)
	require.ErrorContains(t, err, "50.0 %")
	assert.Equal(t, before, old.hitIDs(t, question), "recall is unchanged")

	// What is saved meanwhile waits for the other embedder, and the backfill finds it.
	old.save(t, said("meanwhile", "Said while the index is filled"))
	backlog, err := r.Backlog(ctx)
	require.NoError(t, err)
	assert.Equal(t, int64(1), backlog.Waiting)
	var last [2]int
	rejected, err := r.BackfillIndex(ctx, "second", func(phase string, done, total int) {
		assert.Equal(t, "embed", phase)
		last = [2]int{done, total}
	})
	require.NoError(t, err)
	assert.Nil(t, rejected)
	assert.Equal(t, [2]int{301, 301}, last)
	backlog, err = r.Backlog(ctx)
	require.NoError(t, err)
	assert.Zero(t, backlog, "all is embedded, though nobody worked on the job")
	require.NoError(t, r.CutOver(ctx, "second", false))
	requireCode(t, r.CutOver(ctx, "second", false), recall.CodeConflict)

	// The old servers go on with their index, and what they save is for both.
	assert.Equal(t, before, old.hitIDs(t, question))
	old.save(t, said("late", "Said to an old server"))
	for _, c := range []struct {
		memory
		mode  recall.Mode
		index string
		want  int64
	}{
		{old, recall.Semantic, "", 0}, {old, recall.Lexical, "", 0}, {old, recall.Lexical, "second", 1},
		{r.memory, recall.Semantic, "", 1}, {memory{recall.New(old.pool, recall.DefaultLimits()), old.pool}, recall.Lexical, "", 1},
	} {
		result := c.recall(t, recall.Request{ThreadID: thread, Search: &recall.Search{
			Question: "whales", Mode: c.mode, IndexName: c.index, CountPending: true,
		}})
		assert.Equal(t, c.want, *result.Search.Pending, "counted for the index that is searched")
	}
	assert.Equal(t, []string{"late"}, old.hitIDs(t, recall.Request{ThreadID: thread, Search: meaning("Said to an old server", 1)}))
	assert.NotContains(t, r.embedded(t), "late")
	r.work(t, 1)
	r.settled(t)
	assert.Contains(t, r.embedded(t), "late")
	assert.Equal(t, []string{"late"}, r.hitIDs(t, recall.Request{ThreadID: thread, Search: meaning("Said to an old server", 1)}))
	requireCode(t, old.DropIndex(ctx, "second", true), recall.CodeConflict)
	requireCode(t, old.DropIndex(ctx, "potion-base-8M", false), recall.CodeConflict)

	// Back again.
	r.save(t, said("newest", "Said to a new server"))
	r.settled(t)
	revived, err := r.RollBack(ctx, "second")
	require.NoError(t, err)
	assert.Equal(t, "potion-base-8M", revived)
	require.NoError(t, old.CheckEmbedder(ctx))
	coverage, err = old.IndexCoverage(ctx, revived)
	require.NoError(t, err)
	assert.Equal(t, int64(1), coverage.Missing, "what the new server saved")
	_, err = old.BackfillIndex(ctx, revived, noProgress)
	require.NoError(t, err)
	assert.Equal(t, []string{"newest"}, old.hitIDs(t, recall.Request{ThreadID: thread, Search: meaning("Said to a new server", 1)}))
	_, err = r.RollBack(ctx, "second")
	requireCode(t, err, recall.CodeConflict)

	// And for good.
	require.NoError(t, old.DropIndex(ctx, "second", true))
	old.save(t, said("after", "When there is one index again"))
	backlog, err = old.Backlog(ctx)
	require.NoError(t, err)
	assert.Zero(t, backlog.Waiting)
	assert.Empty(t, column[string](t, old, `SELECT relname::text FROM pg_class WHERE relname LIKE 'embeddings\_2%'`))
}

func TestIndexesOfDifferentDimensionsAreSearchedByTheirOwnServers(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	other := remotelyOn(t, r.url, "other", 3)
	other.newIndex(t, "other")
	r.save(t, talk("m", 10)...)
	for _, each := range []remotely{r, other} {
		require.NoError(t, each.EmbedMessages(ctx, newIDs(talk("m", 10))))
	}
	named := meaning("tea", 3)
	named.IndexName = "other"
	assert.Len(t, other.hitIDs(t, recall.Request{ThreadID: thread, Search: named}), 3)
	_, err := r.Recall(ctx, recall.Request{ThreadID: thread, Search: named})
	requireCode(t, err, recall.CodeInvalid, "threadConfig.semanticRecall.indexName")
	_, err = other.Recall(ctx, recall.Request{ThreadID: thread, Search: meaning("tea", 3)})
	requireCode(t, err, recall.CodeUnavailable)
}

// The dimensions alone do not tell models apart.
func TestAnIndexOfAnotherModelIsNotSearched(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.save(t, talk("m", 3)...)
	require.NoError(t, r.EmbedMessages(ctx, []string{"m1", "m2", "m3"}))
	alike := remotelyOn(t, r.url, "alike", stubDimensions)
	_, err := alike.Recall(ctx, recall.Request{ThreadID: thread, Search: meaning("tea", 3)})
	requireCode(t, err, recall.CodeUnavailable)
	require.Error(t, alike.EmbedMessages(ctx, []string{"m1"}))
	_, err = alike.BackfillIndex(ctx, "remote", noProgress)
	requireCode(t, err, recall.CodeConflict)
}

func TestABackfillGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	history := talk("m", 1000)
	r.save(t, history[:500]...)
	r.save(t, history[500:]...)
	stopped, stop := context.WithCancel(ctx)
	_, err := r.BackfillIndex(stopped, "remote", func(_ string, done, _ int) { stop() })
	require.ErrorIs(t, err, context.Canceled)
	assert.Len(t, r.asked(), 512)
	r.stub.RejectTexts("number 99")
	rejected, err := r.BackfillIndex(ctx, "remote", noProgress)
	require.NoError(t, err)
	require.NotNil(t, rejected)
	want := []string{"m100", "m1000", "m991", "m992", "m993", "m994", "m995", "m996", "m997", "m998", "m999"} // numbers begin with 0
	assert.Equal(t, want[2:], rejected.MessageIDs, "but for those that were embedded before")
	assert.Len(t, r.embedded(t), 1000-len(rejected.MessageIDs))
	r.stub.RejectTexts("")
	r.asked()
	rejected, err = r.BackfillIndex(ctx, "remote", noProgress)
	require.NoError(t, err)
	assert.Nil(t, rejected)
	assert.Len(t, r.asked(), 9)
	assert.Len(t, r.embedded(t), 1000)

	r.save(t, said("more", "One more"))
	r.stub.Fail(embedtest.Status(401))
	_, err = r.BackfillIndex(ctx, "remote", noProgress)
	require.ErrorIs(t, err, embed.ErrSettings)
}

func TestOneBackfillOfAnIndexRunsAtATime(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	other := remotelyOn(t, r.url, "other", 3)
	other.newIndex(t, "other")
	r.save(t, talk("m", 10)...)
	hold := r.stub.Hold()
	first := make(chan error, 1)
	go func() {
		_, err := r.BackfillIndex(ctx, "remote", noProgress)
		first <- err
	}()
	<-hold.Arrived()
	_, err := r.BackfillIndex(ctx, "remote", noProgress)
	requireCode(t, err, recall.CodeConflict)
	require.ErrorContains(t, err, "is being backfilled")
	_, err = other.BackfillIndex(ctx, "other", noProgress)
	require.NoError(t, err, "another index")
	r.stub.Release()
	require.NoError(t, <-first)
	assert.Len(t, r.asked(), 10)
	_, err = r.BackfillIndex(ctx, "remote", noProgress)
	require.NoError(t, err, "once it has ended")
}

// A job ends with a backfill where that has done all of its work.
func TestABackfillLeavesTheJobsThatAreNotDone(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.save(t, talk("m", 3)...)
	r.save(t, said("gone", "To be deleted"), said("blank", "To be blank"))
	r.save(t, said("good", "Words"), said("bad", "This is poison"))
	_, err := r.DeleteMessages(ctx, []string{"gone"}, "")
	require.NoError(t, err)
	_, err = r.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "blank", Content: text(" ")}}, "")
	require.NoError(t, err)
	r.stub.RejectTexts("poison")
	rejected, err := r.BackfillIndex(ctx, "remote", noProgress)
	require.NoError(t, err)
	assert.Equal(t, []string{"bad"}, rejected.MessageIDs)
	left, err := r.Jobs(ctx, recall.JobListing{})
	require.NoError(t, err)
	require.Len(t, left, 1)
	assert.Equal(t, []string{"good", "bad"}, left[0].MessageIDs)
}

// Saves, searches and clones while indexes come and go: whoever is in between sees
// one state or the other.
func TestIndexesComeAndGoUnderLoad(t *testing.T) {
	t.Parallel()
	m, _ := counted(t)
	m.save(t, talk("m", 5)...)
	errs := together(1, func(int) error {
		for range 5 {
			if _, err := m.CreateIndex(ctx, recall.NewIndex{Name: "passing", Model: "potion-base-8M", Dimensions: 256, LengthPrior: true}); err != nil {
				return err
			}
			if err := m.DropIndex(ctx, "passing", false); err != nil {
				return err
			}
		}
		return nil
	}, func(int) error {
		for i := range 100 {
			if _, err := m.SaveMessages(ctx, []recall.NewMessage{said(fmt.Sprint("s", i), fmt.Sprint("Number ", i))}, true); err != nil {
				return err
			}
		}
		return nil
	}, func(int) error {
		for range 30 {
			if _, err := m.CloneThread(ctx, recall.ThreadClone{SourceID: thread}); err != nil {
				return err
			}
			if _, err := m.Recall(ctx, recall.Request{ThreadID: thread, Search: meaning("tea", 5)}); err != nil {
				return err
			}
		}
		return nil
	})
	for _, err := range errs {
		require.NoError(t, err)
	}
	coverage, err := m.IndexCoverage(ctx, "potion-base-8M")
	require.NoError(t, err)
	assert.Zero(t, coverage.Missing)
}

func TestTheQueueOfAModelHasAName(t *testing.T) {
	t.Parallel()
	assert.Regexp(t, `^embed_[0-9a-f]{16}$`, jobs.QueueOf("text-embedding-3-small", 1536))
	assert.NotEqual(t, jobs.QueueOf("a", 1536), jobs.QueueOf("a", 512))
	assert.NotEqual(t, jobs.QueueOf("a", 512), jobs.QueueOf("b", 512))
}

// Large resources outgrow the comparison of all their vectors.
func TestLargeResourcesGoIntoTheGraph(t *testing.T) {
	t.Parallel()
	m, table := searching(t, embedtest.NewFixed(crowdedDimensions, map[string]embed.Vector{crowdQuestion: axis()}))
	c := crowded{m, table, crowdedDimensions}
	c.fill(t, "large", 5001, 1, false)
	c.fill(t, "limit", 5000, 1, false)
	c.fill(t, "small", 10, 1, false)
	inGraph := func() map[string]int {
		counts := map[string]int{}
		for _, user := range column[string](t, m, `SELECT e.resource_id FROM recall.`+table+` AS e WHERE e.in_graph`) {
			counts[user]++
		}
		return counts
	}
	question := recall.Request{ResourceID: "large", Search: meaning(crowdQuestion, 20)}
	search := func() (ids []string, plan recall.SearchPlan) {
		result := m.recall(t, recall.Request{ResourceID: "large", PerPage: of(0), Search: meaning(crowdQuestion, 20)})
		return m.hitIDs(t, question), *result.Search
	}
	before, plan := search()
	assert.Equal(t, "exact", plan.Plan)
	assert.Equal(t, int64(5001), plan.Visited, "each once")

	last := 0
	require.NoError(t, m.Promote(ctx, "", func(phase string, done, total int) {
		assert.Equal(t, "graph", phase)
		assert.Equal(t, 5001, total)
		last = done
	}))
	assert.Equal(t, 5001, last)
	assert.Equal(t, map[string]int{"large": 5001}, inGraph())
	after, plan := search()
	assert.Equal(t, "hnsw", plan.Plan)
	assert.Equal(t, before[0], after[0])

	// The newest may be left out, up to 500.
	c.add(t, "large", 500, 1, false)
	require.NoError(t, m.Promote(ctx, "", noProgress))
	assert.Equal(t, 5001, inGraph()["large"])
	c.add(t, "large", 1, 1, false)
	require.NoError(t, m.Promote(ctx, "", noProgress))
	assert.Equal(t, 5502, inGraph()["large"])

	setting := func(graph recall.Graph) {
		_, err := m.pool.Exec(ctx, `UPDATE recall.embedding_indexes SET graph = $1`, string(graph))
		require.NoError(t, err)
	}
	setting(recall.GraphNone)
	c.add(t, "large", 1000, 1, false)
	require.NoError(t, m.Promote(ctx, "", noProgress))
	assert.Equal(t, 5502, inGraph()["large"])
	setting(recall.GraphAll)
	state := func(state string) {
		_, err := m.pool.Exec(ctx, `UPDATE recall.embedding_indexes AS i SET state = $1 WHERE 'embeddings_' || i.id = $2`, state, table)
		require.NoError(t, err)
	}
	state("retired")
	require.NoError(t, m.Promote(ctx, "", noProgress))
	assert.Equal(t, 5502, inGraph()["large"], "a retired index is left as it is")
	state("live")
	require.NoError(t, m.Promote(ctx, "", noProgress))
	assert.Equal(t, map[string]int{"large": 6502, "limit": 5000, "small": 10}, inGraph())
}

// What is saved between a backfill and the cut-over is embedded by the cut-over.
func TestACutOverCatchesUpWithWriters(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	old := memory{recall.New(dbtest.Open(t, url), recall.DefaultLimits(), recall.WithEmbedder(embed.Static{})), dbtest.Open(t, url)}
	r := remotelyOn(t, url, "stub", stubDimensions)
	old.save(t, talk("m", 1000)...)
	r.newIndex(t, "second")
	_, err := r.BackfillIndex(ctx, "second", noProgress)
	require.NoError(t, err)
	stop, written := make(chan struct{}), make(chan int, 1)
	end := sync.OnceValue(func() int {
		close(stop)
		return <-written
	})
	t.Cleanup(func() { end() })
	go func() {
		n := 0
		for ; ; n++ {
			select {
			case <-stop:
				written <- n
				return
			default:
				_, err := old.SaveMessages(ctx, []recall.NewMessage{said(fmt.Sprint("w", n), fmt.Sprint("Written ", n))}, true)
				assert.NoError(t, err)
			}
		}
	}()
	eventually(t, func() bool {
		coverage, err := r.IndexCoverage(ctx, "second")
		return err == nil && coverage.Missing > 0
	})
	require.NoError(t, r.CutOver(ctx, "second", false))
	total := 1000 + end()
	r.work(t, 1)
	r.settled(t)
	assert.Len(t, r.embedded(t), total)
}

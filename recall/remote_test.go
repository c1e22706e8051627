package recall_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed/embedtest"
	"github.com/pgrecall/pgrecall/recall/embed/remote"
	"github.com/pgrecall/pgrecall/recall/jobs"
)

// remotely is a memory whose embedder is a service, for which an index is live.
type remotely struct {
	memory
	url      string
	stub     *embedtest.Stub
	embedder *remote.OpenAI
	jobTime  time.Duration // 0 for the default
}

const stubDimensions = 64

func newRemote(t testing.TB) remotely {
	t.Helper()
	r := remotelyOn(t, dbtest.URL(t), "stub", stubDimensions)
	r.goLive(t, "remote")
	return r
}

// remotelyOn gives a memory on a database, whose live index is as it is.
func remotelyOn(t testing.TB, url, model string, dimensions int) remotely {
	return remotelyBy(t, url, remote.OpenAIConfig{Model: model, Dimensions: dimensions, Attempts: 1, Backoff: time.Nanosecond})
}

// remotelyBy is remotelyOn for an embedder of a configuration.
func remotelyBy(t testing.TB, url string, config remote.OpenAIConfig) remotely {
	stub := embedtest.NewStub(t, config.Dimensions)
	config.BaseURL = stub.URL()
	embedder, err := remote.NewOpenAI(config)
	require.NoError(t, err)
	t.Cleanup(embedder.Close)
	pool := dbtest.Open(t, url)
	m := recall.New(pool, recall.DefaultLimits(), recall.WithRemoteEmbedder(embedder))
	return remotely{memory: memory{m, pool}, url: url, stub: stub, embedder: embedder}
}

// newIndex creates an index for the embedder's vectors.
func (r remotely) newIndex(t must, name string) recall.Index {
	t.Helper()
	index, err := r.CreateIndex(ctx, recall.NewIndex{Name: name, Model: r.embedder.Model(), Dimensions: r.embedder.Dimensions()})
	require.NoError(t, err)
	return index
}

// goLive makes an index for the embedder's vectors the live one.
func (r remotely) goLive(t must, name string) {
	t.Helper()
	r.newIndex(t, name)
	require.NoError(t, r.CutOver(ctx, name, true))
	require.NoError(t, r.CheckEmbedder(ctx))
}

// work works on the jobs until the test ends.
func (r remotely) work(t testing.TB, tries int) *logs {
	t.Helper()
	log := &logs{}
	workers, err := jobs.Start(ctx, jobs.Config{
		Pool: dbtest.Open(t, r.url), Logger: slog.New(slog.NewJSONHandler(log, nil)), Tries: tries, EmbedTimeout: r.jobTime,
		Embed: r.EmbedMessages, Model: r.embedder.Model(), Dimensions: r.embedder.Dimensions(),
		Tasks: []jobs.Task{{Name: "promote", Every: time.Hour, Do: func(ctx context.Context) error { return r.Promote(ctx, "", noProgress) }}},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, workers.Stop(ctx)) })
	return log
}

func noProgress(string, int, int) {}

// settled waits until no job waits.
func (r remotely) settled(t must) recall.Backlog {
	t.Helper()
	var backlog recall.Backlog
	eventually(t, func() bool {
		var err error
		backlog, err = r.Backlog(ctx)
		return err == nil && backlog.Waiting == 0
	})
	return backlog
}

func eventually(t must, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, 2*time.Minute, 5*time.Millisecond)
}

// embedded gives the messages that have a vector in the live index, in order.
func (m memory) embedded(t must) []string {
	t.Helper()
	index, err := m.LiveIndex(ctx)
	require.NoError(t, err)
	return m.embeddedIn(t, index.Name)
}

func (m memory) embeddedIn(t must, index string) []string {
	t.Helper()
	var table string
	m.scan(t, `SELECT 'embeddings_' || i.id FROM recall.embedding_indexes AS i WHERE i.name = $1`, []any{index}, &table)
	return column[string](t, m, `SELECT DISTINCT e.message_id FROM recall.`+table+` AS e WHERE e.embedding IS NOT NULL ORDER BY 1`)
}

// asked counts the texts embedded since it was last asked.
func (r remotely) asked() []string {
	texts := r.stub.Texts()
	r.stub.Reset()
	return texts
}

func TestARemoteEmbedderIsAskedForATextOnce(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	history := talk("m", 100)
	r.save(t, history...)
	assert.Empty(t, r.asked(), "a save does not wait")
	r.work(t, 1)
	r.settled(t)
	assert.Len(t, r.asked(), 100)
	assert.ElementsMatch(t, newIDs(history), r.embedded(t))

	r.save(t, history...)
	r.settled(t)
	assert.Empty(t, r.asked(), "history saved again")

	r.save(t, append(history, said("next", "And now for the weather"))...)
	r.settled(t)
	assert.Equal(t, []string{"And now for the weather"}, r.asked(), "one new message")

	clone, err := r.CloneThread(ctx, recall.ThreadClone{SourceID: thread})
	require.NoError(t, err)
	r.settled(t)
	assert.Empty(t, r.asked(), "a clone")
	assert.Len(t, r.embedded(t), 2*101)
	assert.Equal(t, clone.Thread.ID, r.hits(t, recall.Request{ThreadID: clone.Thread.ID, Search: &recall.Search{
		Question: "weather", TopK: 1, Mode: recall.Semantic, Scope: recall.ScopeThread,
	}})[0].ThreadID)
	r.asked()

	_, err = r.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "m1", Content: json.RawMessage(`{"metadata":{"read":true}}`)}}, "")
	require.NoError(t, err)
	r.settled(t)
	assert.Empty(t, r.asked(), "a patch of metadata")

	_, err = r.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "m2", Content: text("Quantum physics instead")}}, "")
	require.NoError(t, err)
	r.settled(t)
	assert.Equal(t, []string{"Quantum physics instead"}, r.asked(), "an edit")
}

func TestAnOldTextIsNotFoundThoughTheNewOneWaits(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.save(t, said("m", "Penguins of the Antarctic"), said("n", "Something else"))
	require.NoError(t, r.EmbedMessages(ctx, []string{"m", "n"}))
	penguins := recall.Request{ThreadID: thread, Search: meaning("Penguins of the Antarctic", 5)}
	require.Equal(t, []string{"m", "n"}, r.hitIDs(t, penguins))
	_, err := r.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "m", Content: text("Camels")}}, "")
	require.NoError(t, err)
	assert.Equal(t, []string{"n"}, r.hitIDs(t, penguins))
	result := r.recall(t, recall.Request{ThreadID: thread, Search: &recall.Search{Question: "camels", CountPending: true}})
	assert.Equal(t, int64(1), *result.Search.Pending)
}

func TestAMessageThatIsDeletedWhileItsJobRunsLeavesNoVector(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	hold := r.stub.Hold()
	r.work(t, 1)
	r.save(t, said("kept", "This stays"), said("gone", "This goes"))
	<-hold.Arrived()
	_, err := r.DeleteMessages(ctx, []string{"gone"}, "")
	require.NoError(t, err)
	r.stub.Release()
	assert.Zero(t, r.settled(t).Dead)
	assert.Equal(t, []string{"kept"}, r.embedded(t))
	assert.Equal(t, 1, r.stub.Requests(), "no loop")
}

func TestAMessageThatIsEditedWhileItsJobRunsHasTheVectorOfItsNewText(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	hold := r.stub.Hold()
	r.work(t, 1)
	r.save(t, said("m", "Penguins of the Antarctic"))
	<-hold.Arrived()
	_, err := r.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "m", Content: text("Camels of the desert")}}, "")
	require.NoError(t, err)
	r.stub.Release()
	r.settled(t)
	hit := r.hits(t, recall.Request{ThreadID: thread, Search: meaning("Camels of the desert", 1)})[0]
	assert.InDelta(t, 1, *hit.Explain.Hit.Similarity, 1e-6)
}

func TestATextThatAlwaysFailsEndsDeadAndOthersGoOn(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]embedtest.Failure{
		"refused":               embedtest.Status(400),
		"forbidden":             embedtest.Status(403),
		"crashing the service":  embedtest.Status(500),
		"without a good answer": embedtest.Null,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			r.stub.FailTexts("poison", failure)
			r.save(t, append(talk("m", 40), said("bad", "This is poison"))...)
			r.save(t, said("late", "The next one"))
			r.work(t, 2)
			assert.Equal(t, int64(1), r.settled(t).Dead)
			assert.Len(t, r.embedded(t), 41)
			assert.NotContains(t, r.embedded(t), "bad")

			dead, err := r.Jobs(ctx, recall.JobListing{Dead: true})
			require.NoError(t, err)
			require.Len(t, dead, 1)
			assert.Equal(t, recall.JobDead, dead[0].State)
			assert.Equal(t, []string{"bad"}, dead[0].MessageIDs)
			assert.Equal(t, resource, dead[0].ResourceID)
			assert.True(t, strings.HasPrefix(dead[0].LastError, "the message cannot be embedded"), dead[0].LastError)
			assert.NotContains(t, dead[0].LastError, "poison")

			r.stub.FailTexts("", failure)
			n, err := r.RetryJobs(ctx, nil)
			require.NoError(t, err)
			assert.Equal(t, int64(1), n)
			assert.Zero(t, r.settled(t).Dead)
			assert.Contains(t, r.embedded(t), "bad")
		})
	}
}

func TestTheJobOfARejectedMessageStaysOneOfItsThread(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.stub.FailTexts("poison", embedtest.Status(400))
	r.save(t, append(talk("m", 3), said("bad", "This is poison"))...)
	r.work(t, 2)
	require.Equal(t, int64(1), r.settled(t).Dead)

	_, err := r.TransferThread(ctx, thread, "", "bob")
	require.NoError(t, err)
	dead, err := r.Jobs(ctx, recall.JobListing{Dead: true})
	require.NoError(t, err)
	require.Len(t, dead, 1)
	assert.Equal(t, "bob", dead[0].ResourceID)
	assert.Equal(t, []string{thread}, column[string](t, r.memory, `
		SELECT args ->> 'threadId' FROM recall.river_job WHERE args @> '{"messageIds": ["bad"], "alone": true}'`))
}

func TestAServiceOutOfReachCostsNoTries(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]embedtest.Failure{
		"down": embedtest.Status(503), "with another key": embedtest.Status(401), "hanging up": embedtest.Hangup,
		"with other vectors": embedtest.WrongDimensions, "rejecting all": embedtest.Status(400),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			r.stub.Fail(failure)
			r.work(t, 1)
			r.save(t, talk("m", 3)...)
			eventually(t, func() bool { return r.stub.Requests() >= 3 })
			backlog, err := r.Backlog(ctx)
			require.NoError(t, err)
			assert.Equal(t, recall.Backlog{Waiting: 1, Oldest: backlog.Oldest}, backlog)
			assert.Positive(t, backlog.Oldest)
			r.stub.Heal()
			assert.Zero(t, r.settled(t).Dead)
			assert.Len(t, r.embedded(t), 3)
		})
	}
}

// slowly is a memory whose embedder tries again and waits as by default, but not so
// long for an answer.
func slowly(t testing.TB) remotely {
	t.Helper()
	const timeout = 400 * time.Millisecond
	r := remotelyBy(t, dbtest.URL(t), remote.OpenAIConfig{Model: "stub", Dimensions: stubDimensions, Timeout: timeout})
	r.jobTime = 6 * timeout // as serve has it
	r.goLive(t, "remote")
	return r
}

func TestTextsThatHangOrFailAllEndDeadEachInItsOwnJob(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]embedtest.Failure{
		"hanging": embedtest.Hang, "crashing the service": embedtest.Status(500),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := slowly(t)
			r.stub.FailTexts("poison", failure)
			var all []recall.NewMessage
			for i := range jobs.EmbedBatch {
				all = append(all, said(fmt.Sprint("bad", i), fmt.Sprint("This is poison number ", i)))
			}
			r.save(t, append(all, talk("m", 40)...)...)
			r.save(t, said("late", "The next one"))
			r.work(t, 2)
			assert.EqualValues(t, jobs.EmbedBatch, r.settled(t).Dead)
			assert.Len(t, r.embedded(t), 41)
			dead, err := r.Jobs(ctx, recall.JobListing{Dead: true})
			require.NoError(t, err)
			var named []string
			for _, job := range dead {
				named = append(named, job.MessageIDs...)
			}
			assert.ElementsMatch(t, newIDs(all), named)
		})
	}
}

func TestATextThatHangsDoesNotKeepOthersWaiting(t *testing.T) {
	t.Parallel()
	r := slowly(t)
	r.stub.FailTexts("poison", embedtest.Hang)
	r.save(t, append(talk("m", 20), said("bad", "This is poison"))...)
	r.work(t, jobs.DefaultTries)
	var left []recall.Job // "bad" has tries left
	eventually(t, func() bool {
		var err error
		left, err = r.Jobs(ctx, recall.JobListing{})
		return err == nil && len(left) == 1 && len(left[0].MessageIDs) == 1
	})
	assert.Equal(t, []string{"bad"}, left[0].MessageIDs)
	assert.Len(t, r.embedded(t), 20)
}

func TestAnOutageIsShownAndLoggedOnce(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.stub.Fail(embedtest.Status(503))
	log := r.work(t, 1)
	for i := range 5 {
		r.save(t, said(fmt.Sprint("m", i), "Words"))
	}
	eventually(t, func() bool {
		waiting, err := r.Jobs(ctx, recall.JobListing{})
		require.NoError(t, err)
		return !slices.ContainsFunc(waiting, func(j recall.Job) bool {
			return j.LastError != "the embedding service is unavailable: status 503" || j.State == recall.JobRetrying
		})
	})
	assert.Equal(t, 1, strings.Count(log.String(), "vectors wait"), log)
	assert.NotContains(t, log.String(), `"level":"INFO"`)
	r.stub.Heal()
	r.settled(t)
}

func TestManySavesOfOneMessageNeedFewRequests(t *testing.T) {
	t.Parallel()
	const saves = 200
	r := newRemote(t)
	for i := range saves {
		r.save(t, said(fmt.Sprint("m", i), fmt.Sprint("Message ", i)))
	}
	r.work(t, 1)
	r.settled(t)
	assert.Len(t, r.embedded(t), saves)
	assert.Less(t, r.stub.Requests(), saves/4)
}

// Another process may have a shorter time, and takes a job for abandoned after that.
func TestAJobSaysHowLongItMayRun(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.jobTime = 10 * time.Minute
	hold := r.stub.Hold()
	r.work(t, 1)
	r.save(t, said("m", "Words"))
	<-hold.Arrived()
	noted := column[int64](t, r.memory, `SELECT (j.metadata ->> 'timeoutMs')::bigint FROM recall.river_job AS j WHERE j.kind = 'embed'`)
	assert.Equal(t, []int64{r.jobTime.Milliseconds()}, noted)
	r.stub.Release()
	r.settled(t)
}

func TestASaveAndItsJobsCommitTogether(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.save(t, message(recall.NewMessage{ID: "taken", ThreadID: "other", Content: text("Here first")}))
	before := column[int](t, r.memory, `SELECT count(*) FROM recall.river_job`)
	_, err := r.SaveMessages(ctx, []recall.NewMessage{said("m", "New"), said("taken", "Taken")}, true)
	requireCode(t, err, recall.CodeConflict, "messages.1.id")
	assert.Equal(t, before, column[int](t, r.memory, `SELECT count(*) FROM recall.river_job`))

	all := talk("m", 2*jobs.EmbedBatch+1)
	for i, m := range talk("n", 3) {
		m.ThreadID, m.ResourceID = "of-ben", "ben"
		all = slices.Insert(all, 10*i, m)
	}
	r.save(t, all...)
	waiting, err := r.Jobs(ctx, recall.JobListing{})
	require.NoError(t, err)
	perJob := map[string][]int{}
	for _, job := range waiting[:len(waiting)-1] { // but for that of "taken"
		perJob[job.ResourceID] = append(perJob[job.ResourceID], len(job.MessageIDs))
		assert.Equal(t, recall.JobWaiting, job.State)
	}
	assert.Equal(t, map[string][]int{"ben": {3}, resource: {1, jobs.EmbedBatch, jobs.EmbedBatch}}, sorted(perJob))
}

func sorted(lists map[string][]int) map[string][]int {
	for _, list := range lists {
		slices.Sort(list)
	}
	return lists
}

func TestWithoutAnEmbedderThereAreNoJobs(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, talk("m", 3)...)
	backlog, err := m.Backlog(ctx)
	require.NoError(t, err)
	assert.Zero(t, backlog)
}

func TestJobsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	for i := range 5 {
		r.save(t, said(fmt.Sprint("m", i), "Words"))
	}
	var seen []string
	in := recall.JobListing{PerPage: 2}
	for {
		page, err := r.Jobs(ctx, in)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for _, job := range page {
			seen = append(seen, job.MessageIDs...)
			in.BeforeID = job.ID
		}
	}
	assert.Equal(t, []string{"m4", "m3", "m2", "m1", "m0"}, seen)
	n, err := r.RetryJobs(ctx, []int64{in.BeforeID})
	require.NoError(t, err)
	assert.Zero(t, n, "it is not dead")
	_, err = r.Jobs(ctx, recall.JobListing{PerPage: 100_000})
	requireCode(t, err, recall.CodeInvalid, "perPage")
}

// A text of nothing but white space as Go knows it, which SQL takes for words, and
// one that is all beyond the last chunk.
func TestWhatHasNoVectorDoesNotSeemToLackOne(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.save(t, said("blank", "\u00a0\u2003"), said("long", strings.Repeat("word ", 60_000)), said("m", "Words"))
	require.NoError(t, r.EmbedMessages(ctx, []string{"blank", "long", "m", "absent"}))
	coverage, err := r.IndexCoverage(ctx, "remote")
	require.NoError(t, err)
	assert.Zero(t, coverage.Missing)
	r.asked()
	require.NoError(t, r.EmbedMessages(ctx, []string{"blank", "long", "m", "absent"}))
	assert.Empty(t, r.asked())
}

// Whoever waits for an embedder holds no connection.
func TestNoConnectionIsHeldWhileTheEmbedderIsAsked(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.save(t, talk("m", 3)...)
	hold := r.stub.Hold()
	done := make(chan error, 2)
	go func() { done <- r.EmbedMessages(ctx, []string{"m1", "m2"}) }()
	go func() {
		_, err := r.Recall(ctx, recall.Request{ThreadID: thread, Search: meaning("tea", 1)})
		done <- err
	}()
	<-hold.Arrived()
	<-hold.Arrived()
	assert.Zero(t, r.pool.Stat().AcquiredConns())
	r.stub.Release()
	require.NoError(t, <-done)
	require.NoError(t, <-done)
}

// A job that was given up says nothing of a later one for the same message.
func TestWaitingForVectorsLooksAtTheNewestJob(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.stub.RejectTexts("poison")
	r.work(t, 1)
	r.save(t, said("m", "This is poison"), said("n", "This is not"))
	embedded, err := r.WaitEmbedded(ctx, []string{"m", "n"})
	require.NoError(t, err)
	assert.False(t, embedded)
	r.save(t, said("m", "This was edited"))
	embedded, err = r.WaitEmbedded(ctx, []string{"m", "n"})
	require.NoError(t, err)
	assert.True(t, embedded)
	_, err = newMemory(t).WaitEmbedded(ctx, []string{"m"})
	requireCode(t, err, recall.CodeInvalid)
}

func TestACopyOfWhatWaitsWaitsToo(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.save(t, talk("m", 5)...)
	require.NoError(t, r.EmbedMessages(ctx, []string{"m1"}))
	clone, err := r.CloneThread(ctx, recall.ThreadClone{SourceID: thread})
	require.NoError(t, err)
	r.work(t, 1)
	r.settled(t)
	assert.ElementsMatch(t, slices.Concat(newIDs(talk("m", 5)), ids(clone.Messages)), r.embedded(t))
}

func TestAPatchOfMetadataBringsNoJobThoughOneWaits(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.save(t, said("m", "Words"))
	for i, content := range []string{`{"metadata":{"read":true}}`, `{"metadata":{"name":"Sam"}}`, `{"metadata":null}`, `{"parts":[]}`} {
		_, err := r.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "m", Content: json.RawMessage(content)}}, "")
		require.NoError(t, err)
		backlog, err := r.Backlog(ctx)
		require.NoError(t, err)
		assert.Equal(t, []int64{1, 2, 3, 3}[i], backlog.Waiting, content)
	}
}

// An embedder that neither answers nor hangs up costs hybrid a part of the request's
// time, and no more.
func TestHybridDoesWithoutAnEmbedderThatHangs(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.save(t, said("m", "Whales sing"))
	r.stub.Hold()
	short, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	for range 2 {
		result, err := r.Recall(short, recall.Request{ThreadID: thread, PerPage: of(0), Search: &recall.Search{Question: "whales"}})
		require.NoError(t, err)
		assert.True(t, result.Degraded)
		assert.Equal(t, []string{"m"}, ids(result.Messages))
	}
	_, err := r.Recall(short, recall.Request{ThreadID: thread, Search: meaning("whales", 1)})
	requireCode(t, err, recall.CodeUnavailable)
}

func TestASearchWhoseIndexWasDroppedDegrades(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.save(t, said("m", "Whales sing"))
	_, err := r.RollBack(ctx, "remote")
	require.NoError(t, err)
	require.NoError(t, r.DropIndex(ctx, "remote", true))
	result := r.recall(t, recall.Request{ThreadID: thread, PerPage: of(0), Search: &recall.Search{Question: "whales"}})
	assert.True(t, result.Degraded)
	assert.Equal(t, []string{"m"}, ids(result.Messages))
	_, err = r.Recall(ctx, recall.Request{ThreadID: thread, Search: meaning("whales", 1)})
	requireCode(t, err, recall.CodeUnavailable)
}

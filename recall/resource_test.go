package recall_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db"
	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/jobs"
)

// everyRow gives all rows of all tables of the schema, with the table's name before
// each, and bytes as the characters that they are of. The tables and columns are
// those of the catalog, so that none is forgotten.
func (m memory) everyRow(t must) []string {
	t.Helper()
	queries := column[string](t, m, `
		SELECT format(
			'SELECT %L || concat_ws(%L, %s) FROM recall.%I',
			c.relname || ': ',
			', ',
			string_agg(
				format(
					CASE WHEN a.atttypid = 'bytea'::regtype THEN 'quote_nullable(encode(%I, ''escape''))' ELSE 'quote_nullable(%I::text)' END, a.attname
				),
				', ' ORDER BY a.attnum
			),
			c.relname
		)
		FROM pg_class AS c
		JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE c.relnamespace = 'recall'::regnamespace AND c.relkind IN ('r', 'p', 'm')
		GROUP BY c.oid`)
	require.NotEmpty(t, queries)
	return column[string](t, m, strings.Join(queries, ` UNION ALL `)+` ORDER BY 1`)
}

// rowsWith gives those rows of all tables that hold one of some words.
func (m memory) rowsWith(t must, words ...string) []string {
	t.Helper()
	var rows []string
	for _, row := range m.everyRow(t) {
		for _, word := range words {
			if strings.Contains(row, word) {
				rows = append(rows, row)
				break
			}
		}
	}
	return rows
}

// held gives what is left of a resource, by table, where anything is.
func (m memory) held(t must, resourceID string) []string {
	t.Helper()
	return column[string](t, m, `
		SELECT h.table_name || ' ' || h.held FROM recall.held($1) AS h WHERE h.held > 0 ORDER BY 1`, resourceID)
}

func (m memory) erase(t must, resourceID string) recall.Counts {
	t.Helper()
	receipt, err := m.EraseResource(ctx, resourceID)
	require.NoError(t, err)
	require.Equal(t, resourceID, receipt.ResourceID)
	require.False(t, receipt.ErasedAt.IsZero())
	return receipt.Counts
}

// talkOf gives n messages of a thread, all of which say a word.
func talkOf(owner, threadID, prefix, word string, n int) []recall.NewMessage {
	messages := series(prefix, n, recall.NewMessage{ThreadID: threadID, ResourceID: owner})
	for i := range messages {
		messages[i].Content = text(fmt.Sprintf("%s is what they talk about, number %d", word, i))
	}
	return messages
}

// workUntilSettled works on all jobs there are.
func (r remotely) workUntilSettled(t *testing.T) {
	t.Helper()
	workers, err := jobs.Start(ctx, jobs.Config{
		Pool: dbtest.Open(t, r.url), Logger: slog.New(slog.DiscardHandler), Tries: 1,
		Embed: r.EmbedMessages, Model: r.embedder.Model(), Dimensions: r.embedder.Dimensions(),
	})
	require.NoError(t, err)
	r.settled(t)
	require.NoError(t, workers.Stop(ctx))
}

// A user with everything that a user can have: vectors in two indexes, jobs that are
// done, dead and waiting, for titles as well, working memory with versions, and answers
// that are kept.
func TestAnErasedResourceIsInNoTableAndOthersAreUntouched(t *testing.T) {
	t.Parallel()
	const user, other, word = "resq-alice", "resq-bob", "qwxzkv"
	r := newRemote(t)
	static := memory{recall.New(r.pool, recall.DefaultLimits(), recall.WithEmbedder(embed.Static{})), r.pool}
	r.stub.RejectTexts("poison")
	for _, message := range talkOf(user, "thrq-1", "msgq-a", word, 2) {
		message.Content = text(word + " is poison")
		r.save(t, message)
	}
	static.save(t, talkOf(user, "thrq-1", "msgq-b", word, 98)...)
	static.save(t, talkOf(other, "thrb-1", "msgb-", "tea", 5)...)
	r.workUntilSettled(t)
	static.save(t, talkOf(user, "thrq-2", "msgq-c", word, 48)...)
	_, err := r.UpdateThread(ctx, recall.ThreadUpdate{ID: "thrq-1", Title: of(word), Metadata: []byte(`{"` + word + `":"` + word + `"}`)})
	require.NoError(t, err)
	asked := titledOn(t, r.url, "Title")
	asked.configure(t, agent, `{"generateTitle":true}`)
	for _, of := range []struct{ id, prefix, word string }{{user, "q", word}, {other, "b", "tea"}} {
		_, err := r.pool.Exec(ctx, `INSERT INTO recall.resources (id, created_at, updated_at) VALUES ($1, now(), now())`, of.id)
		require.NoError(t, err)
		first := "thr" + of.prefix + "-1"
		for i := range 3 {
			r.remember(t, ofResource(first), fmt.Sprint("Likes ", of.word, i))
			r.remember(t, ofThread(first), fmt.Sprint("Plans ", of.word, i))
		}
		_, err = asked.SaveMessages(ctx, talkOf(of.id, "thr"+of.prefix+"-3", "msg"+of.prefix+"-d", of.word, 1), true, recall.ForAgent(agent))
		require.NoError(t, err)
		named := key("named "+of.prefix, `{"resourceId":"`+of.id+`"}`)
		unnamed := key("unnamed "+of.prefix, `{}`)
		unnamed.ThreadID = first
		for _, key := range []recall.Key{named, unnamed} {
			_, err = r.OnceRead(ctx, key, func(*recall.Memory) (recall.Answer, error) {
				return recall.Answer{Status: 200, Body: []byte(`{"text":"` + of.word + `"}`)}, nil
			})
			require.NoError(t, err)
		}
	}

	// 146 messages in the index of the one embedder, 98 in that of the other.
	want := recall.Counts{
		Threads: 3, Messages: 149, Vectors: 146 + 98, WorkingMemory: 2, Versions: 6, Jobs: 2 + 4 + 2 + 1, IdempotencyKeys: 2,
	}
	holdings, err := r.Resource(ctx, user)
	require.NoError(t, err)
	require.Equal(t, want, holdings.Counts)
	theirs := r.rowsWith(t, other, "thrb-", "msgb-")
	require.NotEmpty(t, r.rowsWith(t, word))
	assert.Equal(t, want, r.erase(t, user))
	assert.Empty(t, r.rowsWith(t, user, "thrq-", "msgq-", word))
	assert.Empty(t, r.held(t, user))
	assert.Equal(t, theirs, r.rowsWith(t, other, "thrb-", "msgb-"))
	assert.Equal(t, recall.Counts{}, r.erase(t, user), "nothing, and no failure")
	_, err = r.Resource(ctx, user)
	requireCode(t, err, recall.CodeNotFound)
}

func TestWhatIsHeldTellsOfTheFirstAndTheLastActivity(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, series("m", 3, recall.NewMessage{})...)
	made, err := m.Thread(ctx, thread, "")
	require.NoError(t, err)
	holdings, err := m.Resource(ctx, resource)
	require.NoError(t, err)
	assert.Equal(t, recall.Counts{Threads: 1, Messages: 3}, holdings.Counts)
	assert.Equal(t, second(1), *holdings.FirstActivityAt)
	last := second(3)
	if made.UpdatedAt.After(last) {
		last = made.UpdatedAt
	}
	assert.Equal(t, last, *holdings.LastActivityAt)

	_, err = m.pool.Exec(ctx, `INSERT INTO recall.resources (id, created_at, updated_at) VALUES ('bob', now(), now())`)
	require.NoError(t, err)
	holdings, err = m.Resource(ctx, "bob")
	require.NoError(t, err)
	assert.Equal(t, recall.Holdings{ResourceID: "bob"}, holdings, "something")
	for _, id := range []string{"an", "ana ", "Ana", "a%", ""} {
		_, err = m.Resource(ctx, id)
		require.Error(t, err, id)
	}
}

// Whoever has a new table of a resource's finds it here.
func TestWhatIsHeldLooksIntoEveryTableOfAResource(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	assert.Equal(t,
		column[string](t, m, `
			SELECT DISTINCT c.relname::text
			FROM pg_class AS c
			JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
			WHERE c.relnamespace = 'recall'::regnamespace AND c.relkind IN ('r', 'p')
				AND (a.attname ~ '^resource_ids?$' OR c.relname IN ('resources', 'river_job'))
			ORDER BY 1`),
		column[string](t, m, `SELECT h.table_name FROM recall.held('nobody') AS h`))
}

func TestAClonedThreadsCopiesForgetAnErasedSource(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, series("msgq-", 3, recall.NewMessage{ThreadID: "thrq", ResourceID: "resq"})...)
	m.save(t, series("b", 1, recall.NewMessage{ThreadID: "of bob", ResourceID: "bob"})...)
	for id, in := range map[string]recall.ThreadClone{
		"own":     {SourceID: "thrq"},
		"foreign": {SourceID: "thrq", ResourceID: "bob", Metadata: []byte(`{"a":1}`)},
		"given":   {SourceID: "of bob", ResourceID: "resq"},
	} {
		in.ID = id
		require.NoError(t, cloned(m, in))
	}
	_, err := m.TransferThread(ctx, "given", "", "bob")
	require.NoError(t, err)
	// A user's own value where ours was.
	require.NoError(t, cloned(m, recall.ThreadClone{SourceID: "thrq", ID: "odd", ResourceID: "bob"}))
	_, err = m.UpdateThread(ctx, recall.ThreadUpdate{ID: "odd", Metadata: []byte(`{"clone":["x"]}`)})
	require.NoError(t, err)

	assert.Equal(t, recall.Counts{Threads: 2, Messages: 6}, m.erase(t, "resq"))
	assert.Empty(t, m.rowsWith(t, "resq", "thrq", "msgq-"))
	assert.Len(t, m.stored(t, "foreign"), 3)
	for _, id := range []string{"foreign", "odd"} {
		source, err := m.SourceThread(ctx, id, "bob")
		require.NoError(t, err)
		assert.Nil(t, source)
	}
	kept, err := m.SourceThread(ctx, "given", "bob")
	require.NoError(t, err)
	assert.Equal(t, "of bob", kept.ID, "a copy of a thread that stays")
}

func TestAJobUnderWayWritesNothingOfAnErasedResource(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	hold := r.stub.Hold()
	r.work(t, 1)
	r.save(t, talkOf("resq", "thrq", "msgq-", "qwxzkv", 5)...)
	<-hold.Arrived()
	counts := r.erase(t, "resq")
	assert.Equal(t, recall.Counts{Threads: 1, Messages: 5, Jobs: 1}, counts)
	r.stub.Release()
	r.save(t, said("m", "The next one"))
	r.settled(t)
	assert.Equal(t, []string{"m"}, r.embedded(t), "the worker goes on")
	assert.Empty(t, r.rowsWith(t, "resq", "thrq", "msgq-", "qwxzkv"))
}

func TestTheJobsOfAThreadGoWithItToAnotherResource(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.save(t, append(
		talkOf("ana", "given", "g", "tea", 2),
		talkOf("ana", "kept", "k", "trains", 2)...,
	)...)
	_, err := r.TransferThread(ctx, "given", "", "bob")
	require.NoError(t, err)
	assert.Equal(t, recall.Counts{Threads: 1, Messages: 2, Jobs: 1}, r.erase(t, "ana"))
	r.workUntilSettled(t)
	assert.Equal(t, []string{"g1", "g2"}, r.embedded(t), "of bob, whom nobody erases")
	assert.Equal(t, recall.Counts{Threads: 1, Messages: 2, Vectors: 2, Jobs: 1}, r.erase(t, "bob"))
	assert.Empty(t, r.rowsWith(t, "given", "kept"))
}

// A clone that has copied the messages, and cannot commit yet, is found by an
// erasure that comes meanwhile.
func TestACloneUnderWayIsErasedWithItsSource(t *testing.T) {
	t.Parallel()
	for _, owner := range []string{"resq", "bob"} {
		t.Run(owner, func(t *testing.T) {
			t.Parallel()
			m := newMemory(t)
			m.save(t, series("msgq-", 3, recall.NewMessage{ThreadID: "thrq", ResourceID: "resq"})...)
			barrier, err := m.pool.Begin(ctx)
			require.NoError(t, err)
			_, err = barrier.Exec(ctx, `LOCK TABLE recall.embedding_indexes IN ACCESS EXCLUSIVE MODE`)
			require.NoError(t, err)
			clone, erasure := make(chan error, 1), make(chan error, 1)
			go func() {
				clone <- cloned(m, recall.ThreadClone{SourceID: "thrq", ID: "clone", ResourceID: owner})
			}()
			m.waiting(t, 1)
			go func() {
				_, err := m.EraseResource(ctx, "resq")
				erasure <- err
			}()
			m.waiting(t, 2)
			require.NoError(t, barrier.Commit(ctx))
			require.NoError(t, <-clone)
			require.NoError(t, <-erasure)
			assert.Empty(t, m.rowsWith(t, "resq", "thrq", "msgq-"))
			if owner != "resq" {
				assert.Len(t, m.stored(t, "clone"), 3)
			}
		})
	}
}

// waiting waits until so many statements wait for a lock.
func (m memory) waiting(t must, n int) {
	t.Helper()
	eventually(t, func() bool {
		var waiting int
		m.scan(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND wait_event_type = 'Lock'`, nil, &waiting)
		return waiting == n
	})
}

// waitingFor waits until a statement waits for a table.
func (m memory) waitingFor(t must, table string) {
	t.Helper()
	eventually(t, func() bool {
		var waiting bool
		m.scan(t, `SELECT EXISTS (SELECT FROM pg_locks AS l WHERE NOT l.granted AND l.relation = ('recall.' || $1)::regclass)`, []any{table}, &waiting)
		return waiting
	})
}

func TestASaveThatWaitsForAnErasureStartsAnew(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, series("old", 3, recall.NewMessage{})...)
	barrier, err := m.pool.Begin(ctx)
	require.NoError(t, err)
	_, err = barrier.Exec(ctx, `LOCK TABLE recall.embedding_indexes IN ACCESS EXCLUSIVE MODE`)
	require.NoError(t, err)
	erasure, created, appended := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := m.EraseResource(ctx, resource)
		erasure <- err
	}()
	m.waiting(t, 1) // it has the threads
	go func() {
		_, err := m.SaveMessages(ctx, series("new", 2, recall.NewMessage{}), true)
		created <- err
	}()
	go func() {
		_, err := m.SaveMessages(ctx, series("late", 2, recall.NewMessage{}), false)
		appended <- err
	}()
	m.waiting(t, 3)
	require.NoError(t, barrier.Commit(ctx))
	require.NoError(t, <-erasure)
	require.NoError(t, <-created)
	stored := ids(m.stored(t, thread))
	if err := <-appended; err != nil {
		requireCode(t, err, recall.CodeNotFound)
		assert.Equal(t, []string{"new1", "new2"}, stored)
	} else {
		assert.Subset(t, []string{"new1", "late1", "new2", "late2"}, stored)
	}
	m.requireCounted(t)
}

// A thread that comes while an erasure is under way, after the threads are locked, has
// its job.
func TestAThreadThatComesDuringAnErasureKeepsItsJob(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.save(t, talkOf("resq", "thrq", "msgq-", "qwxzkv", 2)...)
	lift := r.barrier(t, "resources")
	erasure := make(chan error, 1)
	go func() {
		_, err := r.EraseResource(ctx, "resq")
		erasure <- err
	}()
	r.waiting(t, 1)
	r.save(t, talkOf("resq", "new", "n", "tea", 2)...)
	lift()
	require.NoError(t, <-erasure)
	r.workUntilSettled(t)
	assert.Equal(t, []string{"n1", "n2"}, r.embedded(t))
	assert.Empty(t, r.rowsWith(t, "thrq", "msgq-", "qwxzkv"))
}

// What was read before an erasure is answered after it, and kept nowhere.
func TestAnAnswerReadBeforeAnErasureIsNotKeptAfterIt(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, talkOf("resq", "thrq", "msgq-", "qwxzkv", 2)...)
	reading := func(meanwhile func()) func(*recall.Memory) (recall.Answer, error) {
		return func(m *recall.Memory) (recall.Answer, error) {
			page, err := m.Recall(ctx, recall.Request{ThreadID: "thrq"})
			if err != nil {
				return recall.Answer{}, err
			}
			meanwhile()
			return recall.Answer{Status: 200, Body: page.Messages[0].Content}, nil
		}
	}
	_, err := m.OnceRead(ctx, key("before", `{"resourceId":"resq"}`), reading(func() {}))
	require.NoError(t, err)
	require.Equal(t, []string{"before"}, m.keys(t))
	answer, err := m.OnceRead(ctx, key("during", `{"resourceId":"resq"}`), reading(func() {
		assert.Equal(t, recall.Counts{Threads: 1, Messages: 2, IdempotencyKeys: 1}, m.erase(t, "resq"))
	}))
	require.NoError(t, err)
	require.Contains(t, string(answer.Body), "qwxzkv")
	require.False(t, answer.Replayed)
	assert.Empty(t, m.rowsWith(t, "resq", "thrq", "qwxzkv", "during"))
	_, err = m.OnceRead(ctx, key("during", `{"resourceId":"resq"}`), reading(func() {}))
	requireCode(t, err, recall.CodeNotFound)
}

// One that is being kept while an erasure is under way is erased, or not kept.
func TestAnAnswerThatIsBeingKeptIsErased(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, talkOf("resq", "thrq", "msgq-", "qwxzkv", 2)...)
	keep := func(name string) error {
		_, err := m.OnceRead(ctx, key(name, `{"resourceId":"resq"}`), func(*recall.Memory) (recall.Answer, error) {
			return recall.Answer{Status: 200, Body: []byte(`"qwxzkv"`)}, nil
		})
		return err
	}
	before, after := m.barrier(t, "messages"), m.barrier(t, "river_job") // of when the erasure is counted
	erasure, read := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := m.EraseResource(ctx, "resq")
		erasure <- err
	}()
	m.waiting(t, 1)
	require.NoError(t, keep("early"))
	require.Equal(t, []string{"early"}, m.keys(t))
	before()
	m.waitingFor(t, "river_job")
	go func() { read <- keep("late") }()
	m.waiting(t, 2)
	after()
	require.NoError(t, <-erasure)
	require.NoError(t, <-read)
	assert.Empty(t, m.rowsWith(t, "resq", "qwxzkv", "early", "late"))
}

// barrier keeps others from a table until what it gives is called.
func (m memory) barrier(t must, table string) (lift func()) {
	t.Helper()
	tx, err := m.pool.Begin(ctx)
	require.NoError(t, err)
	_, err = tx.Exec(ctx, `LOCK TABLE recall.`+table+` IN ACCESS EXCLUSIVE MODE`)
	require.NoError(t, err)
	return func() { require.NoError(t, tx.Commit(ctx)) }
}

func TestWritersAndErasuresAtOnceDoNotDeadlock(t *testing.T) {
	t.Parallel()
	m, _ := counted(t)
	owners, threads := []string{"ana", "bob"}, []string{"t1", "t2", "t3", "t4"}
	anyOf := func(list []string) string { return list[rand.IntN(len(list))] }
	newest := func() recall.NewMessage {
		return recall.NewMessage{ThreadID: anyOf(threads), ResourceID: anyOf(owners)}
	}
	remember := func(scope recall.Scope) error {
		_, err := m.UpdateWorkingMemory(ctx, recall.WorkingMemoryUpdate{
			WorkingMemoryOf: recall.WorkingMemoryOf{ThreadID: anyOf(threads), Config: recall.WorkingMemoryConfig{Scope: scope}},
			Text:            of(prefix()),
		})
		return err
	}
	writers := []func() error{
		func() error {
			_, err := m.SaveMessages(ctx, append(series(prefix(), 3, newest()), series(prefix(), 3, newest())...), true)
			return err
		},
		func() error { _, err := m.SaveMessages(ctx, series(prefix(), 3, newest()), true); return err },
		func() error { _, err := m.EraseResource(ctx, anyOf(owners)); return err },
		func() error {
			return cloned(m, recall.ThreadClone{SourceID: anyOf(threads), ResourceID: anyOf(owners)})
		},
		func() error { _, err := m.TransferThread(ctx, anyOf(threads), "", anyOf(owners)); return err },
		func() error { _, err := m.DeleteThreadMessages(ctx, anyOf(threads), ""); return err },
		func() error { return m.DeleteThread(ctx, anyOf(threads), "") },
		func() error { return remember(recall.ScopeResource) },
		func() error { return remember(recall.ScopeThread) },
		func() error {
			_, err := m.Once(ctx, key(fmt.Sprint(rand.IntN(4)), `{}`), func(m *recall.Memory) (recall.Answer, error) {
				owner := anyOf(owners)
				_, err := m.SaveMessages(ctx, series(prefix(), 3, recall.NewMessage{ThreadID: anyOf(threads), ResourceID: owner}), true)
				return recall.Answer{Status: 200, Body: []byte(`{"resourceId":"` + owner + `"}`)}, err
			})
			return err
		},
		func() error {
			_, err := m.OnceRead(ctx, key(fmt.Sprint(rand.IntN(4)), `{}`), func(*recall.Memory) (recall.Answer, error) {
				return recall.Answer{Status: 200, Body: []byte(`{"resourceId":"` + anyOf(owners) + `"}`)}, nil
			})
			return err
		},
		func() error { // so that keys are taken again
			_, err := m.pool.Exec(ctx, `UPDATE recall.idempotency_keys SET created_at = created_at - interval '25 hours' WHERE key = $1`,
				fmt.Sprint(rand.IntN(4)))
			return err
		},
	}
	for _, err := range together(6, func(i int) error {
		for n := range 50 {
			switch err := writers[(i+n)%len(writers)](); codeOf(err) {
			case recall.CodeNotFound, recall.CodeForbidden, recall.CodeInvalid, recall.CodeUnavailable:
			default:
				if err != nil {
					return err
				}
			}
		}
		return nil
	}) {
		require.NoError(t, err)
	}
	m.requireCounted(t)
	m.requireIdle(t)
	for _, owner := range owners {
		m.erase(t, owner)
		assert.Empty(t, m.rowsWith(t, owner))
	}
	assert.Empty(t, m.vectorsOf(t, "true"))
	_, err := m.pool.Exec(ctx, `SELECT pg_stat_force_next_flush()`)
	require.NoError(t, err)
	var deadlocks int
	m.scan(t, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`, nil, &deadlocks)
	assert.Zero(t, deadlocks)
}

func TestAnErasureThatTakesTooLongLeavesEverything(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, series("m", 3, recall.NewMessage{})...)
	before := m.everyRow(t)
	barrier, err := m.pool.Begin(ctx)
	require.NoError(t, err)
	_, err = barrier.Exec(ctx, `LOCK TABLE recall.resources IN ACCESS EXCLUSIVE MODE`) // after the threads' turn
	require.NoError(t, err)
	impatient, err := db.Open(ctx, db.Config{URL: m.pool.Config().ConnString(), StatementTimeout: 200 * time.Millisecond})
	require.NoError(t, err)
	defer impatient.Close()
	_, err = recall.New(impatient, recall.DefaultLimits()).EraseResource(ctx, resource)
	requireCode(t, err, recall.CodeUnavailable)
	require.NoError(t, barrier.Rollback(ctx))
	assert.Equal(t, before, m.everyRow(t))
}

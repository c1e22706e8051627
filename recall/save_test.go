package recall_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
)

// ctx is that of tests that do not end it.
var ctx = context.Background()

func reversed[T any](list []T) []T {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

func TestSavesOfTheSameIDsInOppositeOrderAllSucceed(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	messages := series("m", 100, recall.NewMessage{})
	m.create(t, recall.NewThread{ID: thread})
	save := func(messages []recall.NewMessage) func(int) error {
		return func(int) error {
			_, err := m.SaveMessages(ctx, messages, true)
			return err
		}
	}
	for _, err := range together(25, save(messages), save(reversed(messages))) {
		require.NoError(t, err)
	}
	require.Equal(t, newIDs(messages), ids(m.stored(t, thread)))
	m.requireSequence(t, thread, 100)
	m.requireCounted(t)
	m.requireNoDeadlock(t)
}

// requireSequence checks that the positions of a thread are 1 to n.
func (m memory) requireSequence(t must, threadID string, n int) {
	t.Helper()
	var wanted []int64
	for i := range n {
		wanted = append(wanted, int64(i+1))
	}
	require.Equal(t, wanted, column[int64](t, m, `SELECT seq FROM recall.messages WHERE thread_id = $1 ORDER BY seq`, threadID))
	require.Equal(t, []int64{int64(n)}, column[int64](t, m, `SELECT last_seq FROM recall.threads WHERE id = $1`, threadID))
}

func TestSavesOverThreadsInOppositeOrderAllSucceed(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	save := func(messages []recall.NewMessage) func(int) error {
		return func(int) error {
			_, err := m.SaveMessages(ctx, messages, true)
			return err
		}
	}
	for round := range 12 { // the threads are new in each
		var messages []recall.NewMessage
		for i := range 8 {
			name := fmt.Sprintf("t%d-%d", round, i)
			messages = append(messages, series(name+"-", 3, recall.NewMessage{ThreadID: name})...)
		}
		for _, err := range together(4, save(messages), save(reversed(messages))) {
			require.NoError(t, err)
		}
		for i := range 8 {
			m.requireSequence(t, fmt.Sprintf("t%d-%d", round, i), 3)
		}
	}
	m.requireCounted(t)
	m.requireNoDeadlock(t)
}

// requireNoDeadlock checks that PostgreSQL had no deadlock to resolve in the
// database. It closes the pool, since connections report what they counted at
// their end.
func (m memory) requireNoDeadlock(t *testing.T) {
	t.Helper()
	address := m.pool.Config().ConnString()
	m.pool.Close()
	observer := memoryOn(dbtest.Open(t, address))
	alone := func() bool {
		var others int
		observer.scan(t, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`, nil, &others)
		return others == 0
	}
	require.Eventually(t, alone, 10*time.Second, 5*time.Millisecond)
	require.Equal(t, []int64{0}, column[int64](t, observer, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`))
}

func TestSavesOfTheSameIDsIntoTwoThreadsHaveOneWinner(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	for round := range 20 {
		one, two := fmt.Sprintf("one-%d", round), fmt.Sprintf("two-%d", round)
		inOne := series(fmt.Sprintf("m%d-", round), 30, recall.NewMessage{ThreadID: one})
		inTwo := reversed(inOne)
		for i := range inTwo {
			inTwo[i].ThreadID = two
		}
		save := func(messages []recall.NewMessage) func(int) error {
			return func(int) error {
				_, err := m.SaveMessages(ctx, messages, true)
				return err
			}
		}
		conflicts := 0
		for _, err := range together(1, save(inOne), save(inTwo)) {
			if err != nil {
				require.Equal(t, recall.CodeConflict, codeOf(err), "%v", err)
				conflicts++
			}
		}
		require.Equal(t, 1, conflicts)
		stored := column[string](t, m, `SELECT DISTINCT thread_id FROM recall.messages WHERE thread_id IN ($1, $2)`, one, two)
		require.Len(t, stored, 1)
		m.requireSequence(t, stored[0], 30)
		loser := map[string]string{one: two, two: one}[stored[0]]
		require.Empty(t, column[string](t, m, `SELECT id FROM recall.threads WHERE id = $1`, loser), "nothing of the loser stays")
	}
	m.requireCounted(t)
	m.requireNoDeadlock(t)
}

func TestIDInAnotherThreadIsAConflictAndMovesNothing(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, series("m", 3, recall.NewMessage{})...)
	m.create(t, recall.NewThread{ID: "second"})
	untouched := m.contents(t)

	batch := series("n", 3, recall.NewMessage{ThreadID: "second"})
	batch[1].ID = "m2"
	_, err := m.SaveMessages(ctx, batch, true)
	requireCode(t, err, recall.CodeConflict, "messages.1.id")
	require.Equal(t, untouched, m.contents(t))
}

func TestConflictNamesThePlaceInTheRequest(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, message(recall.NewMessage{ID: "taken"}))
	batch := []recall.NewMessage{
		message(recall.NewMessage{ID: "a", ThreadID: "second"}),
		message(recall.NewMessage{ID: "a", ThreadID: "second"}),
		message(recall.NewMessage{ID: "taken", ThreadID: "second"}),
	}
	_, err := m.SaveMessages(ctx, batch, true)
	requireCode(t, err, recall.CodeConflict, "messages.2.id")
}

func TestOneIDForMessagesOfTwoThreadsIsAConflict(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	_, err := m.SaveMessages(ctx, []recall.NewMessage{
		message(recall.NewMessage{ID: "a"}),
		message(recall.NewMessage{ID: "b"}),
		message(recall.NewMessage{ID: "a", ThreadID: "second"}),
	}, true)
	requireCode(t, err, recall.CodeConflict, "messages.2.id")
	require.Empty(t, m.contents(t))
}

func TestThreadOfAnotherResourceIsRefused(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread, Title: of("mine"), Metadata: json.RawMessage(`{"a":1}`)})
	m.save(t, series("m", 2, recall.NewMessage{})...)
	untouched := m.contents(t)

	_, err := m.CreateThread(ctx, recall.NewThread{ID: thread, ResourceID: "bob", Title: of("his")})
	requireCode(t, err, recall.CodeConflict)
	for _, createThreads := range []bool{true, false} {
		_, err = m.SaveMessages(ctx, []recall.NewMessage{
			message(recall.NewMessage{ID: "n", ResourceID: "bob"}),
		}, createThreads)
		requireCode(t, err, recall.CodeForbidden)
	}
	_, err = m.SaveMessages(ctx, []recall.NewMessage{
		message(recall.NewMessage{ID: "n1", ThreadID: "new", ResourceID: "bob"}),
		message(recall.NewMessage{ID: "n2", ResourceID: "bob"}),
	}, true)
	requireCode(t, err, recall.CodeForbidden)
	_, err = m.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "m1", Role: "tool"}}, "bob")
	requireCode(t, err, recall.CodeNotFound)
	_, err = m.UpdateThread(ctx, recall.ThreadUpdate{ID: thread, ResourceID: "bob", Title: of("his")})
	requireCode(t, err, recall.CodeForbidden)
	_, err = m.TransferThread(ctx, thread, "bob", "bob")
	requireCode(t, err, recall.CodeForbidden)
	_, err = m.CloneThread(ctx, recall.ThreadClone{SourceID: thread, SourceResourceID: "bob"})
	requireCode(t, err, recall.CodeForbidden)
	_, err = m.DeleteThreadMessages(ctx, thread, "bob")
	requireCode(t, err, recall.CodeForbidden)
	requireCode(t, m.DeleteThread(ctx, thread, "bob"), recall.CodeForbidden)
	n, err := m.DeleteMessages(ctx, []string{"m1", "m2", "unknown"}, "bob")
	require.NoError(t, err)
	require.Zero(t, n)
	_, err = m.Recall(ctx, recall.Request{ThreadID: thread, ResourceID: "bob"})
	requireCode(t, err, recall.CodeForbidden)
	_, err = m.ListMessages(ctx, recall.Request{ThreadID: thread, ResourceID: "bob"})
	requireCode(t, err, recall.CodeForbidden)
	require.Equal(t, untouched, m.contents(t))
}

func TestUnknownThreadIsNotFound(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	_, err := m.SaveMessages(ctx, []recall.NewMessage{message(recall.NewMessage{ID: "a"})}, false)
	requireCode(t, err, recall.CodeNotFound)
	_, err = m.Thread(ctx, thread, "")
	requireCode(t, err, recall.CodeNotFound)
	_, err = m.Recall(ctx, recall.Request{ThreadID: thread})
	requireCode(t, err, recall.CodeNotFound)
	_, err = m.Recall(ctx, recall.Request{ThreadID: thread, ResourceID: resource, Filter: recall.Filter{Roles: []string{"user"}}})
	requireCode(t, err, recall.CodeNotFound)
	_, err = m.UpdateThread(ctx, recall.ThreadUpdate{ID: thread, Title: of("x")})
	requireCode(t, err, recall.CodeNotFound)
	_, err = m.TransferThread(ctx, thread, "", "bob")
	requireCode(t, err, recall.CodeNotFound)
	_, err = m.CloneThread(ctx, recall.ThreadClone{SourceID: thread})
	requireCode(t, err, recall.CodeNotFound)
	_, err = m.DeleteThreadMessages(ctx, thread, "")
	requireCode(t, err, recall.CodeNotFound)
	requireCode(t, m.DeleteThread(ctx, thread, ""), recall.CodeNotFound)
	_, err = m.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "a", Role: "user"}}, "")
	requireCode(t, err, recall.CodeNotFound)
	require.Empty(t, m.contents(t))
}

func TestBatchWithEqualTimesKeepsItsOrder(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	// Names against the order of the batch: ids never decide.
	given := []string{"z", "a", "y", "b", "x", "c"}
	var messages []recall.NewMessage
	for _, id := range given {
		messages = append(messages, message(recall.NewMessage{ID: id, CreatedAt: second(1)}))
	}
	m.save(t, messages...)
	require.Equal(t, given, ids(m.stored(t, thread)))

	var untimed []recall.NewMessage
	for _, id := range given {
		untimed = append(untimed, message(recall.NewMessage{ID: "now-" + id, ThreadID: "now"}))
	}
	saved := m.save(t, untimed...)
	require.Equal(t, ids(saved), ids(m.stored(t, "now")))
	for _, message := range saved {
		require.Equal(t, saved[0].CreatedAt, message.CreatedAt)
		require.Equal(t, message.CreatedAt.Truncate(time.Millisecond), message.CreatedAt)
	}
}

func TestPositionsHaveNoGapAndAreNotReused(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	all := series("m", 10, recall.NewMessage{})
	m.save(t, all[:4]...)
	m.save(t, all[1], all[4], all[0], all[5]) // two known, two new
	m.requireSequence(t, thread, 6)
	conflicting := message(recall.NewMessage{ID: "m1", ThreadID: "second"})
	_, err := m.SaveMessages(ctx, []recall.NewMessage{all[6], conflicting}, true)
	requireCode(t, err, recall.CodeConflict, "messages.1.id")
	m.save(t, all[6:]...)
	m.requireSequence(t, thread, 10)

	_, err = m.DeleteMessages(ctx, []string{"m9", "m10"}, "")
	require.NoError(t, err)
	m.save(t, message(recall.NewMessage{ID: "m11"}))
	require.Equal(t, []int64{11}, column[int64](t, m, `SELECT seq FROM recall.messages WHERE id = 'm11'`))
	_, err = m.DeleteThreadMessages(ctx, thread, "")
	require.NoError(t, err)
	m.save(t, message(recall.NewMessage{ID: "m12"}))
	require.Equal(t, []int64{12}, column[int64](t, m, `SELECT seq FROM recall.messages WHERE id = 'm12'`))
	m.requireCounted(t)
}

func TestSaveAgainKeepsTimeAndPlaceAndReplacesTheRest(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, series("m", 3, recall.NewMessage{})...)
	saved := m.save(t, recall.NewMessage{
		ID: "m2", ThreadID: thread, ResourceID: resource, Role: "assistant", Type: "v2",
		CreatedAt: second(99), Content: json.RawMessage(`{"format":2,"parts":[],"x":1}`),
	})
	require.Equal(t, second(2), saved[0].CreatedAt)

	stored := m.stored(t, thread)
	require.Equal(t, []string{"m1", "m2", "m3"}, ids(stored))
	require.Equal(t, second(2), stored[1].CreatedAt)
	require.Equal(t, "assistant", stored[1].Role)
	require.Equal(t, "v2", stored[1].Type)
	require.JSONEq(t, `{"format":2,"parts":[],"x":1}`, string(stored[1].Content), "replaced, not merged")
	m.requireSequence(t, thread, 3)
}

func TestSaveOfWhatIsStoredAlreadyWritesNoRow(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	messages := series("m", 20, recall.NewMessage{Content: withMetadata(`{"b":1.0,"a":[1,2]}`)})
	m.save(t, messages...)
	versions := func() []string {
		return column[string](t, m, `SELECT m.id || ' ' || m.ctid || ' ' || m.xmin || ' ' || m.updated_at FROM recall.messages AS m ORDER BY m.id`)
	}
	first := versions()
	// The same value in other words, and another time, which is not taken.
	for i := range messages {
		messages[i].Content = json.RawMessage(` {"metadata": {"a":[1,2], "b":1.0}, "parts":[], "format":2 }`)
		messages[i].CreatedAt = second(500)
	}
	m.save(t, messages...)
	require.Equal(t, first, versions())

	messages[4].Role = "tool"
	m.save(t, messages...)
	changed := 0
	for i, version := range versions() {
		if version != first[i] {
			changed++
		}
	}
	require.Equal(t, 1, changed)
}

func TestIDGivenTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	saved := m.save(t,
		message(recall.NewMessage{ID: "a", Content: text("first"), CreatedAt: second(1)}),
		message(recall.NewMessage{ID: "b", CreatedAt: second(1)}),
		message(recall.NewMessage{ID: "a", Content: text("last"), CreatedAt: second(1)}),
	)
	require.Equal(t, []string{"a", "b"}, ids(saved))
	stored := m.stored(t, thread)
	require.Equal(t, []string{"a", "b"}, ids(stored))
	require.JSONEq(t, string(text("last")), string(stored[0].Content))
	m.requireCounted(t)
}

func TestMissingIDsAreGeneratedInOrder(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	saved := m.save(t, message(recall.NewMessage{}), message(recall.NewMessage{}), message(recall.NewMessage{}))
	require.True(t, slices.IsSorted(ids(saved)))
	require.Len(t, slices.Compact(ids(saved)), 3)
	require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, saved[0].ID)
	require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, m.create(t, recall.NewThread{}).ID)
}

func TestStringContentBecomesFormatTwo(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	given := json.RawMessage(`"say \"hé\" \ud83d\ude00"`)
	wanted := `{"format":2,"parts":[{"type":"text","text":"say \"hé\" 😀"}],"content":"say \"hé\" 😀"}`
	saved := m.save(t, message(recall.NewMessage{ID: "m1", Content: given}))
	require.JSONEq(t, wanted, string(saved[0].Content))
	require.JSONEq(t, wanted, string(m.stored(t, thread)[0].Content))
}

func TestSaveAnswersWhatIsStored(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	messages := series("m", 5, recall.NewMessage{Type: "v2", Content: json.RawMessage(`{"z":[1,{"é":null}],"format":2,"a":true,"n":-1.50}`)})
	saved := m.save(t, messages...)
	stored := m.stored(t, thread)
	require.Len(t, stored, len(saved))
	for i := range saved {
		require.JSONEq(t, string(stored[i].Content), string(saved[i].Content))
		saved[i].Content, stored[i].Content = nil, nil
	}
	require.Equal(t, stored, saved)
	again := m.save(t, messages...)
	for i := range again {
		again[i].Content = nil
	}
	require.Equal(t, saved, again, "an answer to a save of known messages is that to new ones")
}

func TestUpdateMergesContentAndItsMetadata(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t,
		message(recall.NewMessage{ID: "a", Type: "v2", CreatedAt: second(1), Content: json.RawMessage(`{"format":2,"parts":[1],"x":{"deep":1},"metadata":{"k":1,"l":{"m":1}}}`)}),
		message(recall.NewMessage{ID: "b", CreatedAt: second(2), Content: json.RawMessage(`{"format":2}`)}),
	)
	updated, err := m.UpdateMessages(ctx, []recall.MessageUpdate{
		{ID: "b", Content: json.RawMessage(`{"metadata":{"new":true}}`)},
		{ID: "a", Role: "assistant", Content: json.RawMessage(`{"x":{"y":2},"metadata":{"l":{"n":2},"o":null}}`)},
	}, resource)
	require.NoError(t, err)
	require.Equal(t, []string{"b", "a"}, ids(updated), "in the order given")
	require.JSONEq(t, `{"format":2,"metadata":{"new":true}}`, string(updated[0].Content))
	require.JSONEq(t, `{"format":2,"parts":[1],"x":{"y":2},"metadata":{"k":1,"l":{"n":2},"o":null}}`, string(updated[1].Content))
	require.Equal(t, "assistant", updated[1].Role)
	require.Equal(t, "v2", updated[1].Type)
	require.Equal(t, "user", updated[0].Role)
	require.Equal(t, reversed(updated), m.stored(t, thread))
}

func TestUpdateOfAnUnknownMessageChangesNothing(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, series("m", 2, recall.NewMessage{})...)
	untouched := m.contents(t)
	_, err := m.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "m1", Role: "tool"}, {ID: "unknown", Role: "tool"}}, "")
	requireCode(t, err, recall.CodeNotFound)
	require.Equal(t, untouched, m.contents(t))
}

func TestTransferCarriesTheMessages(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread, Title: of("trip")})
	m.save(t, series("m", 3, recall.NewMessage{})...)
	moved, err := m.TransferThread(ctx, thread, resource, "bob")
	require.NoError(t, err)
	require.Equal(t, "bob", moved.ResourceID)
	require.Equal(t, "trip", moved.Title)
	require.Empty(t, m.recall(t, recall.Request{ResourceID: resource}).Messages)
	theirs := m.recall(t, recall.Request{ResourceID: "bob"})
	require.Equal(t, []string{"m1", "m2", "m3"}, ids(theirs.Messages))
	for _, message := range theirs.Messages {
		require.Equal(t, "bob", message.ResourceID)
	}
	m.requireCounted(t)
}

func TestDeletedThreadLeavesNothing(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, series("m", 3, recall.NewMessage{})...)
	require.NoError(t, m.DeleteThread(ctx, thread, resource))
	require.Empty(t, m.contents(t))
}

// An id that another transaction is deleting is still taken: the save does not
// wait for it, and counts it as new once it is gone.
func TestSaveOfAnIDThatIsBeingDeletedElsewhereIsCounted(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, message(recall.NewMessage{ID: "a"}), message(recall.NewMessage{ID: "b"}))
	m.save(t, message(recall.NewMessage{ID: "c", ThreadID: "second"}))

	deleting, err := m.pool.Begin(ctx)
	require.NoError(t, err)
	defer deleting.Rollback(ctx)
	_, err = deleting.Exec(ctx, `WITH gone AS (DELETE FROM recall.messages WHERE id = 'a')
		UPDATE recall.threads SET message_count = message_count - 1 WHERE id = $1`, thread)
	require.NoError(t, err)

	elsewhere := message(recall.NewMessage{ID: "a", ThreadID: "second"})
	_, err = m.SaveMessages(ctx, []recall.NewMessage{elsewhere}, true)
	requireCode(t, err, recall.CodeConflict, "messages.0.id")
	require.NoError(t, deleting.Commit(ctx))
	m.save(t, elsewhere, message(recall.NewMessage{ID: "d", ThreadID: "second"}))
	m.requireCounted(t)
}

// Emptying a thread waits at its lock, and finds the thread deleted and created
// anew: a message saved meanwhile stays, and counts.
func TestEmptyingAThreadThatIsCreatedAnewMeanwhileIsCounted(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, message(recall.NewMessage{ID: "old"}))
	// Deletions stop behind their snapshot until the gate is open.
	_, err := m.pool.Exec(ctx, `
		CREATE FUNCTION recall.pass() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF current_setting('recall.free', true) IS NULL THEN
				PERFORM pg_advisory_xact_lock_shared(1);
			END IF;
			RETURN NULL;
		END $$;
		CREATE TRIGGER pass BEFORE DELETE ON recall.messages FOR EACH STATEMENT EXECUTE FUNCTION recall.pass()`)
	require.NoError(t, err)

	anew, err := m.pool.Begin(ctx)
	require.NoError(t, err)
	defer anew.Rollback(ctx)
	_, err = anew.Exec(ctx, `
		SET LOCAL recall.free = 'yes';
		DELETE FROM recall.threads WHERE id = 'thread';
		INSERT INTO recall.threads (id, resource_id, message_count, last_seq, created_at, updated_at) VALUES ('thread', 'ana', 1, 1, now(), now());
		INSERT INTO recall.messages (id, thread_id, resource_id, seq, role, content, created_at, updated_at)
			VALUES ('anew', 'thread', 'ana', 1, 'user', '{}', now(), now())`)
	require.NoError(t, err)
	emptied := make(chan error, 1)
	go func() { _, err := m.DeleteThreadMessages(ctx, thread, ""); emptied <- err }()
	m.awaitBlocked(t, 1)

	gate, err := m.pool.Begin(ctx)
	require.NoError(t, err)
	defer gate.Rollback(ctx)
	_, err = gate.Exec(ctx, `SELECT pg_advisory_xact_lock(1)`)
	require.NoError(t, err)
	require.NoError(t, anew.Commit(ctx))
	m.awaitBlocked(t, 1) // at the gate, or at the lock of the thread anew
	saved := make(chan error, 1)
	go func() {
		_, err := m.SaveMessages(ctx, []recall.NewMessage{message(recall.NewMessage{ID: "later"})}, true)
		saved <- err
	}()
	select {
	case err = <-saved: // nothing held it back
		saved <- err
	case <-m.blocked(t, 2):
	}
	require.NoError(t, gate.Rollback(ctx))
	require.NoError(t, <-saved)
	require.NoError(t, <-emptied)
	m.requireCounted(t)
}

// blocked says when n statements of the database wait for locks, or the test is over.
func (m memory) blocked(t *testing.T, n int) <-chan struct{} {
	t.Helper()
	found := make(chan struct{})
	go func() {
		defer close(found)
		for blocked := 0; blocked < n && t.Context().Err() == nil; {
			err := m.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&blocked)
			if err != nil {
				return
			}
		}
	}()
	return found
}

// awaitBlocked waits until n statements of the database wait for locks.
func (m memory) awaitBlocked(t must, n int) {
	t.Helper()
	waiting := func() bool {
		var blocked int
		m.scan(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`, nil, &blocked)
		return blocked >= n
	}
	require.Eventually(t, waiting, 10*time.Second, 5*time.Millisecond)
}

func TestSaveThatCreatesThreadsOutlivesTheirDeletion(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	save := func(i int) error {
		_, err := m.SaveMessages(ctx, []recall.NewMessage{message(recall.NewMessage{ID: "m" + strconv.Itoa(i)})}, true)
		return err
	}
	remove := func(int) error {
		if err := m.DeleteThread(ctx, thread, ""); codeOf(err) != recall.CodeNotFound {
			return err
		}
		return nil
	}
	for range 5 {
		for _, err := range together(20, save, remove) {
			require.NoError(t, err)
		}
	}
	m.requireCounted(t)
}

func TestCreatingAThreadOutlivesItsDeletion(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	create := func(int) error {
		_, err := m.CreateThread(ctx, recall.NewThread{ID: thread, ResourceID: resource, Title: of("again")})
		return err
	}
	remove := func(int) error {
		if err := m.DeleteThread(ctx, thread, ""); codeOf(err) != recall.CodeNotFound {
			return err
		}
		return nil
	}
	for range 10 {
		for _, err := range together(20, create, remove) {
			require.NoError(t, err, "the id belongs to no one else")
		}
	}
}

func TestThreadsCreatedAtOnceHaveOneOwner(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	for round := range 10 {
		id := "thread-" + strconv.Itoa(round)
		created := func(owner string) func(int) error {
			return func(int) error {
				_, err := m.CreateThread(ctx, recall.NewThread{ID: id, ResourceID: owner})
				return err
			}
		}
		conflicts := 0
		for _, err := range together(5, created("ana"), created("bob")) {
			if err != nil {
				require.Equal(t, recall.CodeConflict, codeOf(err), "%v", err)
				conflicts++
			}
		}
		require.Equal(t, 5, conflicts, "all of the one owner, none of the other")
	}
}

func TestWritersOfAllKindsAtOnceFailOnlyForTheirOwnReasons(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	threadIDs := []string{"t1", "t2", "t3"}
	anyThread := func() string { return threadIDs[rand.IntN(len(threadIDs))] }
	anyIDs := func() []string {
		list := make([]string, 1+rand.IntN(6))
		for i := range list {
			list[i] = "m" + strconv.Itoa(rand.IntN(12))
		}
		slices.Sort(list)
		list = slices.Compact(list)
		rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		return list
	}
	writers := []func() error{
		func() error {
			var batch []recall.NewMessage
			for _, id := range anyIDs() {
				batch = append(batch, message(recall.NewMessage{ID: id, ThreadID: anyThread()}))
			}
			_, err := m.SaveMessages(ctx, batch, true)
			return err
		},
		func() error {
			_, err := m.SaveMessages(ctx, series(prefix(), 3, recall.NewMessage{ThreadID: anyThread()}), true)
			return err
		},
		func() error {
			var updates []recall.MessageUpdate
			for _, id := range anyIDs() {
				updates = append(updates, recall.MessageUpdate{ID: id, Content: withMetadata(`{"n":1}`)})
			}
			_, err := m.UpdateMessages(ctx, updates, "")
			return err
		},
		func() error { _, err := m.DeleteMessages(ctx, anyIDs(), ""); return err },
		func() error { _, err := m.DeleteThreadMessages(ctx, anyThread(), ""); return err },
		func() error { return m.DeleteThread(ctx, anyThread(), "") },
		func() error {
			_, err := m.TransferThread(ctx, anyThread(), "", []string{resource, "bob"}[rand.IntN(2)])
			return err
		},
		func() error {
			_, err := m.UpdateThread(ctx, recall.ThreadUpdate{ID: anyThread(), Title: of("t")})
			return err
		},
		func() error { return cloned(m, recall.ThreadClone{SourceID: anyThread()}) },
		func() error {
			_, err := m.CreateThread(ctx, recall.NewThread{ID: anyThread(), ResourceID: resource})
			return err
		},
	}
	for _, err := range together(8, func(i int) error {
		for n := range 60 {
			switch err := writers[(i+n)%len(writers)](); codeOf(err) {
			case recall.CodeNotFound, recall.CodeForbidden, recall.CodeConflict:
			case recall.CodeUnavailable: // too much at once, even for the attempts that a call has
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
	require.Empty(t, column[string](t, m, `
		SELECT m.id FROM recall.messages AS m JOIN recall.threads AS t ON t.id = m.thread_id WHERE t.resource_id <> m.resource_id`))
}

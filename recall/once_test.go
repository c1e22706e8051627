package recall_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db"
	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
)

// key is that of a request with the given input.
func key(name, input string) recall.Key {
	return recall.Key{Name: name, Target: "POST /", Input: []byte(input)}
}

// saying saves a message with a generated id and answers with the id.
func saying(m *recall.Memory) (recall.Answer, error) {
	saved, err := m.SaveMessages(ctx, []recall.NewMessage{message(recall.NewMessage{})}, true)
	if err != nil {
		return recall.Answer{}, err
	}
	return recall.Answer{Status: 200, ETag: `"1"`, Body: []byte(`{"id":"` + saved[0].ID + `"}`)}, nil
}

// narrowOn gives a pool of few connections.
func narrowOn(t *testing.T, address string, connections int32) *pgxpool.Pool {
	t.Helper()
	pool, err := db.Open(context.Background(), db.Config{URL: address, MaxConns: connections})
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func (m memory) keys(t must) []string {
	t.Helper()
	return column[string](t, m, `SELECT key FROM recall.idempotency_keys ORDER BY key`)
}

func TestARequestIsDoneOnceAndItsRepetitionsAreAnsweredAlike(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	first, err := m.Once(ctx, key("k", `{}`), saying)
	require.NoError(t, err)
	require.False(t, first.Replayed)
	untouched := m.contents(t)
	for range 2 {
		again, err := m.Once(ctx, key("k", `{}`), saying)
		require.NoError(t, err)
		first.Replayed = true
		require.Equal(t, first, again)
	}
	require.Equal(t, untouched, m.contents(t))
	other, err := m.Once(ctx, key("other", `{}`), saying)
	require.NoError(t, err)
	require.NotEqual(t, first.Body, other.Body, "another key is another request")
}

func TestOfAHundredRequestsAtOnceOneIsDone(t *testing.T) {
	t.Parallel()
	for _, connections := range []int32{1, 2, 20} {
		t.Run(fmt.Sprint(connections), func(t *testing.T) {
			t.Parallel()
			address := dbtest.URL(t)
			m := memoryOn(narrowOn(t, address, connections))
			answers := make([]recall.Answer, 100)
			for _, err := range together(len(answers), func(i int) (err error) {
				answers[i], err = m.Once(ctx, key("k", `{}`), saying)
				return err
			}) {
				require.NoError(t, err)
			}
			first := 0
			for _, answer := range answers {
				require.Equal(t, answers[0].Body, answer.Body)
				if !answer.Replayed {
					first++
				}
			}
			require.Equal(t, 1, first)
			require.Len(t, m.stored(t, thread), 1)
			m.requireCounted(t)
			m.requireNoDeadlock(t)
		})
	}
}

func TestAnotherRequestUnderTheSameKeyIsAConflictAndChangesNothing(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	_, err := m.Once(ctx, key("k", `{}`), saying)
	require.NoError(t, err)
	untouched := m.contents(t)
	for _, other := range []recall.Key{
		key("k", `{} `), key("k", ``), {Name: "k", Target: "POST /other", Input: []byte(`{}`)},
	} {
		_, err := m.Once(ctx, other, saying)
		requireCode(t, err, recall.CodeConflict)
		_, err = m.OnceRead(ctx, other, saying)
		requireCode(t, err, recall.CodeConflict)
	}
	require.Equal(t, untouched, m.contents(t))
}

func TestAFailureLeavesNothingNotEvenItsKey(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, series("m", 1, recall.NewMessage{ThreadID: "second"})...)
	untouched := m.contents(t)
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		do   func(*recall.Memory) (recall.Answer, error)
		want error
	}{
		"an error after a write": {func(m *recall.Memory) (recall.Answer, error) {
			_, err := saying(m)
			return recall.Answer{}, errors.Join(err, broken)
		}, broken},
		"an answer that is no success": {func(m *recall.Memory) (recall.Answer, error) {
			_, err := saying(m)
			return recall.Answer{Status: 404, Body: []byte(`{}`)}, err
		}, nil},
		"no answer": {func(m *recall.Memory) (recall.Answer, error) {
			_, err := saying(m)
			return recall.Answer{Status: 200}, err
		}, nil},
		// The failed write is rolled back with the others, not committed by halves.
		"a failure that is not passed on": {func(m *recall.Memory) (recall.Answer, error) {
			_, _ = m.SaveMessages(ctx, []recall.NewMessage{
				message(recall.NewMessage{ID: "new"}), message(recall.NewMessage{ID: "m1"}),
			}, true)
			return saying(m)
		}, nil},
	} {
		answer, err := m.Once(ctx, key("k", `{}`), test.do)
		require.Error(t, err, name)
		require.Zero(t, answer, name)
		if test.want != nil {
			require.ErrorIs(t, err, test.want, name)
		}
		require.Equal(t, untouched, m.contents(t), name)
		require.Empty(t, m.keys(t), name)
		m.requireIdle(t)
	}
	_, err := m.Once(ctx, key("k", `{}`), saying)
	require.NoError(t, err, "it is tried afresh")
}

func TestAPanicLeavesNoTransaction(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	m, observer := memoryOn(narrowOn(t, address, 1)), memoryOn(dbtest.Open(t, address))
	require.Panics(t, func() {
		_, _ = m.Once(ctx, key("k", `{}`), func(m *recall.Memory) (recall.Answer, error) {
			_, err := saying(m)
			panic(err)
		})
	})
	observer.requireIdle(t)
	require.Empty(t, observer.contents(t))
	require.NoError(t, m.Ready(ctx), "the pool's one connection works again")
}

// Those who wait take over where the first fails.
func TestOfManyAtOnceThatFailUntilOneSucceedsOneIsDone(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	var calls atomic.Int64
	failures := 0
	for _, err := range together(20, func(int) error {
		_, err := m.Once(ctx, key("k", `{}`), func(m *recall.Memory) (recall.Answer, error) {
			answer, err := saying(m)
			if calls.Add(1) <= 5 {
				err = errors.New("too early")
			}
			return answer, err
		})
		return err
	}) {
		if err != nil {
			require.EqualError(t, err, "too early")
			failures++
		}
	}
	require.Equal(t, 5, failures)
	require.Len(t, m.stored(t, thread), 1)
}

func TestARequestThatGaveWayIsDoneAgainAsAWhole(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"40001", "40P01"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			m := newMemory(t)
			m.raise(t, state, 2)
			calls := 0
			answer, err := m.Once(ctx, key("k", `{}`), func(m *recall.Memory) (recall.Answer, error) {
				calls++
				_, err := m.CreateThread(ctx, recall.NewThread{ID: fmt.Sprint("thread of call ", calls), ResourceID: resource})
				require.NoError(t, err)
				return saying(m)
			})
			require.NoError(t, err)
			require.False(t, answer.Replayed)
			require.Equal(t, 3, calls)
			require.Equal(t, []string{thread, "thread of call 3"}, column[string](t, m, `SELECT id FROM recall.threads ORDER BY id`))
			require.Len(t, m.stored(t, thread), 1)
		})
	}
}

func TestACloneIsMadeOnce(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, series("m", 3, recall.NewMessage{})...)
	answers := make([]recall.Answer, 20)
	for _, err := range together(len(answers), func(i int) (err error) {
		answers[i], err = m.Once(ctx, key("k", `{}`), func(m *recall.Memory) (recall.Answer, error) {
			clone, err := m.CloneThread(ctx, recall.ThreadClone{SourceID: thread})
			return recall.Answer{Status: 200, Body: []byte(clone.Thread.ID)}, err
		})
		return err
	}) {
		require.NoError(t, err)
	}
	for _, answer := range answers {
		require.Equal(t, answers[0].Body, answer.Body)
	}
	clones, err := m.Clones(ctx, thread, "")
	require.NoError(t, err)
	require.Len(t, clones, 1)
	require.Len(t, m.stored(t, string(answers[0].Body)), 3)
}

// age makes the keys older.
func (m memory) age(t must, by time.Duration) {
	t.Helper()
	_, err := m.pool.Exec(ctx, `UPDATE recall.idempotency_keys SET created_at = created_at - make_interval(secs => $1)`, by.Seconds())
	require.NoError(t, err)
}

func TestAKeyCountsForADay(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	once := map[string]func(context.Context, recall.Key, func(*recall.Memory) (recall.Answer, error)) (recall.Answer, error){
		"once": m.Once, "once read": m.OnceRead,
	}
	for name, once := range once {
		first, err := once(ctx, key(name, `{}`), saying)
		require.NoError(t, err)
		m.age(t, 24*time.Hour-time.Minute)
		again, err := once(ctx, key(name, `{}`), saying)
		require.NoError(t, err)
		require.Equal(t, first.Body, again.Body)
		m.age(t, time.Minute)
		anew, err := once(ctx, key(name, `{"another":"request"}`), saying)
		require.NoError(t, err, "as if it had never been used")
		require.False(t, anew.Replayed)
		require.NotEqual(t, first.Body, anew.Body)
		again, err = once(ctx, key(name, `{"another":"request"}`), saying)
		require.NoError(t, err)
		require.Equal(t, anew.Body, again.Body, "it counts for another day")
	}
}

func TestKeysThatCountNoLongerAreForgotten(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	_, err := m.pool.Exec(ctx, `
		INSERT INTO recall.idempotency_keys (key, request_hash, created_at)
		SELECT 'old' || n, ''::bytea, now() - interval '24 hours' FROM generate_series(1, 1200) AS n
		UNION ALL
		SELECT 'young' || n, ''::bytea, now() - interval '23 hours 59 minutes' FROM generate_series(1, 3) AS n`)
	require.NoError(t, err)
	taking, err := m.pool.Begin(ctx)
	require.NoError(t, err)
	defer taking.Rollback(ctx)
	_, err = taking.Exec(ctx, `UPDATE recall.idempotency_keys SET created_at = now() WHERE key = 'old7'`)
	require.NoError(t, err)
	require.NoError(t, m.ForgetKeys(ctx))
	require.Equal(t, []string{"old7", "young1", "young2", "young3"}, m.keys(t))
}

// What only reads waits for others without a connection.
func TestAReadHoldsNoConnectionAndIsAnsweredAlike(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	m := memoryOn(narrowOn(t, address, 1))
	var calls atomic.Int64
	arrived, release := make(chan struct{}, 3), make(chan struct{})
	answers := make([]recall.Answer, 3)
	results := make(chan error, len(answers))
	for i := range answers {
		go func() {
			var err error
			answers[i], err = m.OnceRead(ctx, key("k", `{}`), func(*recall.Memory) (recall.Answer, error) {
				arrived <- struct{}{}
				<-release
				return recall.Answer{Status: 200, Body: fmt.Appendf(nil, "%d", calls.Add(1))}, nil
			})
			results <- err
		}()
	}
	for range answers {
		<-arrived
	}
	require.NoError(t, m.Ready(ctx), "the pool's one connection is free")
	close(release)
	for range answers {
		require.NoError(t, <-results)
	}
	require.Equal(t, answers[0].Body, answers[1].Body)
	require.Equal(t, answers[0].Body, answers[2].Body)
	again, err := m.OnceRead(ctx, key("k", `{}`), nil)
	require.NoError(t, err, "not asked again")
	require.Equal(t, answers[0].Body, again.Body)
	_, err = m.OnceRead(ctx, key("other", `{}`), func(m *recall.Memory) (recall.Answer, error) {
		_, err := m.Thread(ctx, "unknown", "")
		return recall.Answer{}, err
	})
	requireCode(t, err, recall.CodeNotFound)
	require.Equal(t, []string{"k"}, m.keys(t))
}

func TestAKeyNotesWhoseDataItsAnswerMayHold(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	input := `{"resourceId":"ana","messages":[{"resourceId":"bob","content":{"resourceId":"content","a":[{"resourceId":"content"}]}},
		{"metadata":{"resourceId":"metadata"},"resourceId":"cl\u0061ra"},{"resourceId":7},{"resourceId":["dora"]}],"a":"resourceId","b":"no"}`
	output := `{"thread":{"metadata":{},"resourceId":"emil"},"messages":[{"resourceId":"ana","threadId":"of fritz"}],"content":{"threadId":"of hans"}}`
	for _, owner := range []string{"fritz", "greta", "hans"} {
		m.create(t, recall.NewThread{ID: "of " + owner, ResourceID: owner})
	}
	request := key("k", input)
	request.ThreadID = "of greta"
	_, err := m.Once(ctx, request, func(*recall.Memory) (recall.Answer, error) {
		return recall.Answer{Status: 200, Body: []byte(output)}, nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"ana", "bob", "clara", "emil", "fritz", "greta"}, column[string](t, m, `SELECT unnest(resource_ids) FROM recall.idempotency_keys`))
}

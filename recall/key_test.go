package recall_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db"
	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
)

// keyringOf gives a keyring whose time is moved by the function.
func keyringOf(t *testing.T, m *recall.Memory) (*recall.Keyring, func(time.Duration)) {
	t.Helper()
	var mu sync.Mutex
	var offset time.Duration
	keys := recall.NewKeyring(m)
	keys.At(func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.Now().Add(offset)
	})
	t.Cleanup(keys.Close)
	return keys, func(by time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		offset += by
	}
}

func (m memory) apiKey(t must, in recall.NewAPIKey) (string, recall.APIKey) {
	t.Helper()
	secret, key, err := m.CreateAPIKey(ctx, in)
	require.NoError(t, err)
	return secret, key
}

func TestAnAPIKeyIsFoundByItsSecretAlone(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	keys, _ := keyringOf(t, m.Memory)
	made := make(map[string]recall.APIKey)
	for i, in := range []recall.NewAPIKey{
		{}, {Name: "all"}, {Admin: true}, {Resource: "ana"}, {Prefix: "team:", ReadOnly: true}, {Lifetime: time.Hour, Resource: "it's 50% \\ \"ü\""},
	} {
		secret, key := m.apiKey(t, in)
		require.Regexp(t, `^pgr_[A-Za-z0-9_-]{43}$`, secret)
		require.NotContains(t, made, secret)
		made[secret] = key
		require.Equal(t, int64(i+1), key.ID)
		require.Equal(t, recall.Caller{
			ID: fmt.Sprintf("key:%d", i+1), Resource: in.Resource, Prefix: in.Prefix, ReadOnly: in.ReadOnly,
		}, key.Caller())
	}
	for secret, want := range made {
		found, err := keys.Find(ctx, secret)
		require.NoError(t, err)
		require.Equal(t, want, found)
		for _, other := range []string{
			"", "pgr_", secret[:len(secret)-1], secret + "=", strings.ToLower(secret), strings.TrimPrefix(secret, "pgr_"),
			secret[:len(secret)-1] + "\x00", " " + secret[1:],
		} {
			_, err := keys.Find(ctx, other)
			requireCode(t, err, recall.CodeNotFound)
		}
	}
}

func TestNothingOfASecretIsStored(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	secret, _ := m.apiKey(t, recall.NewAPIKey{Name: "k"})
	rows := column[string](t, m, `SELECT k::text FROM recall.api_keys AS k`)
	require.Len(t, rows, 1)
	require.NotContains(t, rows[0], strings.TrimPrefix(secret, recall.APIKeyPrefix))
	require.Regexp(t, `\\x[0-9a-f]{64}`, rows[0])
}

func TestABadAPIKeyIsNotMade(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	for _, bad := range []struct {
		field string
		code  recall.Code
		in    recall.NewAPIKey
	}{
		{"name", recall.CodeInvalid, recall.NewAPIKey{Name: strings.Repeat("x", 257)}},
		{"resource", recall.CodeInvalid, recall.NewAPIKey{Resource: strings.Repeat("x", 513)}},
		{"resource", recall.CodeUnstorable, recall.NewAPIKey{Resource: "a\x00"}},
		{"prefix", recall.CodeInvalid, recall.NewAPIKey{Prefix: "\xff"}},
		{"lifetime", recall.CodeInvalid, recall.NewAPIKey{Lifetime: -1}},
		{"admin", recall.CodeInvalid, recall.NewAPIKey{Admin: true, Resource: "ana"}},
		{"admin", recall.CodeInvalid, recall.NewAPIKey{Admin: true, Prefix: "a"}},
		{"admin", recall.CodeInvalid, recall.NewAPIKey{Resource: "ana", Prefix: "a"}},
	} {
		_, _, err := m.CreateAPIKey(ctx, bad.in)
		requireCode(t, err, bad.code, bad.field)
	}
	listed, err := m.APIKeys(ctx)
	require.NoError(t, err)
	require.Empty(t, listed)
}

func TestChangesOfKeysAreNoticedInTimeAndNotLookedUpBefore(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	keys, wait := keyringOf(t, m.Memory)
	exist := func() bool {
		t.Helper()
		exist, err := keys.Exist(ctx)
		require.NoError(t, err)
		return exist
	}
	require.False(t, exist())
	secret, key := m.apiKey(t, recall.NewAPIKey{Lifetime: time.Hour})
	wait(recall.KeyFreshness)
	require.True(t, exist())

	_, err := keys.Find(ctx, secret)
	require.NoError(t, err)
	keys.Close()
	require.NoError(t, m.RevokeAPIKey(ctx, key.ID))
	_, err = m.pool.Exec(ctx, `ALTER TABLE recall.api_keys RENAME TO away`)
	require.NoError(t, err)
	_, err = keys.Find(ctx, secret)
	require.NoError(t, err, "what was found holds for a moment")
	require.True(t, exist(), "there is no way back")
	wait(recall.KeyFreshness)
	_, err = keys.Find(ctx, secret)
	requireCode(t, err, recall.CodeUnavailable)
	_, err = m.pool.Exec(ctx, `ALTER TABLE recall.away RENAME TO api_keys`)
	require.NoError(t, err)
	_, err = keys.Find(ctx, secret)
	requireCode(t, err, recall.CodeNotFound)
	require.True(t, exist(), "that it is revoked does not open the doors")
}

func TestAKeyEndsAtItsTimeThoughItIsRemembered(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	keys, wait := keyringOf(t, m.Memory)
	secret, key := m.apiKey(t, recall.NewAPIKey{Lifetime: time.Hour})
	require.Equal(t, time.Hour, key.ExpiresAt.Sub(key.CreatedAt))
	wait(time.Until(*key.ExpiresAt) - recall.KeyFreshness/2)
	_, err := keys.Find(ctx, secret)
	require.NoError(t, err)
	wait(recall.KeyFreshness / 2)
	_, err = keys.Find(ctx, secret)
	requireCode(t, err, recall.CodeNotFound)
}

func TestRevokingAKey(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	_, key := m.apiKey(t, recall.NewAPIKey{})
	requireCode(t, m.RevokeAPIKey(ctx, key.ID+1), recall.CodeNotFound)
	require.NoError(t, m.RevokeAPIKey(ctx, key.ID))
	first, err := m.APIKeys(ctx)
	require.NoError(t, err)
	require.NotNil(t, first[0].RevokedAt)
	require.NoError(t, m.RevokeAPIKey(ctx, key.ID))
	again, err := m.APIKeys(ctx)
	require.NoError(t, err)
	require.Equal(t, first, again, "it was revoked when it was")
}

func TestOfManyLookUpsAtOnceOneAsksTheDatabase(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	m := memoryOn(narrowOn(t, address, 20))
	secret, _ := m.apiKey(t, recall.NewAPIKey{})
	// One connection, which is held: all that ask meanwhile are one.
	one, err := db.Open(ctx, db.Config{URL: address, MaxConns: 1})
	require.NoError(t, err)
	t.Cleanup(one.Close)
	keys, _ := keyringOf(t, recall.New(one, recall.DefaultLimits()))
	held, err := one.Acquire(ctx)
	require.NoError(t, err)
	gone, leave := context.WithCancel(ctx)
	leave()
	_, err = keys.Find(gone, secret)
	require.ErrorIs(t, err, context.Canceled, "who is gone does not wait")
	before := one.Stat().AcquireCount()
	found := make(chan error, 50)
	for range cap(found) {
		go func() {
			_, err := keys.Find(ctx, secret)
			found <- err
		}()
	}
	held.Release()
	for range cap(found) {
		require.NoError(t, <-found)
	}
	keys.Close()
	assert.LessOrEqual(t, one.Stat().AcquireCount()-before, int64(2), "a look-up and the note that it is used")
}

func TestTheUseOfAKeyIsNotedOnceAMinuteAndHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	keys, wait := keyringOf(t, m.Memory)
	secret, _ := m.apiKey(t, recall.NewAPIKey{})
	find := func() {
		t.Helper()
		_, err := keys.Find(ctx, secret)
		require.NoError(t, err)
	}
	lastUse := func() *time.Time {
		t.Helper()
		keys.Close() // waits for the notes
		listed, err := m.APIKeys(ctx)
		require.NoError(t, err)
		return listed[0].LastUsedAt
	}
	require.Nil(t, lastUse())
	locking, err := m.pool.Begin(ctx)
	require.NoError(t, err)
	_, err = locking.Exec(ctx, `SELECT FROM recall.api_keys FOR UPDATE`)
	require.NoError(t, err)
	find() // does not wait for the lock
	require.NoError(t, locking.Rollback(ctx))
	first := lastUse()
	require.NotNil(t, first)
	wait(30 * time.Second)
	find()
	require.Equal(t, first, lastUse())
	_, err = m.pool.Exec(ctx, `UPDATE recall.api_keys SET last_used_at = last_used_at - interval '1 minute'`)
	require.NoError(t, err)
	wait(30 * time.Second)
	find()
	require.False(t, lastUse().Before(*first))
}

func TestKeysOfOtherCallersAreOtherKeys(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	once := map[string]func(*recall.Memory, context.Context, recall.Key, func(*recall.Memory) (recall.Answer, error)) (recall.Answer, error){
		"once": (*recall.Memory).Once, "once read": (*recall.Memory).OnceRead,
	}
	for name, once := range once {
		answers := make(map[string]recall.Answer)
		for _, caller := range []string{"", "key:1", "key:2", "jwt:ana"} {
			answer, err := once(m.For(recall.Caller{ID: caller}), ctx, key(name, `{"of":"`+caller+`"}`), saying)
			require.NoError(t, err, caller)
			require.False(t, answer.Replayed, caller)
			answers[caller] = answer
		}
		for caller, first := range answers {
			again, err := once(m.For(recall.Caller{ID: caller}), ctx, key(name, `{"of":"`+caller+`"}`), saying)
			require.NoError(t, err)
			require.True(t, again.Replayed)
			require.Equal(t, first.Body, again.Body)
			_, err = once(m.For(recall.Caller{ID: caller}), ctx, key(name, `{}`), saying)
			requireCode(t, err, recall.CodeConflict)
		}
	}
	m.age(t, 25*time.Hour)
	_, err := m.For(recall.Caller{ID: "key:1"}).Once(ctx, key("once", `{}`), saying)
	require.NoError(t, err)
	require.NoError(t, m.ForgetKeys(ctx))
	require.Equal(t, []string{"once"}, m.keys(t), "the one that was taken again")
}

package recall

import (
	"context"
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/pgrecall/pgrecall/dbgen"
)

const (
	// KeyFreshness is how long a [Keyring] goes by what it has read.
	KeyFreshness = time.Second
	// keyringSize is how many keys a [Keyring] remembers.
	keyringSize = 4096
	// keyUseInterval is the least time between two notes that a key was used,
	// keyUseTimeout the time for one.
	keyUseInterval = time.Minute
	keyUseTimeout  = 5 * time.Second
)

// Keyring tells whose an API key is. It remembers that for [KeyFreshness], so a
// change of the keys takes that long to be noticed. It is safe for concurrent use.
type Keyring struct {
	memory *Memory
	now    func() time.Time
	keys   *lru.Cache[[sha256.Size]byte, foundKey]
	calls  singleflight.Group
	used   sync.WaitGroup

	// exist is set for good once there is a key; lookedAt is when there was none, in
	// nanoseconds.
	exist    atomic.Bool
	lookedAt atomic.Int64
}

// foundKey is a key as it was when it was looked up.
type foundKey struct {
	key    APIKey
	readAt time.Time
}

// NewKeyring gives a keyring of the keys in a memory's database.
func NewKeyring(m *Memory) *Keyring {
	keys, err := lru.New[[sha256.Size]byte, foundKey](keyringSize)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return &Keyring{memory: m, now: time.Now, keys: keys}
}

// Close waits for what is written of the use of keys. Nothing may be asked of the
// keyring afterwards.
func (k *Keyring) Close() { k.used.Wait() }

// Exist says whether there has ever been a key.
func (k *Keyring) Exist(ctx context.Context) (bool, error) {
	now := k.now()
	if k.exist.Load() {
		return true, nil
	}
	if now.Sub(time.Unix(0, k.lookedAt.Load())) < KeyFreshness {
		return false, nil
	}
	exist, err := shared(ctx, &k.calls, "", func(ctx context.Context) (bool, error) {
		return k.memory.queries.APIKeyExists(ctx, k.memory.db)
	})
	switch {
	case err != nil:
		return false, schemaError(err)
	case exist:
		k.exist.Store(true)
	default:
		k.lookedAt.Store(now.UnixNano())
	}
	return exist, nil
}

// Find gives the key with a secret and notes that it is used. CodeNotFound when none
// has it, and when the key is revoked or expired.
func (k *Keyring) Find(ctx context.Context, secret string) (APIKey, error) {
	if len(secret) != secretLen {
		return APIKey{}, apiKeyNotFound()
	}
	now := k.now()
	hash := secretHash(secret)
	found, ok := k.keys.Get(hash)
	if !ok || now.Sub(found.readAt) >= KeyFreshness {
		var err error
		found, err = shared(ctx, &k.calls, string(hash[:]), func(ctx context.Context) (foundKey, error) {
			return k.read(ctx, hash)
		})
		if err != nil {
			return APIKey{}, err
		}
	}
	if !found.key.Counts(now) {
		return APIKey{}, apiKeyNotFound()
	}
	return found.key, nil
}

// read looks a key up in the database. That there is none is not remembered: it would
// push out the keys there are.
func (k *Keyring) read(ctx context.Context, hash [sha256.Size]byte) (foundKey, error) {
	now := k.now()
	row, err := k.memory.queries.APIKeyGet(ctx, k.memory.db, hash[:])
	switch {
	case isNoRows(err):
		k.keys.Remove(hash)
		return foundKey{}, apiKeyNotFound()
	case err != nil:
		return foundKey{}, schemaError(err)
	}
	found := foundKey{key: APIKey(row), readAt: now}
	k.keys.Add(hash, found)
	if key := found.key; key.Counts(now) && (key.LastUsedAt == nil || now.Sub(*key.LastUsedAt) >= keyUseInterval) {
		k.used.Go(func() { k.noteUse(context.WithoutCancel(ctx), key.ID) })
	}
	return found, nil
}

// noteUse notes that a key is used. Nobody waits for it, and where it fails the next
// look-up tries again.
func (k *Keyring) noteUse(ctx context.Context, id int64) {
	ctx, cancel := context.WithTimeout(ctx, keyUseTimeout)
	defer cancel()
	_ = k.memory.queries.APIKeyUse(ctx, k.memory.db, dbgen.APIKeyUseParams{ID: id, IntervalSeconds: keyUseInterval.Seconds()})
}

// shared does once what several ask for at a time. Of the context it takes the values
// alone: others wait for the answer when the first caller is gone.
func shared[T any](ctx context.Context, calls *singleflight.Group, name string, do func(context.Context) (T, error)) (T, error) {
	result := calls.DoChan(name, func() (any, error) { return do(context.WithoutCancel(ctx)) })
	select {
	case answer := <-result:
		value, _ := answer.Val.(T)
		return value, answer.Err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

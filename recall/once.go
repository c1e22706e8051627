package recall

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	"github.com/pgrecall/pgrecall/dbgen"
)

// keyLifetime is how long an answer is kept for those who ask again.
const keyLifetime = 24 * time.Hour

// Key names a request, so that it has its effect once however often it is sent.
type Key struct {
	// Name is the caller's, 1 to 255 bytes. It names one request of those of the
	// memory's caller.
	Name string
	// Target says what is asked for: a method with the path and query that it is
	// sent to. Input is the JSON that goes with it.
	Target string
	Input  []byte
	// ThreadID is the thread that Target names; empty for none. The answer may hold
	// data of its owner.
	ThreadID string
}

// hash tells requests apart. No target has a line break in it.
func (k Key) hash() []byte {
	sum := sha256.Sum256(slices.Concat([]byte(k.Target), []byte{'\n'}, k.Input))
	return sum[:]
}

// Answer is what a request is answered, all of it a success: what fails is an
// error.
type Answer struct {
	// Status is HTTP's, 200 to 299.
	Status int
	// ETag is the version of what Body shows; empty for none.
	ETag string
	// Body is JSON.
	Body []byte
	// Replayed says that it is the answer to an earlier request.
	Replayed bool
}

// Once answers the request that key names with what do gives, and a repetition
// within 24 hours with the same, without calling do. What do writes with the
// memory that it is given commits together with the answer, or not at all: an error
// leaves nothing behind, the key neither. Of several at once one works and the
// others wait. CodeConflict when the key names another request.
//
// do is called again where another transaction stood in the way. It must use that
// memory from one goroutine, let an error of a method that writes stand, and wait
// for nothing but the database: a connection is held meanwhile.
func (m *Memory) Once(ctx context.Context, key Key, do func(*Memory) (Answer, error)) (Answer, error) {
	answer, err := m.onceAt(ctx, pgx.ReadCommitted, key, do)
	var level *levelError
	if errors.As(err, &level) {
		return m.onceAt(ctx, level.needed, key, do)
	}
	return answer, err
}

func (m *Memory) onceAt(ctx context.Context, level pgx.TxIsoLevel, key Key, do func(*Memory) (Answer, error)) (answer Answer, err error) {
	err = m.writeAt(ctx, level, func(tx pgx.Tx) error {
		claimed, err := m.queries.IdempotencyKeyClaim(ctx, tx, dbgen.IdempotencyKeyClaimParams{
			Caller: m.caller.ID, Key: key.Name, RequestHash: key.hash(), LifetimeSeconds: keyLifetime.Seconds(),
		})
		if err != nil {
			return err
		}
		if claimed == 0 {
			// Whether it counts still is settled: another look could differ.
			answer, err = m.answered(ctx, tx, key, 2*keyLifetime)
			return err
		}
		db := &bound{Tx: tx, level: level}
		within := *m
		within.db = db
		if answer, err = do(&within); err != nil {
			return err
		}
		if db.failed != nil {
			return db.failed
		}
		return m.settle(ctx, tx, key, answer)
	})
	if err != nil {
		return Answer{}, err
	}
	return answer, nil
}

// OnceRead is [Memory.Once] for what writes nothing. It holds no connection while do
// runs, so do may wait for others. Of several at once each runs, and all are
// answered as the first to end is. An answer is not kept if a resource was erased
// since do began, which may have read of it; and that to a caller that changes nothing
// is not, since it leaves no trace.
func (m *Memory) OnceRead(ctx context.Context, key Key, do func(*Memory) (Answer, error)) (Answer, error) {
	if m.caller.ReadOnly {
		return do(m)
	}
	answer, err := m.answered(ctx, m.db, key, keyLifetime)
	if !isNoRows(err) {
		return answer, databaseError(err)
	}
	erasures, err := m.queries.ErasureCount(ctx, m.db)
	if err != nil {
		return Answer{}, databaseError(err)
	}
	if answer, err = do(m); err != nil {
		return Answer{}, err
	}
	kept, err := m.Once(ctx, key, func(within *Memory) (Answer, error) {
		now, err := m.queries.ErasureCountHold(ctx, within.db)
		if err == nil && now != erasures {
			err = errErasedMeanwhile
		}
		return answer, err
	})
	if errors.Is(err, errErasedMeanwhile) {
		return answer, nil
	}
	return kept, err
}

// errErasedMeanwhile keeps an answer from being kept that was read before an erasure.
var errErasedMeanwhile = errors.New("a resource was erased meanwhile")

// answered gives the answer under a key of the caller's that was used within a time.
func (m *Memory) answered(ctx context.Context, db dbgen.DBTX, key Key, within time.Duration) (Answer, error) {
	row, err := m.queries.IdempotencyKeyGet(ctx, db, dbgen.IdempotencyKeyGetParams{
		Caller: m.caller.ID, Key: key.Name, LifetimeSeconds: within.Seconds(),
	})
	switch {
	case err != nil:
		return Answer{}, err
	case !bytes.Equal(row.RequestHash, key.hash()):
		return Answer{}, errorf(CodeConflict, "The key was used for another request")
	}
	return Answer{Status: int(row.Status), ETag: row.Etag, Body: row.Answer, Replayed: true}, nil
}

// settle notes the answer to a request under its key.
func (m *Memory) settle(ctx context.Context, tx pgx.Tx, key Key, answer Answer) error {
	resources, threads := m.namedIn(key.Input, answer.Body)
	return m.queries.IdempotencyKeySettle(ctx, tx, dbgen.IdempotencyKeySettleParams{
		Caller: m.caller.ID, Key: key.Name, Status: int16(answer.Status), Etag: answer.ETag, Answer: answer.Body,
		Reach:       m.reach(),
		ResourceIds: resources, ThreadIds: append(threads, key.ThreadID),
	})
}

// namedIn gives the resources and the threads that texts of JSON name, each once:
// whose data they may hold. What is too long for an id is none, and for the index of
// the table it would be too long too.
func (m *Memory) namedIn(texts ...[]byte) (resources, threads []string) {
	named := map[string][]string{"resourceId": {}, "threadId": {}}
	for _, text := range texts {
		appendNamed(named, jsontext.NewDecoder(bytes.NewReader(text)))
	}
	for name, ids := range named {
		slices.Sort(ids)
		named[name] = slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return len(id) > m.limits.IDBytes })
	}
	return named["resourceId"], named["threadId"]
}

// appendNamed appends to the lists of named all texts that are called so, but for
// those in contents and metadata, which are the caller's own.
func appendNamed(named map[string][]string, decoder *jsontext.Decoder) {
	for {
		token, err := decoder.ReadToken()
		if err != nil {
			return
		}
		if kind, read := decoder.StackIndex(decoder.StackDepth()); kind != '{' || read%2 == 0 {
			continue // not the name of a member
		}
		name := token.String()
		switch ids, wanted := named[name]; {
		case name == "content" || name == "metadata":
			_ = decoder.SkipValue() // the next read fails as well
		case wanted && decoder.PeekKind() == '"':
			if token, err = decoder.ReadToken(); err == nil {
				named[name] = append(ids, token.String())
			}
		}
	}
}

// forgottenAtOnce is how many keys one statement removes.
const forgottenAtOnce = 500

// ForgetKeys removes the keys of [Memory.Once] that count no longer, with their
// answers.
func (m *Memory) ForgetKeys(ctx context.Context) error {
	for {
		var removed int64
		err := m.operate(ctx, func(tx pgx.Tx) (err error) {
			removed, err = m.queries.IdempotencyKeyDeleteExpired(ctx, tx, dbgen.IdempotencyKeyDeleteExpiredParams{
				LifetimeSeconds: keyLifetime.Seconds(), MaxRows: forgottenAtOnce,
			})
			return err
		})
		if err != nil || removed < forgottenAtOnce {
			return err
		}
	}
}

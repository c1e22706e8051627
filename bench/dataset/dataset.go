// Package dataset fills a database with made-up conversations of a skewed shape:
// one large thread among many small ones. The benchmark measures on it and the
// tests of query plans look at it.
package dataset

import (
	"context"
	"crypto/md5" //nolint:gosec // for spread, not for secrets
	_ "embed"    // the statements
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

//go:embed threads.sql
var insertThreads string

//go:embed messages.sql
var insertMessages string

const (
	// LargestThread is the most messages that the large thread gets.
	LargestThread = 20_000
	// ThreadMessages is the size of each other thread.
	ThreadMessages = 200
	// DefaultMessages make a large thread of full size, and 200 others.
	DefaultMessages = 60_000
	// MinMessages make a large thread and another one.
	MinMessages = 600

	threadsPerResource = 5
	// ResourceMessages is how many messages a resource has, but for the first one,
	// which owns the large thread beside as many, and the last ones, which may have
	// less.
	ResourceMessages = threadsPerResource * ThreadMessages
	// batchThreads go in with one statement.
	batchThreads = 20
)

// Shape says how much of what there is.
type Shape struct {
	// LargeThread counts the messages of the large thread, Threads the others.
	LargeThread int `json:"largeThread"`
	Threads     int `json:"threads"`
	Resources   int `json:"resources"`
	// EmptyThreads have no messages. They come after the others.
	EmptyThreads int `json:"emptyThreads"`
}

// Scaled gives the shape of a set of about so many messages: a third of them are
// in the large thread, up to [LargestThread].
func Scaled(messages int) Shape {
	messages = max(messages, MinMessages)
	large := min(messages/3, LargestThread)
	threads := (messages - large) / ThreadMessages
	return Shape{LargeThread: large, Threads: threads, Resources: (threads + threadsPerResource - 1) / threadsPerResource}
}

// Messages counts all messages.
func (s Shape) Messages() int { return s.LargeThread + s.Threads*ThreadMessages }

// LargeResource counts the messages of the resource that owns the large thread.
func (s Shape) LargeResource() int { return s.LargeThread + s.Threads/s.Resources*ThreadMessages }

// Owner names the resource of a thread.
func (s Shape) Owner(thread int) string { return ResourceID(thread % s.Resources) }

// ThreadID names a thread: 0 is the large one, 1 to Threads are the others.
func ThreadID(n int) string { return fmt.Sprintf("thread-%06d", n) }

// MessageID names the message at a position, from 1, of a thread.
func MessageID(thread string, seq int) string {
	sum := md5.Sum(fmt.Appendf(nil, "%s/%d", thread, seq)) //nolint:gosec // for spread, not for secrets
	return uuid.UUID(sum).String()
}

// ResourceID names a resource, from 0. Resource 0 owns the large thread.
func ResourceID(n int) string { return fmt.Sprintf("resource-%06d", n) }

// A call of a tool is at every position that ends in 4, and a result at every one
// that ends in 8. The call is four before the result, but FarCall before it at
// position FarResult and every 200th from there.
const (
	FarCall   = 64
	FarResult = 198
)

// The metadata by which messages can be found.
const (
	// FlagKey has FlagValue at one in RareEvery positions of the large thread and
	// is missing elsewhere.
	FlagKey   = "flag"
	FlagValue = "audited"
	// TopicKey has TopicValue at as many, and at every second position of the
	// other threads.
	TopicKey   = "topic"
	TopicValue = "refund"
	// RareEvery is the distance of two such messages in the large thread.
	RareEvery = 400
)

// Load fills the tables of a migrated, empty database. progress, where not nil,
// hears how many messages are in.
func Load(ctx context.Context, conn *pgx.Conn, shape Shape, progress func(messages int)) error {
	if _, err := conn.Exec(ctx, insertThreads,
		shape.Threads, shape.LargeThread, ThreadMessages, shape.Resources, shape.EmptyThreads); err != nil {
		return fmt.Errorf("insert threads: %w", err)
	}
	batches := (shape.Threads + batchThreads - 1) / batchThreads
	stored := 0
	for i := range batches {
		var batch rows
		batch.add(0, shape.LargeThread*i/batches+1, shape.LargeThread*(i+1)/batches)
		for n := i*batchThreads + 1; n <= min((i+1)*batchThreads, shape.Threads); n++ {
			batch.add(n, 1, ThreadMessages)
		}
		tag, err := conn.Exec(ctx, insertMessages, batch.threads, batch.seqs, batch.texts)
		if err != nil {
			return fmt.Errorf("insert messages: %w", err)
		}
		if stored += int(tag.RowsAffected()); progress != nil {
			progress(stored)
		}
	}
	return nil
}

// rows are what makes messages differ.
type rows struct {
	threads []string
	seqs    []int
	texts   []string
}

// add adds the positions from first to last of a thread.
func (r *rows) add(n, first, last int) {
	thread := ThreadID(n)
	for seq := first; seq <= last; seq++ {
		r.threads, r.seqs, r.texts = append(r.threads, thread), append(r.seqs, seq), append(r.texts, text(thread, seq))
	}
}

// Vacuum leaves the tables as a database has them that autovacuum has been over.
func Vacuum(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, `VACUUM (ANALYZE) recall.threads, recall.messages`); err != nil {
		return fmt.Errorf("vacuum the tables: %w", err)
	}
	return nil
}

// Fingerprint tells apart what Load would store.
func Fingerprint(shape Shape) string {
	var sample rows
	sample.add(0, 1, ThreadMessages)
	return fmt.Sprintf("%+v %d\n%s\n%s\n%s", shape, ThreadMessages, insertThreads, insertMessages, sample.texts)
}

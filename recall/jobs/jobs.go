// Package jobs does after a request what need not be done within it, by River:
// it embeds messages with a remote embedder, makes titles of threads with a chat
// model, and does again and again what is due from time to time.
//
// What it keeps:
//
//   - A job is inserted in the transaction of the write that makes it due, so that
//     neither is there without the other.
//   - A job survives the death of the process that works on it, at any point.
//   - A service that is out of reach costs a job nothing but time. A job is dead,
//     which stays visible until it is tried again, once what it is about has been
//     refused so often as the configuration says. Messages that are refused together
//     go on in jobs of their own, so that a dead one names exactly what is refused.
package jobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// schema is where River's tables are.
const schema = "recall"

// maintenance is the queue of the jobs that nobody waits for; the statement
// JobBacklog leaves it out. titles is that of the titles.
const (
	maintenance = "maintenance"
	titles      = "titles"
)

// EmbedBatch is the most messages of one job: few enough for one request, and lost
// to a kill at once.
const EmbedBatch = 32

// attempts is the most that River starts a job, which is not what kills it: a
// worker decides that, since River counts the kills of the process as well.
const attempts = 30_000

// Embed is a job that gives messages of one thread their vectors. Whose it is can
// change while it waits, and the names of the members of all jobs that are
// somebody's are these: the statements JobTransfer and JobDeleteByResource know them.
type Embed struct {
	ResourceID string   `json:"resourceId"`
	ThreadID   string   `json:"threadId"`
	MessageIDs []string `json:"messageIds"`
	// Alone keeps the message out of requests with others, where it was in one that
	// failed.
	Alone bool `json:"alone,omitempty"`
}

// Kind names the job to River.
func (Embed) Kind() string { return "embed" }

// Title is a job that gives a thread a title, as its agent is configured.
type Title struct {
	ResourceID string `json:"resourceId"`
	ThreadID   string `json:"threadId"`
	AgentID    string `json:"agentId"`
}

// Kind names the job to River.
func (Title) Kind() string { return "title" }

// due is a job that runs a [Task] once.
type due struct {
	Task string `json:"task"`
}

// Kind names the job to River.
func (due) Kind() string { return "task" }

// Queue takes jobs. It is safe for concurrent use.
type Queue struct{ client *river.Client[pgx.Tx] }

// NewQueue gives a queue, which has no connection of its own.
func NewQueue() *Queue {
	client, err := river.NewClient(riverpgxv5.New(nil), &river.Config{Schema: schema, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err) // of a configuration that is wrong
	}
	return &Queue{client: client}
}

// InsertEmbed inserts jobs for the embedders of a model, in tx.
func (q *Queue) InsertEmbed(ctx context.Context, tx pgx.Tx, model string, dimensions int, jobs []Embed) error {
	return insert(ctx, q.client, tx, QueueOf(model, dimensions), jobs)
}

// InsertTitles inserts jobs for titles, in tx.
func (q *Queue) InsertTitles(ctx context.Context, tx pgx.Tx, jobs []Title) error {
	return insert(ctx, q.client, tx, titles, jobs)
}

func insert[T river.JobArgs](ctx context.Context, client *river.Client[pgx.Tx], tx pgx.Tx, queue string, jobs []T) error {
	options := &river.InsertOpts{Queue: queue, MaxAttempts: attempts}
	params := make([]river.InsertManyParams, len(jobs))
	for i, job := range jobs {
		params[i] = river.InsertManyParams{Args: job, InsertOpts: options}
	}
	_, err := client.InsertManyFastTx(ctx, tx, params)
	return err
}

// QueueOf names the queue of the jobs for the embedders of a model: what one model
// embeds is of no use to the index of another.
func QueueOf(model string, dimensions int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", model, dimensions))
	return "embed_" + hex.EncodeToString(sum[:8])
}

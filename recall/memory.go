package recall

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgrecall/pgrecall/dbgen"
	"github.com/pgrecall/pgrecall/recall/chat"
	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/jobs"
)

// Memory is the conversation memory kept in one database. It is safe for
// concurrent use.
type Memory struct {
	db        database
	queries   *dbgen.Queries
	limits    Limits
	embedder  embed.Embedder // nil: no vectors, words only
	questions embed.Embedder // the same behind a cache
	remote    bool           // vectors of messages are made by jobs
	// groupTexts is how many texts the embedder takes at once.
	groupTexts int
	queue      *jobs.Queue
	chat       chat.Service // nil: no titles are made
	caller     Caller
}

// Option changes what [New] gives.
type Option func(*Memory)

// WithEmbedder makes a memory give its messages vectors, in the transaction that
// saves them, and search by them. It is for an embedder that needs microseconds
// and cannot fail. [Memory.CheckEmbedder] tells whether the database has an index
// for its vectors.
func WithEmbedder(embedder embed.Embedder) Option {
	return func(m *Memory) {
		m.embedder = embedder
		m.questions = embed.NewCache(embedder, cachedQuestions)
	}
}

// WithRemoteEmbedder is WithEmbedder for one that is asked over a network. The
// vectors of messages are made by jobs, which are inserted by the transaction that
// saves the messages; [Memory.EmbedMessages] does the work of one. What several of
// them ask at a time is one request, up to the embedder's BatchSize, where it has
// that method.
func WithRemoteEmbedder(embedder embed.Embedder) Option {
	return func(m *Memory) {
		WithEmbedder(embedder)(m)
		m.questions = embed.NewCache(embed.NewBreaker(embedder, questionPause), cachedQuestions)
		m.remote = true
		if bounded, ok := embedder.(interface{ BatchSize() int }); ok {
			m.groupTexts = bounded.BatchSize()
		}
		m.embedder = embed.NewMerger(embedder, m.groupTexts)
	}
}

// WithChat makes a memory give threads titles by jobs, where an agent's configuration
// asks for them; [Memory.GenerateTitle] does the work of one.
func WithChat(service chat.Service) Option {
	return func(m *Memory) { m.chat = service }
}

const (
	// cachedQuestions is how many questions' vectors are kept.
	cachedQuestions = 4096
	// questionPause is how long an embedder is asked no question after it was out of
	// reach.
	questionPause = 2 * time.Second
)

// New gives the memory behind pool, whose database must have been migrated
// (db.Migrate). The pool stays the caller's to close; one from db.Open has the
// settings that the statements are fastest with, and keep right plans with while
// tables grow from nothing. No limits at all mean [DefaultLimits].
func New(pool *pgxpool.Pool, limits Limits, options ...Option) *Memory {
	if limits == (Limits{}) {
		limits = DefaultLimits()
	}
	m := &Memory{db: pooled{pool}, queries: dbgen.New(), queue: jobs.NewQueue(), limits: limits, groupTexts: groupTexts}
	for _, option := range options {
		option(m)
	}
	return m
}

// HasEmbedder says whether messages get vectors.
func (m *Memory) HasEmbedder() bool { return m.embedder != nil }

// Ready fails with CodeUnavailable unless the database answers and has the
// tables.
func (m *Memory) Ready(ctx context.Context) error {
	_, err := m.queries.ThreadGet(ctx, m.db, dbgen.ThreadGetParams{Reach: m.reach()})
	if isNoRows(err) {
		return nil
	}
	return schemaError(err)
}

// schemaError is databaseError for those who ask whether the database has the
// tables.
func schemaError(err error) error {
	if isSchemaMissing(err) {
		return &Error{Code: CodeUnavailable, Message: "The schema is missing or behind: run pgrecall migrate up", cause: err}
	}
	return databaseError(err)
}

// write runs do in one READ COMMITTED transaction: each statement sees what was
// committed before it, so what follows a lock sees the work of the lock's last
// owner. Callers that change nothing get no further than here.
func (m *Memory) write(ctx context.Context, do func(pgx.Tx) error) error {
	return m.writeAt(ctx, pgx.ReadCommitted, do)
}

// writeAt is write at another isolation level.
func (m *Memory) writeAt(ctx context.Context, level pgx.TxIsoLevel, do func(pgx.Tx) error) error {
	if err := m.caller.mayWrite(); err != nil {
		return err
	}
	return databaseError(m.db.transact(ctx, pgx.TxOptions{IsoLevel: level}, do))
}

// operate is write for what is of no resource, and so of all.
func (m *Memory) operate(ctx context.Context, do func(pgx.Tx) error) error {
	if err := m.caller.maySeeAll(); err != nil {
		return err
	}
	return m.write(ctx, do)
}

// read runs do in one snapshot of the database.
func (m *Memory) read(ctx context.Context, do func(pgx.Tx) error) error {
	return databaseError(m.db.transact(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, do))
}

package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/pgrecall/pgrecall/dbgen"
	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/service"
)

// Config says what [Start] works on. Zeros take the defaults named.
type Config struct {
	// Pool is for the workers alone: one of its connections listens all the time.
	Pool *pgxpool.Pool
	// Logger hears of jobs that fail; nil means [slog.Default].
	Logger *slog.Logger
	// Embed gives messages their vectors, those that are still there and lack them.
	// It returns a [*Rejected] of those that cannot be embedded together, and any
	// other error where that is nothing about the messages. nil leaves such jobs alone.
	Embed func(ctx context.Context, messageIDs []string) error
	// Model and Dimensions say whose jobs Embed is for.
	Model      string
	Dimensions int
	// EmbedTimeout bounds a call of Embed; a minute when 0. The jobs of a process
	// that was killed are taken up again after half as long once more.
	EmbedTimeout time.Duration
	// Tries is how often a message that is rejected is tried; 5 when 0.
	Tries int
	// Title gives a thread its title, where it is still there and lacks one. It
	// returns a [*Refused] where the service will not, and any other error where that
	// is nothing about the thread. nil leaves such jobs alone.
	Title func(ctx context.Context, threadID, agentID string) error
	// TitleTimeout bounds a call of Title; a minute when 0. TitleTries is how often a
	// title that is refused is tried; 5 when 0.
	TitleTimeout time.Duration
	TitleTries   int
	// Tasks are done again and again, from the start on.
	Tasks []Task
}

// Task is work that is due from time to time. Of all processes one at a time does
// it.
type Task struct {
	// Name tells it from the other tasks, in all processes alike.
	Name string
	// Every is the time between two calls of Do.
	Every time.Duration
	// Do does what is due. Where it fails, or is ended after two minutes, the next call
	// goes on: soon, where the time was over.
	Do func(ctx context.Context) error
}

// The defaults of a [Config].
const (
	DefaultTries        = 5
	defaultEmbedTimeout = time.Minute
	defaultTitleTimeout = time.Minute
)

const (
	// embedWorkers is how many jobs a process embeds at once. Most of the time they
	// wait for a request that they share.
	embedWorkers = 64
	// fetchCooldown is the time between two looks for jobs to embed. With River's own,
	// 100 ms, single messages would wait for it rather than for the service.
	fetchCooldown = 10 * time.Millisecond
	// titleWorkers is how many titles it makes at once.
	titleWorkers = 2
	// taskTimeout bounds a run of a task: that of a process that was killed keeps the
	// next from beginning for as long. taskPause is the time to the next where more is
	// to be done.
	taskTimeout = 2 * time.Minute
	taskPause   = time.Second
	// splitTimeout bounds the statements that replace a job, whose own time may be
	// over.
	splitTimeout = 10 * time.Second
	// keepCompleted is how long what was done is kept for people to look at.
	keepCompleted = time.Hour
)

// Rejected is the failure of messages that the service can embed others beside.
type Rejected struct {
	MessageIDs []string
	// Cause is what became of the first.
	Cause error
}

// Error says how many, and why.
func (e *Rejected) Error() string {
	if len(e.MessageIDs) == 1 {
		return fmt.Sprintf("the message cannot be embedded: %s", e.Cause)
	}
	return fmt.Sprintf("%d messages cannot be embedded together: %s", len(e.MessageIDs), e.Cause)
}

// Unwrap gives the cause.
func (e *Rejected) Unwrap() error { return e.Cause }

// Refused is the failure of a title that the service will not give, while it gives
// others.
type Refused struct{ Cause error }

// Error says why.
func (e *Refused) Error() string { return fmt.Sprintf("the title cannot be made: %s", e.Cause) }

// Unwrap gives the cause.
func (e *Refused) Unwrap() error { return e.Cause }

// Workers work on jobs until they are stopped.
type Workers struct{ client *river.Client[pgx.Tx] }

// Start starts workers. They end with ctx, or by [Workers.Stop].
func Start(ctx context.Context, config Config) (*Workers, error) {
	timeout := cmp.Or(config.EmbedTimeout, defaultEmbedTimeout)
	workers := river.NewWorkers()
	logger := cmp.Or(config.Logger, slog.Default())
	waits := &complaints{logger: logger, last: map[string]time.Time{}}
	river.AddWorker(workers, &embedWorker{
		embed: config.Embed, timeout: timeout, tries: cmp.Or(config.Tries, DefaultTries), pool: config.Pool, waits: waits,
	})
	river.AddWorker(workers, &taskWorker{tasks: config.Tasks, logger: logger})
	river.AddWorker(workers, &titleWorker{
		title: config.Title, timeout: cmp.Or(config.TitleTimeout, defaultTitleTimeout),
		tries: cmp.Or(config.TitleTries, DefaultTries), waits: waits,
	})
	queues := map[string]river.QueueConfig{maintenance: {MaxWorkers: 1}}
	if config.Embed != nil {
		queues[QueueOf(config.Model, config.Dimensions)] = river.QueueConfig{
			MaxWorkers: embedWorkers, FetchCooldown: fetchCooldown,
		}
	}
	if config.Title != nil {
		queues[titles] = river.QueueConfig{MaxWorkers: titleWorkers}
	}
	client, err := river.NewClient(riverpgxv5.New(config.Pool), &river.Config{
		Schema:                      schema,
		Logger:                      slog.New(warnings{logger.Handler()}), // it tells of every retry
		Workers:                     workers,
		Queues:                      queues,
		RetryPolicy:                 retryPolicy{},
		JobTimeout:                  timeout,
		RescueStuckJobsAfter:        timeout * 3 / 2,
		CompletedJobRetentionPeriod: keepCompleted,
		CancelledJobRetentionPeriod: -1, // the dead stay
		DiscardedJobRetentionPeriod: -1,
		ReindexerIndexNames:         []string{}, // REINDEX is for the tables' owner alone
		PeriodicJobs:                periodic(config.Tasks),
	})
	if err != nil {
		return nil, err
	}
	return &Workers{client: client}, client.Start(ctx)
}

// Stop takes no new jobs, and waits for those that run until ctx ends; what runs
// then is interrupted, and taken up again later.
func (w *Workers) Stop(ctx context.Context) error {
	err := w.client.Stop(ctx)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return w.client.StopAndCancel(context.WithoutCancel(ctx))
	}
	return err
}

func periodic(tasks []Task) []*river.PeriodicJob {
	var all []*river.PeriodicJob
	for _, task := range tasks {
		insert := func() (river.JobArgs, *river.InsertOpts) { return due{Task: task.Name}, onlyOne() }
		all = append(all, river.NewPeriodicJob(river.PeriodicInterval(task.Every), insert, &river.PeriodicJobOpts{RunOnStart: true}))
	}
	return all
}

// onlyOne are the options of a job of a task: of the time that one takes, the others
// would only wait.
func onlyOne() *river.InsertOpts {
	return &river.InsertOpts{
		Queue: maintenance,
		UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
			rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable,
			rivertype.JobStateRunning, rivertype.JobStateScheduled,
		}},
	}
}

type taskWorker struct {
	river.WorkerDefaults[due]
	tasks  []Task
	logger *slog.Logger
}

// Timeout bounds a run.
func (w *taskWorker) Timeout(*river.Job[due]) time.Duration { return taskTimeout }

// Work never fails: the next one comes anyway, and goes on where this one was. A
// task of another process's that this one does not know is left for that time too.
func (w *taskWorker) Work(ctx context.Context, job *river.Job[due]) error {
	for _, task := range w.tasks {
		if task.Name != job.Args.Task {
			continue
		}
		err := task.Do(ctx)
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return river.JobSnooze(taskPause)
		}
		if err != nil {
			w.logger.WarnContext(ctx, "what is due from time to time was not done",
				slog.String("task", task.Name), slog.String("error", err.Error()))
		}
	}
	return nil
}

type embedWorker struct {
	river.WorkerDefaults[Embed]
	embed   func(context.Context, []string) error
	timeout time.Duration
	tries   int
	pool    *pgxpool.Pool
	waits   *complaints
}

// Timeout bounds the work on a job: by what the process that works on it has noted,
// where that is longer, since any process may ask, to take it for abandoned.
func (w *embedWorker) Timeout(job *river.Job[Embed]) time.Duration {
	return max(w.timeout, time.Duration(marksOf(job.JobRow).TimeoutMS)*time.Millisecond)
}

// Work gives the messages of a job their vectors. What is rejected alone is tried
// again so often, what is rejected together goes on in jobs of its own.
func (w *embedWorker) Work(ctx context.Context, job *river.Job[Embed]) error {
	err := w.note(ctx, job.JobRow)
	if err == nil {
		err = w.embed(withCompany(ctx, job), job.Args.MessageIDs)
	}
	var rejected *Rejected
	isRejected := errors.As(err, &rejected)
	if isRejected && len(job.Args.MessageIDs) > 1 {
		if err = split(ctx, w.pool, job, rejected.MessageIDs); err == nil {
			return nil
		}
		isRejected = false
	}
	return w.waits.ended(ctx, job.JobRow, "vectors wait", err, isRejected, w.tries)
}

// note writes a timeout that others may not expect where they see it.
func (w *embedWorker) note(ctx context.Context, job *rivertype.JobRow) error {
	timeout := w.timeout.Milliseconds()
	if w.timeout <= defaultEmbedTimeout || marksOf(job).TimeoutMS >= timeout {
		return nil
	}
	return dbgen.New().JobNoteTimeout(ctx, w.pool, dbgen.JobNoteTimeoutParams{ID: job.ID, TimeoutMs: timeout})
}

// withCompany lets a job's texts into requests with those of others, unless they
// were in one that failed.
func withCompany(ctx context.Context, job *river.Job[Embed]) context.Context {
	if job.Args.Alone || triesOf(job.JobRow) > 1 {
		return embed.Alone(ctx)
	}
	return ctx
}

// split replaces a job by one a message, in one transaction.
func split(ctx context.Context, pool *pgxpool.Pool, job *river.Job[Embed], messageIDs []string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), splitTimeout)
	defer cancel()
	single := make([]Embed, len(messageIDs))
	for i, id := range messageIDs {
		single[i] = job.Args
		single[i].MessageIDs, single[i].Alone = []string{id}, true
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := insert(ctx, river.ClientFromContext[pgx.Tx](ctx), tx, job.Queue, single); err != nil {
			return err
		}
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		return err
	})
}

type titleWorker struct {
	river.WorkerDefaults[Title]
	title   func(ctx context.Context, threadID, agentID string) error
	timeout time.Duration
	tries   int
	waits   *complaints
}

// Timeout bounds the work on a title.
func (w *titleWorker) Timeout(*river.Job[Title]) time.Duration { return w.timeout }

// Work gives the thread of a job its title.
func (w *titleWorker) Work(ctx context.Context, job *river.Job[Title]) error {
	err := w.title(ctx, job.Args.ThreadID, job.Args.AgentID)
	var refused *Refused
	return w.waits.ended(ctx, job.JobRow, "a title waits", err, errors.As(err, &refused), w.tries)
}

// ended says how a job that has been worked on goes on. A rejection is of what the
// job is about, and is tried again so often; any other error is not, and costs the
// job nothing but time.
func (c *complaints) ended(ctx context.Context, job *rivertype.JobRow, what string, err error, rejected bool, tries int) error {
	switch {
	case err == nil || errors.Is(ctx.Err(), context.Canceled): // done, or the process stops
		return err
	case !rejected:
		c.hear(ctx, what, err)
		return errors.Join(river.MetadataSet(ctx, "waitsFor", err.Error()), river.JobSnooze(patience(job, err)))
	}
	// It waits for nothing but its next try.
	if failure := river.MetadataSet(ctx, "waitsFor", ""); failure != nil {
		return failure
	}
	if triesOf(job) >= tries {
		return river.JobCancel(err)
	}
	return err
}

// marks are what is noted of a job's past, by River but for the last.
type marks struct {
	Snoozes int `json:"snoozes"`
	Rescues int `json:"river:rescue_count"`
	// TimeoutMS is written by JobNoteTimeout.
	TimeoutMS int64 `json:"timeoutMs"`
}

func marksOf(job *rivertype.JobRow) (m marks) {
	if json.Unmarshal(job.Metadata, &m) != nil {
		return marks{}
	}
	return m
}

// triesOf counts the starts of a job, the one under way included, but for those
// that ended with their process.
func triesOf(job *rivertype.JobRow) int { return job.Attempt - marksOf(job).Rescues }

const maxPatience = time.Minute

// patience is how long to leave alone what is out of reach: longer each time, up to
// a minute, and not less than it asked for.
func patience(job *rivertype.JobRow, err error) time.Duration {
	wait := min(maxPatience, time.Second<<min(marksOf(job).Snoozes, 6))
	var embedder *embed.Error
	if errors.As(err, &embedder) {
		return max(wait, embedder.RetryAfter)
	}
	var other *service.Error
	if errors.As(err, &other) {
		return max(wait, other.RetryAfter)
	}
	return wait
}

// retryPolicy is River's own, the number of tries to the fourth power in seconds,
// of our count of tries.
type retryPolicy struct{}

const maxRetryWait = time.Hour

// NextRetry says when a job that failed is tried again.
func (retryPolicy) NextRetry(job *rivertype.JobRow) time.Time {
	tries := time.Duration(min(max(triesOf(job), 1), 10))
	return time.Now().Add(min(maxRetryWait, tries*tries*tries*tries*time.Second))
}

package recall

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgrecall/pgrecall/dbgen"
	"github.com/pgrecall/pgrecall/recall/jobs"
)

// Backlog is what is still to be done after requests that were answered.
type Backlog struct {
	// Waiting counts the jobs that are not done, to 10,001.
	Waiting int64
	// Oldest is the age of the oldest of them.
	Oldest time.Duration
	// Dead counts the jobs that were given up, to 10,001. They stay until they are
	// tried again.
	Dead int64
}

// Backlog looks at the jobs.
func (m *Memory) Backlog(ctx context.Context) (Backlog, error) {
	row, err := m.queries.JobBacklog(ctx, m.db)
	return Backlog{
		Waiting: row.Waiting, Oldest: time.Duration(row.OldestSeconds * float64(time.Second)), Dead: row.Dead,
	}, schemaError(err)
}

// JobState says how far a job is.
type JobState string

// The states of a [Job].
const (
	JobWaiting  JobState = "waiting"  // never tried yet, or the service was out of reach
	JobRunning  JobState = "running"  // under way
	JobRetrying JobState = "retrying" // it failed, and is tried again at NextTryAt
	JobDead     JobState = "dead"     // given up, until it is retried
)

// The kinds of a [Job].
const (
	JobEmbed = "embed" // gives messages their vectors
	JobTitle = "title" // gives a thread a title
)

// Job is work that is not done.
type Job struct {
	ID         int64
	Kind       string
	State      JobState
	ResourceID string
	// MessageIDs are what a JobEmbed is about, ThreadID what a JobTitle is.
	MessageIDs []string
	ThreadID   string
	CreatedAt  time.Time
	// NextTryAt is when it is tried, or was due to be.
	NextTryAt time.Time
	// LastError says why it failed last, or what it waits for; empty for not yet. It
	// holds no text.
	LastError string
}

// JobListing asks for jobs.
type JobListing struct {
	// Dead asks for the dead ones, and no others.
	Dead bool
	// BeforeID goes on from the last of a list; 0 begins with the newest.
	BeforeID int64
	// PerPage is how many; 100 when 0.
	PerPage int
}

const defaultJobsPerPage = 100

// Jobs lists the jobs that are not done, newest first.
func (m *Memory) Jobs(ctx context.Context, in JobListing) ([]Job, error) {
	if in.PerPage == 0 {
		in.PerPage = defaultJobsPerPage
	}
	c := m.check()
	c.between("perPage", in.PerPage, 1, c.limits.PerPage)
	if in.BeforeID < 0 {
		c.fail("before", "must be the id of a job")
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	params := dbgen.JobListParams{Dead: in.Dead, BeforeID: in.BeforeID, MaxRows: int64(in.PerPage), Reach: m.reach()}
	if in.BeforeID == 0 {
		params.BeforeID = 1<<63 - 1
	}
	rows, err := m.queries.JobList(ctx, m.db, params)
	list := make([]Job, len(rows))
	for i, row := range rows {
		args := struct {
			jobs.Embed
			ThreadID string `json:"threadId"`
		}{Embed: jobs.Embed{MessageIDs: []string{}}}
		if err := json.Unmarshal(row.Args, &args); err != nil {
			return nil, err
		}
		state := jobStates[row.State]
		if state == JobWaiting && row.LastError != "" && row.WaitsFor == "" { // River makes it available before its time
			state = JobRetrying
		}
		list[i] = Job{
			ID: row.ID, Kind: row.Kind, State: state, ResourceID: args.ResourceID, MessageIDs: args.MessageIDs,
			ThreadID: args.ThreadID, CreatedAt: row.CreatedAt.UTC(), NextTryAt: row.ScheduledAt.UTC(), LastError: lastError(row),
		}
	}
	return list, databaseError(err)
}

// lastError gives the failure that is the latest, without what River puts before one
// that is given up.
func lastError(row dbgen.JobListRow) string {
	return cmp.Or(row.WaitsFor, strings.TrimPrefix(row.LastError, "JobCancelError: "))
}

// jobStates gives our states for River's.
var jobStates = map[string]JobState{
	"available": JobWaiting, "scheduled": JobWaiting, "pending": JobWaiting,
	"running": JobRunning, "retryable": JobRetrying, "discarded": JobDead, "cancelled": JobDead,
}

// maxRetriedJobs bounds the ids of one [Memory.RetryJobs].
const maxRetriedJobs = 1000

// RetryJobs gives dead jobs all their tries again and counts them: those with the
// given ids, or all where there are none.
func (m *Memory) RetryJobs(ctx context.Context, ids []int64) (int64, error) {
	c := m.check()
	if len(ids) > maxRetriedJobs {
		c.fail("ids", "has more than %d ids", maxRetriedJobs)
		return 0, c.err()
	}
	params := dbgen.JobRetryManyParams{Ids: append([]int64{}, ids...), Reach: m.reach()}
	var n int64
	err := m.write(ctx, func(tx pgx.Tx) (err error) {
		n, err = m.queries.JobRetryMany(ctx, tx, params)
		return err
	})
	return n, err
}

// The waits between two looks of [Memory.WaitEmbedded].
const (
	firstLook = 10 * time.Millisecond
	lastLook  = 500 * time.Millisecond
)

// WaitEmbedded waits until messages that were saved have the vectors of the
// embedder, and says whether they have: false when ctx ends before, or when one has
// been given up.
func (m *Memory) WaitEmbedded(ctx context.Context, ids []string) (bool, error) {
	if m.embedder == nil {
		return false, errorf(CodeInvalid, "This server has no embedder to wait for")
	}
	for wait := firstLook; m.remote; wait = min(2*wait, lastLook) {
		done, err := m.embedded(ctx, ids)
		switch {
		case ctx.Err() != nil || errors.Is(err, errGivenUp):
			return false, nil
		case err != nil || done:
			return done, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return false, nil
		}
	}
	return true, nil
}

var errGivenUp = errors.New("a job was given up")

func (m *Memory) embedded(ctx context.Context, ids []string) (bool, error) {
	lacking, err := m.lacking(ctx, ids)
	if err != nil {
		return false, err
	}
	if len(lacking) == 0 {
		return true, nil
	}
	left := make([]string, len(lacking))
	for i, message := range lacking {
		left[i] = message.id
	}
	givenUp, err := m.queries.JobCountGivenUp(ctx, m.db, dbgen.JobCountGivenUpParams{
		MessageIds: left, Queue: jobs.QueueOf(m.embedder.Model(), m.embedder.Dimensions()),
	})
	if err == nil && givenUp > 0 {
		return false, errGivenUp
	}
	return false, databaseError(err)
}

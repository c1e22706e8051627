package jobs

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestATaskWhoseTimeIsOverGoesOnSoon(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	worker := taskWorker{logger: slog.New(slog.DiscardHandler), tasks: []Task{
		{Name: "long", Do: func(ctx context.Context) error { return ctx.Err() }},
	}}
	job := &river.Job[due]{Args: due{Task: "long"}}
	var snoozed *river.JobSnoozeError
	require.ErrorAs(t, worker.Work(ctx, job), &snoozed)
	require.NoError(t, worker.Work(t.Context(), job))
}

func TestAJobRunsAsLongAsItsOwnProcessLetsIt(t *testing.T) {
	t.Parallel()
	worker := embedWorker{timeout: time.Minute}
	for metadata, want := range map[string]time.Duration{
		`{}`: time.Minute, `{"timeoutMs":1000}`: time.Minute, `{"timeoutMs":120000}`: 2 * time.Minute,
	} {
		job := &river.Job[Embed]{JobRow: &rivertype.JobRow{Metadata: []byte(metadata)}}
		assert.Equal(t, want, worker.Timeout(job), metadata)
	}
}

func TestAComplaintIsMadeOnceAMinute(t *testing.T) {
	t.Parallel()
	c := &complaints{last: map[string]time.Time{}}
	assert.True(t, c.isNew("down"))
	assert.False(t, c.isNew("down"))
	assert.True(t, c.isNew("busy"))
	c.last["down"] = time.Now().Add(-complainEvery)
	assert.True(t, c.isNew("down"))
}

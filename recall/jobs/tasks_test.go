package jobs_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall/jobs"
)

func TestTasksAreDoneAgainAndAgainWhateverFails(t *testing.T) {
	t.Parallel()
	var failed, done atomic.Int64
	workers, err := jobs.Start(context.WithoutCancel(t.Context()), jobs.Config{
		Pool: dbtest.New(t), Logger: slog.New(slog.DiscardHandler),
		Tasks: []jobs.Task{
			{Name: "fail", Every: time.Second, Do: func(context.Context) error {
				failed.Add(1)
				return errors.New("broken")
			}},
			{Name: "work", Every: time.Second, Do: func(context.Context) error {
				done.Add(1)
				return nil
			}},
			{Name: "rest", Every: time.Hour, Do: func(context.Context) error { return nil }},
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, workers.Stop(context.WithoutCancel(t.Context()))) })
	require.Eventually(t, func() bool { return failed.Load() > 1 && done.Load() > 1 }, 2*time.Minute, 10*time.Millisecond)
}

func TestOneProcessAtATimeDoesATask(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	var starts, ticks atomic.Int64
	end := make(chan struct{})
	tasks := []jobs.Task{
		{Name: "long", Every: time.Second, Do: func(context.Context) error {
			starts.Add(1)
			<-end
			return nil
		}},
		// The clock: by its third run the long one has been due again.
		{Name: "tick", Every: time.Second, Do: func(context.Context) error {
			ticks.Add(1)
			return nil
		}},
	}
	for range 3 {
		workers, err := jobs.Start(context.WithoutCancel(t.Context()), jobs.Config{
			Pool: dbtest.Open(t, url), Logger: slog.New(slog.DiscardHandler), Tasks: tasks,
		})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, workers.Stop(context.WithoutCancel(t.Context()))) })
	}
	require.Eventually(t, func() bool { return starts.Load() > 0 && ticks.Load() > 2 }, 2*time.Minute, 10*time.Millisecond)
	assert.EqualValues(t, 1, starts.Load())
	close(end)
}

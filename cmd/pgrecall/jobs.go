package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/pgrecall/pgrecall/recall"
)

type jobsCommand struct {
	List  jobsListCommand  `cmd:"" help:"Show what waits: messages for their vectors, threads for titles; or what was given up."`
	Retry jobsRetryCommand `cmd:"" help:"Try again what was given up."`
}

type jobsListCommand struct {
	databaseSettings `embed:""`
	outputSettings   `embed:""`
	Dead             bool `name:"dead" env:"PGRECALL_DEAD" help:"Show those that were given up, and no others."`
}

// Validate refuses a missing or malformed database URL.
func (c *jobsListCommand) Validate() error { return c.validate() }

// Run shows the newest jobs.
func (c *jobsListCommand) Run(ctx context.Context, term terminal) error {
	return c.withMemory(ctx, nil, func(m *recall.Memory) error {
		backlog, err := m.Backlog(ctx)
		if err != nil {
			return err
		}
		jobs, err := m.Jobs(ctx, recall.JobListing{Dead: c.Dead})
		if err != nil {
			return err
		}
		var text strings.Builder
		fmt.Fprintf(&text, "%d waiting, the oldest for %s; %d dead\n", backlog.Waiting, backlog.Oldest.Round(1e9), backlog.Dead)
		table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		results := []any{}
		for _, job := range jobs {
			about := fmt.Sprintf("%d messages", len(job.MessageIDs))
			result := map[string]any{
				"id": job.ID, "kind": job.Kind, "state": job.State, "resourceId": job.ResourceID, "messageIds": job.MessageIDs,
				"createdAt": job.CreatedAt, "nextTryAt": job.NextTryAt, "lastError": job.LastError,
			}
			if job.Kind == recall.JobTitle {
				about, result["threadId"] = "thread "+job.ThreadID, job.ThreadID
			}
			fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t\n", job.ID, job.Kind, job.State, about, job.LastError)
			results = append(results, result)
		}
		if err := table.Flush(); err != nil {
			return err
		}
		return c.print(term, strings.TrimSuffix(text.String(), "\n"), map[string]any{
			"waiting": backlog.Waiting, "oldestSeconds": backlog.Oldest.Seconds(), "dead": backlog.Dead, "jobs": results,
		})
	})
}

type jobsRetryCommand struct {
	databaseSettings `embed:""`
	outputSettings   `embed:""`
	IDs              []int64 `arg:"" optional:"" help:"The ids of jobs; all that are dead without."`
}

// Validate refuses a missing or malformed database URL, and ids that are none.
func (c *jobsRetryCommand) Validate() error {
	for _, id := range c.IDs {
		if id < 1 {
			return errors.New("the id of a job is above zero")
		}
	}
	return c.validate()
}

// Run gives dead jobs all their tries again.
func (c *jobsRetryCommand) Run(ctx context.Context, term terminal) error {
	return c.withMemory(ctx, nil, func(m *recall.Memory) error {
		retried, err := m.RetryJobs(ctx, c.IDs)
		if err != nil {
			return err
		}
		return c.print(term, fmt.Sprintf("%d jobs are tried again.", retried), map[string]any{"retried": retried})
	})
}

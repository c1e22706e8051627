package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pgrecall/pgrecall/bench"
)

type benchCommand struct {
	databaseSettings `embed:""`
	outputSettings   `embed:""`
	benchSettings    `embed:""`
}

// Validate refuses a missing or malformed database URL.
func (c *benchCommand) Validate() error { return c.validate() }

// Run measures and prints the report. With Check it fails when an operation is
// out of all proportion, or a search finds too few of the nearest.
func (c *benchCommand) Run(ctx context.Context, term terminal) error {
	report, err := bench.Run(ctx, bench.Options{
		DatabaseURL: c.DatabaseURL,
		Messages:    int(c.Scale),
		Duration:    time.Duration(c.Duration),
		Rounds:      int(c.Rounds),
		Progress:    showProgress(term.log),
	})
	if err != nil {
		return err
	}
	result := map[string]any{
		"machine": report.Machine, "data": report.Data, "messages": report.Messages, "operations": report.Operations,
	}
	if err := c.print(term, benchTable(report), result); err != nil {
		return err
	}
	if c.Check {
		return checkBench(report)
	}
	return nil
}

func checkBench(report bench.Report) error {
	var failures []error
	for _, r := range report.Operations {
		failures = append(failures, r.Check())
	}
	return errors.Join(failures...)
}

func benchTable(report bench.Report) string {
	var text strings.Builder
	m := report.Machine
	fmt.Fprintf(&text, "%d messages: %d in one thread, %d threads, %d resources\n",
		report.Messages, report.Data.LargeThread, report.Data.Threads, report.Data.Resources)
	fmt.Fprintf(&text, "%d CPUs, %s, %s, PostgreSQL %s (shared_buffers %s, fsync %s, synchronous_commit %s)\n",
		m.CPUs, m.System, m.Go, m.Postgres, m.SharedBuffers, m.Fsync, m.SynchronousCommit)
	text.WriteString("One client. Milliseconds; ratio is p50 over HTTP by p50 of the bare SQL.\n\n")
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "HTTP p50\tp95\tp99\t1/s\tSQL p50\tp95\tp99\tratio\ttarget\t\t  operation")
	for _, r := range report.Operations {
		fmt.Fprintf(table, "%.2f\t%.2f\t%.2f\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%s\t  %s%s\n",
			r.HTTP.P50, r.HTTP.P95, r.HTTP.P99, r.HTTP.PerSecond, r.SQL.P50, r.SQL.P95, r.SQL.P99, r.Ratio,
			ratioTarget(r), r.Name, information(r.Information)+recalled(r))
	}
	if err := table.Flush(); err != nil {
		panic(err) // a string takes everything
	}
	return strings.TrimSuffix(text.String(), "\n")
}

func ratioTarget(r bench.Result) string {
	switch {
	case r.TargetRatio == 0:
		return "-\t"
	case r.Met():
		return fmt.Sprintf("<= %.0f\tok", r.TargetRatio)
	default:
		return fmt.Sprintf("<= %.0f\tmissed", r.TargetRatio)
	}
}

// information words an absolute target, in brackets since it does not decide.
func information(i *bench.Information) string {
	if i == nil {
		return ""
	}
	sign, verdict := "<=", "met"
	if i.Unit != "ms" {
		sign = ">="
	}
	if !i.Met {
		verdict = "not met"
	}
	if i.Unit == "ms" {
		return fmt.Sprintf(" (%s %g ms %s here)", sign, i.Target, verdict)
	}
	return fmt.Sprintf(" (%.0f %s; %s %g %s here)", i.Measured, i.Unit, sign, i.Target, verdict)
}

// recalled words how much of what is nearest a search by meaning finds.
func recalled(r bench.Result) string {
	if r.CheckRecall == 0 {
		return ""
	}
	return fmt.Sprintf(" (recall %.3f; >= %g)", r.Recall, r.CheckRecall)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/pgrecall/pgrecall/db"
	"github.com/pgrecall/pgrecall/eval"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
)

type evalCommand struct {
	databaseSettings `embed:""`
	embedderSettings `embed:""`
	outputSettings   `embed:""`
	evalSettings     `embed:""`
	File             string `arg:"" type:"existingfile" help:"Conversations, questions and evidence: a LoCoMo file, or lines of JSON."`
}

// Validate refuses settings that do not go together.
func (c *evalCommand) Validate() error {
	return errors.Join(c.databaseSettings.validate(), c.embedderSettings.validate(), c.evalSettings.validate(c.Embedder))
}

// Run prints how much of the evidence each mode finds.
func (c *evalCommand) Run(ctx context.Context, term terminal) (err error) {
	set, err := c.read()
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	scratch, err := db.CreateScratch(ctx, c.DatabaseURL, "pgrecall_eval_", "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, scratch.Drop(ctx)) }()
	report, err := c.measure(ctx, scratch.URL, set, showProgress(term.log))
	if err != nil {
		return err
	}
	result := map[string]any{
		"conversations": report.Conversations, "messages": report.Messages, "questions": report.Questions, "leftOut": report.LeftOut,
		"k": report.K, "context": report.Context, "tokenizer": report.Tokenizer, "modes": report.Modes,
	}
	return c.print(term, evalTable(report), result)
}

func (c *evalCommand) read() (eval.Set, error) {
	file, err := os.Open(c.File)
	if err != nil {
		return eval.Set{}, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return eval.Read(file)
}

// measure loads a set into an empty database and asks its questions.
func (c *evalCommand) measure(ctx context.Context, address string, set eval.Set, progress eval.Progress) (eval.Report, error) {
	if _, err := db.Migrate(ctx, address); err != nil {
		return eval.Report{}, err
	}
	pool, err := db.Open(ctx, db.Config{URL: address})
	if err != nil {
		return eval.Report{}, err
	}
	defer pool.Close()
	embedder, options, err := c.open()
	if err != nil {
		return eval.Report{}, err
	}
	memory := recall.New(pool, recall.DefaultLimits(), options...)
	if c.Embedder == embedderOpenAI {
		err = createLive(ctx, memory, embedder)
	}
	if err == nil {
		err = eval.Load(ctx, memory, set, progress)
	}
	if c.Embedder == embedderOpenAI && err == nil {
		_, err = memory.BackfillIndex(ctx, evalIndex, recall.Progress(progress))
	}
	if err != nil {
		return eval.Report{}, err
	}
	// What autovacuum does in time to a database in service.
	if _, err := pool.Exec(ctx, "VACUUM ANALYZE"); err != nil {
		return eval.Report{}, err
	}
	return eval.Ask(ctx, memory, set, eval.Options{Modes: c.Modes, K: int(c.K), Progress: progress})
}

const evalIndex = "eval"

// createLive makes an index for the vectors of an embedder the live one.
func createLive(ctx context.Context, memory *recall.Memory, embedder embed.Embedder) error {
	dimensions, err := embed.Probe(ctx, embedder)
	if err != nil {
		return err
	}
	if _, err := memory.CreateIndex(ctx, recall.NewIndex{Name: evalIndex, Model: embedder.Model(), Dimensions: dimensions}); err != nil {
		return err
	}
	return memory.CutOver(ctx, evalIndex, false)
}

func evalTable(report eval.Report) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d conversations, %d messages, %d questions (%d left out: no evidence, or no answer)\n",
		report.Conversations, report.Messages, report.Questions, report.LeftOut)
	fmt.Fprintf(&text, "Share of the evidence among the first hits (r@), questions with some of it among the first %d (any), and the length of\n"+
		"these in tokens (%s); then the same with the %d turns around each hit counted as seen (±%d).\n\n",
		report.K, report.Tokenizer, report.Context, report.Context)
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	names := report.Cutoffs()
	heading := foundHeading(names, report.K, "") + foundHeading(names, report.K, fmt.Sprintf("±%d ", report.Context))
	fmt.Fprintf(table, "mode\tcategory\tquestions\t%s\n", heading)
	for _, mode := range report.Modes {
		for _, s := range mode.Scores {
			category := s.Category
			if category == "" {
				category = "all"
			}
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\n", mode.Mode, category, s.Questions, foundCells(s.Hits, names)+foundCells(s.WithContext, names))
		}
	}
	if err := table.Flush(); err != nil {
		panic(err) // a string takes everything
	}
	return strings.TrimSuffix(text.String(), "\n")
}

func foundHeading(cutoffs []string, k int, prefix string) string {
	var cells strings.Builder
	for _, name := range cutoffs {
		cells.WriteString(prefix + "r@" + name + "\t")
	}
	fmt.Fprintf(&cells, "%sany@%d\t%stokens\t", prefix, k, prefix)
	return cells.String()
}

func foundCells(f eval.Found, cutoffs []string) string {
	var cells strings.Builder
	for _, name := range cutoffs {
		fmt.Fprintf(&cells, "%.3f\t", f.Recall[name])
	}
	fmt.Fprintf(&cells, "%.3f\t%.0f\t", f.Any, f.Tokens)
	return cells.String()
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pgrecall/pgrecall/db"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
)

type indexCommand struct {
	Create   indexCreateCommand   `cmd:"" help:"Create an index for the vectors of a model. It is filled, not searched, until it is cut over to."`
	List     indexListCommand     `cmd:"" help:"Show the indexes, and how many messages each has."`
	Backfill indexBackfillCommand `cmd:"" help:"Give an index the vectors of all messages that it lacks. Stopped, it goes on the next time."`
	Cutover  indexCutoverCommand  `cmd:"" help:"Make an index the one that is searched."`
	Rollback indexRollbackCommand `cmd:"" help:"Take the cut-over of an index back."`
	Drop     indexDropCommand     `cmd:"" help:"Remove an index with its vectors."`
}

// indexLockTimeout bounds the wait for writers: creating and dropping a table locks
// the tables it refers to for a moment, and who waits for that lock holds up others.
const indexLockTimeout = 10 * time.Second

// withMemory opens the database for a command.
func (s databaseSettings) withMemory(ctx context.Context, options []recall.Option, do func(*recall.Memory) error) error {
	pool, err := db.Open(ctx, db.Config{URL: s.DatabaseURL, LockTimeout: indexLockTimeout})
	if err != nil {
		return err
	}
	defer pool.Close()
	return do(recall.New(pool, recall.DefaultLimits(), options...))
}

type indexCreateCommand struct {
	databaseSettings `embed:""`
	outputSettings   `embed:""`
	indexSettings    `embed:""`
	Name             string `arg:"" help:"The new index's name."`
}

// Validate refuses a missing or malformed database URL.
func (c *indexCreateCommand) Validate() error { return c.validate() }

// Run creates an index.
func (c *indexCreateCommand) Run(ctx context.Context, term terminal) error {
	return c.withMemory(ctx, nil, func(m *recall.Memory) error {
		index, err := m.CreateIndex(ctx, recall.NewIndex{
			Name: c.Name, Model: c.Model, Dimensions: int(c.Dimensions), LengthPrior: c.Model == embed.Static{}.Model(),
			Graph: recall.Graph(c.Graph), HNSWM: int(c.M), HNSWEfConstruction: int(c.EfConstruction),
		})
		if err != nil {
			return err
		}
		text := fmt.Sprintf("Created %s. Fill it: pgrecall index backfill %s", index.Name, index.Name)
		return c.print(term, text, indexResult(index))
	})
}

type indexListCommand struct {
	databaseSettings `embed:""`
	outputSettings   `embed:""`
}

// Validate refuses a missing or malformed database URL.
func (c *indexListCommand) Validate() error { return c.validate() }

// Run shows all indexes.
func (c *indexListCommand) Run(ctx context.Context, term terminal) error {
	return c.withMemory(ctx, nil, func(m *recall.Memory) error {
		indexes, err := m.Indexes(ctx)
		if err != nil {
			return err
		}
		var text strings.Builder
		table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "NAME\tSTATE\tMODEL\tDIMENSIONS\tGRAPH\tMESSAGES\tMISSING\t")
		results := []any{}
		for _, index := range indexes {
			coverage, err := m.IndexCoverage(ctx, index.Name)
			if err != nil {
				return err
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%d\t%d\t\n",
				index.Name, index.State, index.Model, index.Dimensions, index.Graph, coverage.Embedded, coverage.Missing)
			result := indexResult(index)
			result["embedded"], result["missing"] = coverage.Embedded, coverage.Missing
			results = append(results, result)
		}
		if err := table.Flush(); err != nil {
			return err
		}
		return c.print(term, strings.TrimSuffix(text.String(), "\n"), map[string]any{"indexes": results})
	})
}

func indexResult(index recall.Index) map[string]any {
	return map[string]any{
		"name": index.Name, "state": index.State, "model": index.Model, "dimensions": index.Dimensions, "graph": index.Graph,
		"hnswM": index.HNSWM, "hnswEfConstruction": index.HNSWEfConstruction, "createdAt": index.CreatedAt, "liveAt": index.LiveAt,
	}
}

type indexBackfillCommand struct {
	databaseSettings `embed:""`
	embedderSettings `embed:""`
	outputSettings   `embed:""`
	Name             string `arg:"" help:"The index's name."`
}

// Validate refuses settings that do not go together.
func (c *indexBackfillCommand) Validate() error {
	if c.Embedder == embedderNone {
		return errors.New("PGRECALL_EMBEDDER (--embedder): none makes no vectors")
	}
	return errors.Join(c.databaseSettings.validate(), c.embedderSettings.validate())
}

// Run embeds what the index lacks, with the embedder of its model.
func (c *indexBackfillCommand) Run(ctx context.Context, term terminal) error {
	embedder, options, err := c.openFor(ctx, c.databaseSettings, c.Name)
	if err != nil {
		return err
	}
	if _, err := embed.Probe(ctx, embedder); err != nil { // which also tells its dimensions
		return c.wrong(err)
	}
	return c.withMemory(ctx, options, func(m *recall.Memory) error {
		rejected, err := m.BackfillIndex(ctx, c.Name, showProgress(term.log))
		var failed *embed.Error
		if errors.As(err, &failed) {
			return fmt.Errorf("%w; what is done is kept: run it again to go on", err)
		}
		if err != nil {
			return err
		}
		coverage, err := m.IndexCoverage(ctx, c.Name)
		if err != nil {
			return err
		}
		text := fmt.Sprintf("%s has %d messages and lacks %d.", c.Name, coverage.Embedded, coverage.Missing)
		result := map[string]any{"name": c.Name, "embedded": coverage.Embedded, "missing": coverage.Missing, "rejected": []string{}}
		if rejected != nil {
			text += "\nThe embedder rejects:\n  " + strings.Join(rejected.MessageIDs, "\n  ")
			result["rejected"] = rejected.MessageIDs
		}
		return errors.Join(c.print(term, text, result), rejectedError(rejected != nil))
	})
}

func rejectedError(some bool) error {
	if some {
		return errors.New("some messages cannot be embedded")
	}
	return nil
}

type indexCutoverCommand struct {
	databaseSettings `embed:""`
	embedderSettings `embed:""`
	outputSettings   `embed:""`
	forceSettings    `embed:""`
	Name             string `arg:"" help:"The index's name."`
}

// Validate refuses settings that do not go together.
func (c *indexCutoverCommand) Validate() error {
	return errors.Join(c.databaseSettings.validate(), c.embedderSettings.validate())
}

// Run makes an index the live one.
func (c *indexCutoverCommand) Run(ctx context.Context, term terminal) error {
	_, options, err := c.openFor(ctx, c.databaseSettings, c.Name)
	if err != nil {
		return err
	}
	return c.withMemory(ctx, options, func(m *recall.Memory) error {
		if err := m.CutOver(ctx, c.Name, c.Force); err != nil {
			return err
		}
		text := fmt.Sprintf("%s is live. Now start the servers with its embedder; until then they search the index of theirs.", c.Name)
		return c.print(term, text, map[string]any{"live": c.Name})
	})
}

type indexRollbackCommand struct {
	databaseSettings `embed:""`
	outputSettings   `embed:""`
	Name             string `arg:"" help:"The name of the index that is live."`
}

// Validate refuses a missing or malformed database URL.
func (c *indexRollbackCommand) Validate() error { return c.validate() }

// Run makes the index live again that was before.
func (c *indexRollbackCommand) Run(ctx context.Context, term terminal) error {
	return c.withMemory(ctx, nil, func(m *recall.Memory) error {
		revived, err := m.RollBack(ctx, c.Name)
		if err != nil {
			return err
		}
		coverage, err := m.IndexCoverage(ctx, revived)
		if err != nil {
			return err
		}
		text := fmt.Sprintf("%s is live again.", revived)
		if coverage.Missing > 0 {
			text += fmt.Sprintf(" It lacks %d messages: pgrecall index backfill %s", coverage.Missing, revived)
		}
		return c.print(term, text, map[string]any{"live": revived, "missing": coverage.Missing})
	})
}

type indexDropCommand struct {
	databaseSettings `embed:""`
	outputSettings   `embed:""`
	forceSettings    `embed:""`
	Name             string `arg:"" help:"The index's name."`
}

// Validate refuses a missing or malformed database URL.
func (c *indexDropCommand) Validate() error { return c.validate() }

// Run removes an index.
func (c *indexDropCommand) Run(ctx context.Context, term terminal) error {
	return c.withMemory(ctx, nil, func(m *recall.Memory) error {
		if err := m.DropIndex(ctx, c.Name, c.Force); err != nil {
			return err
		}
		return c.print(term, "Dropped "+c.Name+".", map[string]any{"dropped": c.Name})
	})
}

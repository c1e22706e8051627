package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/pgrecall/pgrecall/db"
)

type migrateCommand struct {
	Up     migrateUpCommand     `cmd:"" help:"Bring the schema up to date."`
	Down   migrateDownCommand   `cmd:"" help:"Take the newest migration back, and with it what it holds."`
	Status migrateStatusCommand `cmd:"" help:"Show the schema's version and what is pending."`
}

type migrateUpCommand struct {
	databaseSettings `embed:""`
	outputSettings   `embed:""`
}

// Validate refuses a missing or malformed database URL.
func (c *migrateUpCommand) Validate() error { return c.validate() }

// Run brings the schema up to date.
func (c *migrateUpCommand) Run(ctx context.Context, term terminal) error {
	applied, err := db.Migrate(ctx, c.DatabaseURL)
	if err != nil {
		return err
	}
	text := "Up to date already."
	if len(applied) > 0 {
		text = "Applied:\n  " + strings.Join(applied, "\n  ")
	}
	return c.print(term, text, map[string]any{"applied": append([]string{}, applied...)})
}

type migrateDownCommand struct {
	databaseSettings `embed:""`
	outputSettings   `embed:""`
}

// Validate refuses a missing or malformed database URL.
func (c *migrateDownCommand) Validate() error { return c.validate() }

// Run takes the newest migration back.
func (c *migrateDownCommand) Run(ctx context.Context, term terminal) error {
	undone, err := db.MigrateDown(ctx, c.DatabaseURL)
	if err != nil {
		return err
	}
	if undone == "" {
		return c.print(term, "There is nothing to take back.", map[string]any{"undone": nil})
	}
	return c.print(term, "Took back "+undone, map[string]any{"undone": undone})
}

type migrateStatusCommand struct {
	databaseSettings `embed:""`
	outputSettings   `embed:""`
}

// Validate refuses a missing or malformed database URL.
func (c *migrateStatusCommand) Validate() error { return c.validate() }

// Run shows the schema's version.
func (c *migrateStatusCommand) Run(ctx context.Context, term terminal) error {
	status, err := db.Status(ctx, c.DatabaseURL)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("At version %d of %d.", status.Current, status.Latest)
	if len(status.Pending) > 0 {
		text += "\nPending:\n  " + strings.Join(status.Pending, "\n  ")
	}
	return c.print(term, text, map[string]any{
		"current": status.Current,
		"latest":  status.Latest,
		"pending": append([]string{}, status.Pending...),
	})
}

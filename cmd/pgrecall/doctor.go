package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pgrecall/pgrecall/db"
	"github.com/pgrecall/pgrecall/recall"
)

type doctorCommand struct {
	databaseSettings `embed:""`
	embedderSettings `embed:""`
	outputSettings   `embed:""`
}

// Validate refuses settings that do not go together.
func (c *doctorCommand) Validate() error {
	return errors.Join(c.databaseSettings.validate(), c.embedderSettings.validate())
}

// Run prints every check, and fails if one of them did.
func (c *doctorCommand) Run(ctx context.Context, term terminal) error {
	checks := db.Diagnose(ctx, c.DatabaseURL)
	if checks[0].Verdict != db.Failed { // else there is no connection
		checks = append(checks, c.checkEmbedder(ctx, term))
	}
	fit := true
	var text strings.Builder
	for _, check := range checks {
		fit = fit && check.Verdict != db.Failed
		_, _ = fmt.Fprintf(&text, "%-4s  %-10s  %s\n", check.Verdict, check.Name, check.Message)
		if check.Advice != "" {
			_, _ = fmt.Fprintf(&text, "%18s-> %s\n", "", check.Advice)
		}
	}
	result := map[string]any{"ok": fit, "checks": checks}
	if err := c.print(term, strings.TrimSuffix(text.String(), "\n"), result); err != nil {
		return err
	}
	if !fit {
		return errors.New("the database is not fit for use")
	}
	return nil
}

// checkEmbedder looks whether the live index is for the embedder's vectors.
func (c *doctorCommand) checkEmbedder(ctx context.Context, term terminal) db.Check {
	result := db.Check{Name: "embedder", Verdict: db.Passed, Message: string(c.Embedder)}
	embedder, options, err := c.open()
	if err == nil {
		err = c.withMemory(ctx, options, func(m *recall.Memory) error { return c.check(ctx, m, embedder, term.log) })
	}
	if err != nil {
		result.Verdict, result.Message = db.Failed, err.Error()
		result.Advice = "serve with the embedder of the live index, or with PGRECALL_EMBEDDER=none (--embedder=none)"
	}
	return result
}

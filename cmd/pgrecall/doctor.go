package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pgrecall/pgrecall/db"
)

type doctorCommand struct {
	databaseSettings `embed:""`
	outputSettings   `embed:""`
}

// Validate refuses a missing or malformed database URL.
func (c *doctorCommand) Validate() error { return c.validate() }

// Run prints every check, and fails if one of them did.
func (c *doctorCommand) Run(ctx context.Context, term terminal) error {
	checks := db.Diagnose(ctx, c.DatabaseURL)
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

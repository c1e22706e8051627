package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pgrecall/pgrecall/recall"
)

type keyCommand struct {
	Create keyCreateCommand `cmd:"" help:"Make an API key and print it, this once. As soon as there is a key, requests need one."`
	List   keyListCommand   `cmd:"" help:"Show the API keys, but for what callers show."`
	Revoke keyRevokeCommand `cmd:"" help:"End an API key."`
}

type keyCreateCommand struct {
	databaseSettings `embed:""`
	outputSettings   `embed:""`
	keySettings      `embed:""`
}

// Validate refuses settings that do not go together.
func (c *keyCreateCommand) Validate() error {
	return errors.Join(c.databaseSettings.validate(), c.keySettings.validate())
}

// Run makes a key. As text the result is the key alone, for scripts.
func (c *keyCreateCommand) Run(ctx context.Context, term terminal) error {
	return c.withMemory(ctx, nil, func(m *recall.Memory) error {
		secret, key, err := m.CreateAPIKey(ctx, c.newKey())
		if err != nil {
			return err
		}
		result := keyResult(key)
		result["key"] = secret
		return c.print(term, secret, result)
	})
}

type keyListCommand struct {
	databaseSettings `embed:""`
	outputSettings   `embed:""`
}

// Validate refuses a missing or malformed database URL.
func (c *keyListCommand) Validate() error { return c.validate() }

// Run shows the keys.
func (c *keyListCommand) Run(ctx context.Context, term terminal) error {
	return c.withMemory(ctx, nil, func(m *recall.Memory) error {
		keys, err := m.APIKeys(ctx)
		if err != nil {
			return err
		}
		var text strings.Builder
		table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ID\tNAME\tREACHES\tCREATED\tENDS\tLAST USED")
		results := []any{}
		for _, key := range keys {
			fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\n", key.ID, key.Name, reachOf(key), timeText(&key.CreatedAt), endOf(key), timeText(key.LastUsedAt))
			results = append(results, keyResult(key))
		}
		if err := table.Flush(); err != nil {
			return err
		}
		return c.print(term, strings.TrimSuffix(text.String(), "\n"), map[string]any{"keys": results})
	})
}

// reachOf says what a key reaches.
func reachOf(key recall.APIKey) string {
	reach := "all resources"
	switch {
	case key.Admin:
		reach = "everything"
	case key.Resource != "":
		reach = fmt.Sprintf("resource %q", key.Resource)
	case key.Prefix != "":
		reach = fmt.Sprintf("resources %q...", key.Prefix)
	}
	if key.ReadOnly {
		reach += ", read-only"
	}
	return reach
}

// endOf says until when a key counts.
func endOf(key recall.APIKey) string {
	switch {
	case key.RevokedAt != nil:
		return "revoked " + timeText(key.RevokedAt)
	case !key.Counts(time.Now()):
		return "expired " + timeText(key.ExpiresAt)
	default:
		return timeText(key.ExpiresAt)
	}
}

func timeText(t *time.Time) string {
	if t == nil {
		return "never"
	}
	return t.UTC().Format(time.RFC3339)
}

func keyResult(key recall.APIKey) map[string]any {
	return map[string]any{
		"id": key.ID, "name": key.Name, "admin": key.Admin, "resource": key.Resource, "prefix": key.Prefix, "readOnly": key.ReadOnly,
		"createdAt": key.CreatedAt, "expiresAt": key.ExpiresAt, "revokedAt": key.RevokedAt, "lastUsedAt": key.LastUsedAt,
	}
}

type keyRevokeCommand struct {
	databaseSettings `embed:""`
	outputSettings   `embed:""`
	ID               int64 `arg:"" help:"The key's id, as list shows it."`
}

// Validate refuses a missing or malformed database URL.
func (c *keyRevokeCommand) Validate() error { return c.validate() }

// Run ends a key.
func (c *keyRevokeCommand) Run(ctx context.Context, term terminal) error {
	return c.withMemory(ctx, nil, func(m *recall.Memory) error {
		if err := m.RevokeAPIKey(ctx, c.ID); err != nil {
			return err
		}
		text := fmt.Sprintf("Revoked. Servers that run take note within %s.", recall.KeyFreshness)
		return c.print(term, text, map[string]any{"revoked": c.ID})
	})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pgrecall/pgrecall/db"
)

type rolesCommand struct {
	Create rolesCreateCommand `cmd:"" default:"withargs" help:"Make a role that reads, of all resources or of one; or grant the server's role what it needs."`
	Drop   rolesDropCommand   `cmd:"" help:"Take from a role all that it may do, and drop it."`
}

type rolesCreateCommand struct {
	databaseSettings `embed:""`
	outputSettings   `embed:""`
	Resource         string `name:"resource" env:"PGRECALL_RESOURCE" help:"The one resource that the role may read; recall_analyst reads all."`
	Role             string `name:"role" env:"PGRECALL_ROLE" help:"The name of the role that is bound to the resource."`
	Server           string `name:"server" env:"PGRECALL_SERVER" placeholder:"ROLE" help:"The role that serve connects as, where another migrates."`
}

// Validate refuses settings that do not go together.
func (c *rolesCreateCommand) Validate() error {
	switch {
	case c.Server != "" && c.Role+c.Resource != "":
		return errors.New("PGRECALL_SERVER (--server) does not go with PGRECALL_RESOURCE (--resource) and PGRECALL_ROLE (--role)")
	case (c.Role == "") != (c.Resource == ""):
		return errors.New("PGRECALL_RESOURCE (--resource) and PGRECALL_ROLE (--role) go together")
	case c.Role == db.AnalystRole:
		return fmt.Errorf("PGRECALL_ROLE (--role): %s reads all resources, want another name", db.AnalystRole)
	case strings.ContainsRune(c.Role+c.Resource+c.Server, 0):
		return errors.New("a name has no zero byte")
	}
	return c.validate()
}

// Run makes the role, or brings it up to date.
func (c *rolesCreateCommand) Run(ctx context.Context, term terminal) error {
	switch {
	case c.Server != "":
		if err := db.GrantServer(ctx, c.DatabaseURL, c.Server); err != nil {
			return err
		}
		return c.print(term, c.Server+" may serve.", map[string]any{"server": c.Server})
	case c.Role != "":
		if err := db.CreateBoundAnalyst(ctx, c.DatabaseURL, c.Role, c.Resource); err != nil {
			return err
		}
		return c.print(term, fmt.Sprintf("%s reads what is held of %q. GRANT it to a user, or ALTER ROLE ... LOGIN.", c.Role, c.Resource),
			map[string]any{"role": c.Role, "resourceId": c.Resource})
	default:
		if err := db.CreateAnalyst(ctx, c.DatabaseURL); err != nil {
			return err
		}
		return c.print(term, db.AnalystRole+" reads all resources. GRANT it to a user, or ALTER ROLE ... LOGIN.",
			map[string]any{"role": db.AnalystRole, "resourceId": nil})
	}
}

type rolesDropCommand struct {
	databaseSettings `embed:""`
	outputSettings   `embed:""`
	Name             string `arg:"" help:"The role."`
}

// Validate refuses a missing or malformed database URL.
func (c *rolesDropCommand) Validate() error { return c.validate() }

// Run drops the role, or says what keeps it.
func (c *rolesDropCommand) Run(ctx context.Context, term terminal) error {
	kept, err := db.DropRole(ctx, c.DatabaseURL, c.Name)
	if err != nil {
		return err
	}
	if kept != "" {
		return c.print(term, fmt.Sprintf("%s may do nothing here any more. It stays: %s", c.Name, kept),
			map[string]any{"role": c.Name, "dropped": false, "kept": kept})
	}
	return c.print(term, "Dropped "+c.Name+".", map[string]any{"role": c.Name, "dropped": true})
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pgrecall/pgrecall/recall"
)

type agentCommand struct {
	List   agentListCommand   `cmd:"" help:"Show the agents with a stored configuration."`
	Get    agentGetCommand    `cmd:"" help:"Show the configuration of an agent."`
	Set    agentSetCommand    `cmd:"" help:"Store the configuration of an agent."`
	Delete agentDeleteCommand `cmd:"" help:"Remove the stored configuration of an agent."`
}

type agentListCommand struct {
	databaseSettings `embed:""`
	outputSettings   `embed:""`
}

// Validate refuses a missing or malformed database URL.
func (c *agentListCommand) Validate() error { return c.validate() }

// Run shows the agents.
func (c *agentListCommand) Run(ctx context.Context, term terminal) error {
	return c.withMemory(ctx, nil, func(m *recall.Memory) error {
		agents, err := m.Agents(ctx)
		if err != nil {
			return err
		}
		lines, results := []string{}, []any{}
		for _, agent := range agents {
			lines = append(lines, agent.ID+"  "+string(agent.Stored))
			results = append(results, map[string]any{"id": agent.ID, "config": agent.Stored})
		}
		return c.print(term, strings.Join(lines, "\n"), map[string]any{"agents": results})
	})
}

type agentGetCommand struct {
	databaseSettings `embed:""`
	embedderSettings `embed:""`
	outputSettings   `embed:""`
	ID               string `arg:"" help:"The agent's id."`
}

// Validate refuses settings that cannot be meant.
func (c *agentGetCommand) Validate() error {
	return errors.Join(c.databaseSettings.validate(), c.embedderSettings.validate())
}

// Run shows what holds for the agent, defaults included: those of a server with the
// same embedder.
func (c *agentGetCommand) Run(ctx context.Context, term terminal) error {
	_, options, err := c.open()
	if err != nil {
		return err
	}
	return c.withMemory(ctx, options, func(m *recall.Memory) error {
		config, err := m.AgentConfigJSON(ctx, c.ID)
		if err != nil {
			return err
		}
		return c.print(term, string(config), map[string]any{"id": c.ID, "config": config})
	})
}

type agentSetCommand struct {
	databaseSettings `embed:""`
	outputSettings   `embed:""`
	ID               string `arg:"" help:"The agent's id."`
	File             string `arg:"" type:"existingfile" help:"The configuration, as JSON."`
}

// Validate refuses a missing or malformed database URL.
func (c *agentSetCommand) Validate() error { return c.validate() }

// Run stores a configuration in place of an earlier one.
func (c *agentSetCommand) Run(ctx context.Context, term terminal) error {
	config, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	return c.withMemory(ctx, nil, func(m *recall.Memory) error {
		if err := m.SaveAgent(ctx, c.ID, config); err != nil {
			return fmt.Errorf("%s: %w", c.File, err)
		}
		return c.print(term, "Stored.", map[string]any{"id": c.ID, "config": json.RawMessage(config)})
	})
}

type agentDeleteCommand struct {
	databaseSettings `embed:""`
	outputSettings   `embed:""`
	ID               string `arg:"" help:"The agent's id."`
}

// Validate refuses a missing or malformed database URL.
func (c *agentDeleteCommand) Validate() error { return c.validate() }

// Run removes a configuration.
func (c *agentDeleteCommand) Run(ctx context.Context, term terminal) error {
	return c.withMemory(ctx, nil, func(m *recall.Memory) error {
		if err := m.DeleteAgent(ctx, c.ID); err != nil {
			return err
		}
		return c.print(term, "Deleted.", map[string]any{"deleted": c.ID})
	})
}

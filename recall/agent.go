package recall

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/pgrecall/pgrecall/dbgen"
)

// Agent is an agent with the configuration that is stored for it.
type Agent struct {
	ID string
	// Stored is the configuration as it was given.
	Stored json.RawMessage
}

// defaultLastMessages is what an agent's recall gives of the newest messages.
const defaultLastMessages = 10

// AgentConfig gives the configuration of an agent: what is stored for it, and the
// defaults for what is not.
func (m *Memory) AgentConfig(ctx context.Context, id string) (Config, error) {
	stored, err := m.storedConfig(ctx, id)
	if err != nil || stored == nil {
		return m.defaultConfig(), err
	}
	config, err := m.ReadConfig("config", stored)
	return m.defaultConfig().With(config), err
}

// storedConfig gives what is stored for an agent; nil for nothing, or no agent.
func (m *Memory) storedConfig(ctx context.Context, id string) (json.RawMessage, error) {
	c := m.check()
	c.id("agentId", id)
	if err := c.err(); err != nil || id == "" {
		return nil, err
	}
	stored, err := m.queries.AgentGet(ctx, m.db, id)
	if isNoRows(err) {
		return nil, nil
	}
	return stored, databaseError(err)
}

func (m *Memory) defaultConfig() Config {
	lastMessages := defaultLastMessages
	return Config{
		LastMessages:   &lastMessages,
		SemanticRecall: &SemanticRecall{},
		WorkingMemory:  &WorkingMemoryConfig{},
		GenerateTitle:  &TitleConfig{Off: true},
		Retention:      &Retention{},
	}
}

// AgentConfigJSON gives the configuration of an agent as Mastra's clients read it:
// what is stored, as it was given, and the defaults for what is not.
func (m *Memory) AgentConfigJSON(ctx context.Context, id string) (json.RawMessage, error) {
	stored, err := m.storedConfig(ctx, id)
	if err != nil {
		return nil, err
	}
	semanticRecall := `{"topK":4,"messageRange":1,"scope":"resource"}`
	if m.embedder == nil {
		semanticRecall = `false`
	}
	config := members(stored)
	if config == nil {
		config = make(map[string]json.RawMessage)
	}
	for name, value := range map[string]string{
		"lastMessages":        `10`,
		"semanticRecall":      semanticRecall,
		"generateTitle":       `false`,
		"workingMemory":       `{"enabled":false}`,
		"observationalMemory": `{"enabled":false}`,
	} {
		if _, given := config[name]; !given && (name != "generateTitle" || config["threads"] == nil) {
			config[name] = json.RawMessage(value)
		}
	}
	return json.Marshal(config)
}

// SaveAgent stores the configuration of an agent in place of an earlier one.
func (m *Memory) SaveAgent(ctx context.Context, id string, config json.RawMessage) error {
	c := m.check()
	c.requiredID("agentId", id)
	if err := c.err(); err != nil {
		return err
	}
	read, err := m.ReadConfig("config", config)
	if err != nil {
		return err
	}
	if err := m.checkConfig("config", read); err != nil {
		return err
	}
	return m.operate(ctx, func(tx pgx.Tx) error {
		return m.queries.AgentSave(ctx, tx, dbgen.AgentSaveParams{ID: id, Config: config})
	})
}

// checkConfig checks what a configuration means, before it is stored for calls that
// would fail for it.
func (m *Memory) checkConfig(field string, config Config) error {
	c := m.check()
	if config.LastMessages != nil {
		c.between(joinField(field, "lastMessages"), *config.LastMessages, 0, c.limits.PerPage)
	}
	if recall := config.SemanticRecall; recall != nil && !recall.Off {
		s := recall.Search
		c.search(joinField(field, "semanticRecall"), &s)
		c.predicate(joinField(field, "semanticRecall.filter"), s.Filter, nil)
	}
	if config.WorkingMemory != nil && len(config.WorkingMemory.Schema) > 0 {
		c.schema(joinField(field, "workingMemory.schema"), config.WorkingMemory.Schema)
	}
	return c.err()
}

// Agents lists the agents that have a stored configuration, by id.
func (m *Memory) Agents(ctx context.Context) ([]Agent, error) {
	rows, err := m.queries.AgentList(ctx, m.db)
	agents := make([]Agent, len(rows))
	for i, row := range rows {
		agents[i] = Agent{ID: row.ID, Stored: row.Config}
	}
	return agents, databaseError(err)
}

// DeleteAgent removes what is stored for an agent, which has the defaults then.
// CodeNotFound when nothing is.
func (m *Memory) DeleteAgent(ctx context.Context, id string) error {
	c := m.check()
	c.requiredID("agentId", id)
	if err := c.err(); err != nil {
		return err
	}
	return m.operate(ctx, func(tx pgx.Tx) error {
		n, err := m.queries.AgentDelete(ctx, tx, id)
		if err == nil && n == 0 {
			return errorf(CodeNotFound, "Agent not found")
		}
		return err
	})
}

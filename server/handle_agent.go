package server

import (
	"encoding/json"

	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
)

// status says that agents have a memory here: what Mastra's clients look for.
func (a api) status(c echo.Context) error {
	if err := a.readQuery(c).faults.err(); err != nil {
		return err
	}
	return respond(c, []byte(`{"result":true,"memoryType":"local"}`))
}

func (a api) getConfig(c echo.Context) error {
	q := a.readQuery(c)
	agent := q.key(agentIDParam)
	if err := q.faults.err(); err != nil {
		return err
	}
	return answerConfig(c)(a.memory.AgentConfigJSON(c.Request().Context(), agent))
}

func (a api) putConfig(c echo.Context) error {
	q := a.readQuery(c)
	if err := q.faults.err(); err != nil {
		return err
	}
	body, f, err := a.readBody(c)
	if err != nil {
		return err
	}
	body.only("config")
	body.must("config")
	config := body.rawObject("config")
	if err := f.err(); err != nil {
		return err
	}
	agent := q.mustKey(agentIDParam)
	if err := q.faults.err(); err != nil {
		return err
	}
	if err := a.memory.SaveAgent(c.Request().Context(), agent, config); err != nil {
		return err
	}
	return answerConfig(c)(a.memory.AgentConfigJSON(c.Request().Context(), agent))
}

// answerConfig writes the configuration of an agent.
func answerConfig(c echo.Context) func(json.RawMessage, error) error {
	return func(config json.RawMessage, err error) error {
		if err != nil {
			return err
		}
		return respond(c, append(append([]byte(`{"config":`), config...), '}'))
	}
}

// configOf gives what holds for a call: its own configuration, which is in a
// field, over that of its agent.
func (a api) configOf(c echo.Context, agent, field string, ofCall json.RawMessage) (recall.Config, error) {
	own, err := a.memory.ReadConfig(field, ofCall)
	if err != nil || agent == "" {
		return own, err
	}
	config, err := a.memory.AgentConfig(c.Request().Context(), agent)
	return config.With(own), err
}

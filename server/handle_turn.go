package server

import (
	"context"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/format"
)

// before gives the handler of a processor on input: it answers with what is put
// before a turn's messages.
func before(recalled func(*recall.Memory, context.Context, recall.Turn) (recall.Recalled, error)) handler {
	return func(a api, c echo.Context) error {
		turn, inFormat, err := a.readTurn(c)
		if err != nil {
			return err
		}
		found, err := recalled(a.memory, c.Request().Context(), turn)
		if err != nil {
			return inTerms(err, map[string]string{"vectorSearchString": "messages", "threadConfig.": "config."})
		}
		answer := appendMessages([]byte(`{"messages":`), found.Messages, inFormat, appendMessage)
		if found.Degraded {
			answer = append(answer, `,"degraded":true`...)
		}
		return respond(c, append(answer, '}'))
	}
}

// saveTurn is every processor on output.
func (a api) saveTurn(c echo.Context) error {
	turn, inFormat, err := a.readTurn(c)
	if err != nil {
		return err
	}
	saved, err := a.memory.SaveTurn(c.Request().Context(), turn)
	if err != nil {
		return err
	}
	return respond(c, append(appendMessages([]byte(`{"messages":`), saved, inFormat, appendMessageAsGiven), '}'))
}

// readTurn reads a turn, and the format of the messages in the answer.
func (a api) readTurn(c echo.Context) (recall.Turn, format.Format, error) {
	q := a.readQuery(c)
	inFormat, agent := q.format(), q.key(agentIDParam)
	if err := q.faults.err(); err != nil {
		return recall.Turn{}, "", err
	}
	body, f, err := a.readBody(c)
	if err != nil {
		return recall.Turn{}, "", err
	}
	body.only(agentIDParam, "messages", "threadId", "resourceId", "config", "format")
	inFormat = body.formatOr(inFormat)
	body.must("threadId")
	turn := recall.Turn{ThreadID: body.key("threadId"), ResourceID: body.key("resourceId"), AgentID: body.agentOr(agent)}
	for _, o := range body.objects("messages") {
		turn.Messages = append(turn.Messages, readNewMessage(o))
	}
	body.object("config")
	if err := f.err(); err != nil {
		return recall.Turn{}, "", err
	}
	turn.Config, err = a.configOf(c, turn.AgentID, "config", body.raw("config"))
	return turn, inFormat, err
}

// context gives what a model is to see of a conversation.
func (a api) context(c echo.Context) error {
	q := a.readQuery(c)
	inFormat, agent := q.format(), q.key(agentIDParam)
	if err := q.faults.err(); err != nil {
		return err
	}
	body, f, err := a.readBody(c)
	if err != nil {
		return err
	}
	body.only(agentIDParam, "threadId", "resourceId", "query", "lastMessages", "semanticRecall", "workingMemory", "maxTokens", "keepToolPairs",
		"format")
	inFormat, agent = body.formatOr(inFormat), body.agentOr(agent)
	body.must("threadId")
	request := recall.ContextRequest{
		ThreadID: body.key("threadId"), ResourceID: body.key("resourceId"), Query: body.key("query"),
		SplitToolPairs: !body.flagOr("keepToolPairs", true),
	}
	if most := body.count("maxTokens"); most != nil {
		request.MaxTokens = *most
		if *most == 0 {
			body.fault("maxTokens", "must be at least 1")
		}
	}
	if err := f.err(); err != nil {
		return err
	}
	request.Config, err = a.configOf(c, agent, "", body.pick("lastMessages", "semanticRecall", "workingMemory"))
	if err != nil {
		return err
	}
	found, err := a.memory.Context(c.Request().Context(), request)
	if err != nil {
		return inTerms(err, map[string]string{"vectorSearchString": "query", "threadConfig.": ""})
	}
	answer := appendMessages([]byte(`{"messages":`), found.Messages, inFormat, appendMessage)
	answer = strconv.AppendInt(append(answer, `,"tokens":`...), int64(found.Tokens), 10)
	answer = appendText(append(answer, `,"tokenizer":`...), recall.Tokenizer)
	answer = appendArray(append(answer, `,"dropped":`...), found.Dropped, appendText)
	if found.Degraded {
		answer = append(answer, `,"degraded":true`...)
	}
	return respond(c, append(answer, '}'))
}

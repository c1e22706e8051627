package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
)

func (a api) saveMessages(c echo.Context) error {
	q := a.readQuery(c)
	format := q.format()
	if err := q.faults.err(); err != nil {
		return err
	}
	body, f, err := a.readBody(c)
	if err != nil {
		return err
	}
	body.must("messages")
	var messages []recall.NewMessage
	for _, o := range body.objects("messages") {
		messages = append(messages, readNewMessage(o))
	}
	createThreads, agent := body.flag("createThread"), body.agentOr(q.text(agentIDParam))
	if err := f.err(); err != nil {
		return err
	}
	saved, err := a.memory.SaveMessages(c.Request().Context(), messages, createThreads, recall.ForAgent(agent))
	if err != nil {
		return err
	}
	return respond(c, append(appendMessages([]byte(`{"messages":`), saved, format, appendMessageAsGiven), '}'))
}

// embedded reads the query of a save, and where it says so answers the save once its
// messages have their vectors. By then the save is committed, which those wait for
// who make the vectors; it may be an earlier one, whose answer is given again.
func embedded(save handler) handler {
	return func(a api, c echo.Context) error {
		q := a.readQuery(c)
		wait := q.values.Has("wait")
		switch {
		case wait && q.text("wait") != "embedded":
			q.faults.add("wait", "want embedded")
		case wait && !a.memory.HasEmbedder():
			q.faults.add("wait", "needs an embedder, and this server has none")
		case wait && q.format() != "" && !q.format().ForUI():
			q.faults.add("wait", "needs the ids of messages, which this format has not")
		}
		if err := q.faults.err(); err != nil {
			return err
		}
		if !wait {
			return save(a, c)
		}
		answer, err := answerOf(a, c, save)
		if err != nil {
			return err
		}
		return sendAnswer(c, a.awaited(c.Request().Context(), answer))
	}
}

// waitMargin is what is left of a request's time to answer that the wait was in
// vain.
const waitMargin = 500 * time.Millisecond

// awaited adds to the answer to a save whether its messages have their vectors. What
// is saved is saved: where they do not get them in time, or not at all for now, the
// answer becomes a 202 that says so.
func (a api) awaited(ctx context.Context, answer recall.Answer) recall.Answer {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-waitMargin))
		defer cancel()
	}
	end := `,"embedded":true}`
	if embedded, err := a.memory.WaitEmbedded(ctx, savedIDs(answer.Body)); err != nil || !embedded {
		answer.Status, end = http.StatusAccepted, `,"embedded":false}`
	}
	answer.Body = append(bytes.TrimSuffix(answer.Body, []byte{'}'}), end...)
	return answer
}

// savedIDs gives the ids of the messages in the answer to a save.
func savedIDs(answer []byte) []string {
	var f faults
	var ids []string
	for _, message := range f.readObject("", answer).objects("messages") {
		ids = append(ids, message.text("id"))
	}
	return ids
}

func readNewMessage(o object) recall.NewMessage {
	o.must("role")
	o.must("content")
	message := recall.NewMessage{
		ID:         o.key("id"),
		ThreadID:   o.text("threadId"),
		ResourceID: o.text("resourceId"),
		Role:       o.text("role"),
		Type:       o.text("type"),
		Content:    o.content("content"),
		Recalled:   o.source(),
	}
	if createdAt := o.date("createdAt"); createdAt != nil {
		message.CreatedAt = *createdAt
	}
	return message
}

// source says whether a message is marked as recalled. Others' marks are theirs.
func (o object) source() bool { return string(o.raw("source")) == `"memory"` }

// content reads what a message can have for content.
func (o object) content(name string) json.RawMessage {
	raw := o.raw(name)
	if raw == nil {
		return nil
	}
	if kind := kindOf(raw); kind != "an object" && kind != "a string" {
		o.fault(name, "want an object or a string, got "+kind)
		return nil
	}
	return raw
}

func (a api) updateMessages(c echo.Context) error {
	q := a.readQuery(c)
	owner, format := q.key("resourceId"), q.format()
	if err := q.faults.err(); err != nil {
		return err
	}
	body, f, err := a.readBody(c)
	if err != nil {
		return err
	}
	body.must("messages")
	var updates []recall.MessageUpdate
	for _, o := range body.objects("messages") {
		o.must("id")
		updates = append(updates, recall.MessageUpdate{
			ID:      o.key("id"),
			Role:    o.key("role"),
			Type:    o.key("type"),
			Content: o.rawObject("content"),
		})
	}
	if err := f.err(); err != nil {
		return err
	}
	updated, err := a.memory.UpdateMessages(c.Request().Context(), updates, owner)
	if err != nil {
		return err
	}
	return respond(c, append(appendMessages([]byte(`{"messages":`), updated, format, appendMessage), '}'))
}

func (a api) deleteMessages(c echo.Context) error {
	owner, err := a.owner(c)
	if err != nil {
		return err
	}
	body, f, err := a.readBody(c)
	if err != nil {
		return err
	}
	ids := readMessageIDs(body)
	if err := f.err(); err != nil {
		return err
	}
	return answerDeleted(c)(a.memory.DeleteMessages(c.Request().Context(), ids, owner))
}

// readMessageIDs reads messageIds: a string, an object with id, or an array of
// either.
func readMessageIDs(body object) []string {
	const name = "messageIds"
	body.must(name)
	raw := body.raw(name)
	if raw == nil {
		return nil
	}
	if kindOf(raw) != "an array" {
		return []string{body.faults.readMessageID(name, raw)}
	}
	ids := []string{}
	for i, element := range body.array(name) {
		ids = append(ids, body.faults.readMessageID(indexed(name, i), element))
	}
	return ids
}

func (f *faults) readMessageID(path string, raw json.RawMessage) string {
	switch kind := kindOf(raw); kind {
	case "a string":
		return f.readText(path, raw)
	case "an object":
		o := f.readObject(path, raw)
		o.must("id")
		return o.text("id")
	default:
		f.add(path, "want an id or an object with one, got "+kind)
		return ""
	}
}

func (a api) deleteThreadMessages(c echo.Context) error {
	id, owner, err := a.threadAndOwner(c)
	if err != nil {
		return err
	}
	return answerDeleted(c)(a.memory.DeleteThreadMessages(c.Request().Context(), id, owner))
}

// answerDeleted writes how many messages a method deleted.
func answerDeleted(c echo.Context) func(int64, error) error {
	return func(count int64, err error) error {
		if err != nil {
			return err
		}
		noun := " messages"
		if count == 1 {
			noun = " message"
		}
		text := strconv.FormatInt(count, 10) + noun + " deleted successfully"
		return respond(c, append(appendText([]byte(`{"success":true,"message":`), text), '}'))
	}
}

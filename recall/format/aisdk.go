package format

import (
	"encoding/json"
	"slices"
	"strings"
)

// uiMessage is a message of the AI SDK, of which signals can still become part.
type uiMessage struct {
	of    int
	role  string
	rest  object // all members but role and parts
	parts []json.RawMessage
	// signal is true of a message that is nothing but a signal.
	signal bool
}

// toAISDK converts turns, but for those that are not for people.
func toAISDK(turns []turn, convert func(turn) uiMessage) []Message {
	var converted []uiMessage
	for _, t := range turns {
		if !t.isReminder() {
			converted = append(converted, convert(t))
		}
	}
	messages := []Message{}
	for _, m := range joinSignals(converted) {
		whole := object{}.with("id", m.rest.raw("id")).with("role", quote(m.role))
		for _, member := range m.rest {
			whole = whole.with(member.name, member.value)
		}
		messages = append(messages, Message{Of: m.of, JSON: whole.with("parts", array(m.parts)).json()})
	}
	return messages
}

// joinSignals moves signals to the assistant's message before them or else after
// them. Between others, a signal is a message of the assistant's.
func joinSignals(messages []uiMessage) []uiMessage {
	var joined []uiMessage
	for i, m := range messages {
		last := len(joined) - 1
		switch {
		case !m.signal:
			joined = append(joined, m)
		case last >= 0 && joined[last].role == roleAssistant:
			joined[last].parts = slices.Concat(joined[last].parts, m.parts)
		case i+1 < len(messages) && messages[i+1].role == roleAssistant:
			messages[i+1].parts = slices.Concat(m.parts, messages[i+1].parts)
		default:
			m.role = roleAssistant
			joined = append(joined, m)
		}
	}
	return joined
}

// isDataOnly reports whether all parts are data: such a message of the role
// "system" is a signal to the reference too.
func isDataOnly(parts []part) bool {
	return len(parts) > 0 && !slices.ContainsFunc(parts, func(p part) bool { return !strings.HasPrefix(p.kind, "data-") })
}

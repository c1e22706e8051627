package recall

import (
	"encoding/json"
	"strings"
)

// Text is what the message says: its text parts, one a line. Empty where it has
// none.
func (m Message) Text() string {
	return strings.Join(texts(members(m.Content)), "\n")
}

// embeddedText is what is embedded of a message: the texts of a user's or
// assistant's turn, with the speaker's name before them where content.metadata
// has one. It is empty where there is nothing to embed.
func embeddedText(role string, content json.RawMessage) string {
	if role != "user" && role != "assistant" {
		return ""
	}
	read := members(content)
	said := texts(read)
	for i := range said {
		said[i] = withoutRecalled(said[i])
	}
	text := strings.Join(said, "\n")
	if strings.TrimSpace(text) == "" {
		return ""
	}
	if name, ok := jsonText(members(read["metadata"])["name"]); ok && name != "" {
		return name + ": " + text
	}
	return text
}

// The marks around what is recalled from other conversations into a message.
const (
	recalledBegins = "<remembered_from_other_conversation>"
	recalledEnds   = "<end_remembered_from_other_conversation>"
)

// withoutRecalled leaves out of a text what was recalled into it, so that it is not
// found again as if it had been said. The SQL function said_texts does the same.
func withoutRecalled(text string) string {
	var said strings.Builder
	for {
		before, rest, found := strings.Cut(text, recalledBegins)
		said.WriteString(before)
		if !found {
			return said.String()
		}
		_, text, _ = strings.Cut(rest, recalledEnds)
	}
}

// texts gives the texts of a message: of its text parts or, where it has none, of
// a content that is a plain string. The SQL function message_texts gives the same,
// but for what withoutRecalled leaves out.
func texts(content map[string]json.RawMessage) []string {
	var parts []json.RawMessage
	if json.Unmarshal(content["parts"], &parts) != nil {
		parts = nil
	}
	var found []string
	for _, raw := range parts {
		part := members(raw)
		kind, _ := jsonText(part["type"])
		if text, ok := jsonText(part["text"]); ok && kind == "text" {
			found = append(found, text)
		}
	}
	if text, ok := jsonText(content["content"]); ok && found == nil {
		found = append(found, text)
	}
	return found
}

// members splits an object; nil for anything else. A map keeps the case of keys
// apart, which a struct would not.
func members(object json.RawMessage) map[string]json.RawMessage {
	var split map[string]json.RawMessage
	if json.Unmarshal(object, &split) != nil {
		return nil
	}
	return split
}

// jsonText reads a string, and says whether it is one.
func jsonText(value json.RawMessage) (text string, ok bool) {
	if len(value) == 0 || jsonKind(value) != '"' {
		return "", false
	}
	return text, json.Unmarshal(value, &text) == nil
}

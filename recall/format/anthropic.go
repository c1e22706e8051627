package format

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

func toAnthropic(turns []turn) []Message {
	c := readChat(turns)
	messages := []Message{}
	add := func(t turn, role string, blocks []json.RawMessage) {
		if len(blocks) > 0 {
			m := object{{"role", quote(role)}, {"content", array(blocks)}}
			messages = append(messages, Message{Of: t.index, JSON: m.json()})
		}
	}
	for _, t := range turns {
		if t.role() != roleAssistant {
			add(t, t.role(), t.blocks(anthropicText, anthropicFile))
			continue
		}
		for _, s := range c.steps(t) {
			add(t, roleAssistant, s.anthropic())
			add(t, roleUser, s.anthropicResults())
		}
	}
	return messages
}

func (s step) anthropic() (blocks []json.RawMessage) {
	for _, text := range s.texts {
		blocks = append(blocks, anthropicText(text).json())
	}
	for _, call := range s.calls {
		input := call.args
		if kindOf(input) != '{' { // the API takes nothing else
			input = object{{"input", input}}.json()
		}
		use := typed("tool_use").with("id", quote(call.id)).with("name", quote(call.name)).with("input", input)
		blocks = append(blocks, use.json())
	}
	return blocks
}

func (s step) anthropicResults() (blocks []json.RawMessage) {
	for _, call := range s.calls {
		if call.waits() {
			continue
		}
		result := typed("tool_result").with("tool_use_id", quote(call.id)).with("content", quote(call.output()))
		if call.state == stateError {
			result = result.with("is_error", json.RawMessage(`true`))
		}
		blocks = append(blocks, result.json())
	}
	return blocks
}

func anthropicText(text string) object { return typed("text").with("text", quote(text)) }

// anthropicFile gives an image, a PDF or a plain text, which are what the API
// takes, and mentions another file.
func anthropicFile(f file) object {
	data, here := f.base64()
	kind := "document"
	if f.isImage() {
		kind = "image"
	}
	taken := kind == "image" || f.media == "application/pdf"
	text, err := base64.StdEncoding.DecodeString(data)
	var source object
	switch {
	case f.hasID():
		source = typed("file").with("file_id", quote(f.data))
	case taken && here:
		source = typed("base64").with("media_type", quote(f.withMedia("image/png").media)).with("data", quote(data))
	case taken && strings.HasPrefix(f.data, "http"):
		source = typed("url").with("url", quote(f.data))
	case here && f.media == "text/plain" && err == nil:
		source = typed("text").with("media_type", quote(f.media)).with("data", quote(string(text)))
	default:
		return anthropicText(f.mention())
	}
	return typed(kind).with("source", source.json())
}

package format

import (
	"encoding/json"
	"strings"
)

func toOpenAI(turns []turn) []Message {
	c := readChat(turns)
	messages := []Message{}
	for _, t := range turns {
		for _, m := range c.openAI(t) {
			messages = append(messages, Message{Of: t.index, JSON: m.json()})
		}
	}
	return messages
}

func (c chat) openAI(t turn) []object {
	if t.role() != roleAssistant {
		blocks := t.blocks(openAIText, openAIFile)
		if len(blocks) == 0 {
			return nil
		}
		return []object{{{"role", quote(t.role())}, {"content", openAIContent(blocks)}}}
	}
	var messages []object
	for _, s := range c.steps(t) {
		messages = append(messages, s.openAI())
		for _, call := range s.calls {
			if !call.waits() {
				messages = append(messages, object{
					{"role", quote("tool")}, {"tool_call_id", quote(call.id)}, {"content", quote(call.output())},
				})
			}
		}
	}
	return messages
}

// openAIContent gives one text as a string, which every server takes.
func openAIContent(blocks []json.RawMessage) json.RawMessage {
	if only := readObject(blocks[0]); len(blocks) == 1 && only.text("type") == "text" {
		return only.raw("text")
	}
	return array(blocks)
}

func (s step) openAI() object {
	message := object{{"role", quote(roleAssistant)}, {"content", json.RawMessage(`null`)}}
	if len(s.texts) > 0 {
		message = message.with("content", quote(strings.Join(s.texts, "\n")))
	}
	var calls []json.RawMessage
	for _, call := range s.calls {
		function := object{{"name", quote(call.name)}, {"arguments", quote(plain(call.args))}}
		calls = append(calls, object{{"id", quote(call.id)}, {"type", quote("function")}, {"function", function.json()}}.json())
	}
	if calls != nil {
		message = message.with("tool_calls", array(calls))
	}
	return message
}

func openAIText(text string) object { return typed("text").with("text", quote(text)) }

// openAIAudio are the media types of the two audio formats that the API takes.
var openAIAudio = map[string]string{
	"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3",
}

func openAIFile(f file) object {
	data, here := f.base64()
	audio := openAIAudio[f.media]
	switch {
	case f.hasID():
		return openAINested("file", object{{"file_id", quote(f.data)}})
	case f.isImage():
		return openAINested("image_url", object{{"url", quote(f.withMedia("image/png").url())}})
	case here && audio != "":
		return openAINested("input_audio", object{{"data", quote(data)}, {"format", quote(audio)}})
	case here:
		name := f.name
		if name == "" {
			name = "file"
		}
		return openAINested("file", object{{"filename", quote(name)}, {"file_data", quote(f.url())}})
	default:
		return openAIText(f.mention())
	}
}

func openAINested(kind string, inner object) object { return typed(kind).with(kind, inner.json()) }

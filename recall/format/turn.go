package format

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/strictjson"
)

// Types of stored parts.
const (
	kindText       = "text"
	kindReasoning  = "reasoning"
	kindFile       = "file"
	kindImage      = "image"
	kindStepStart  = "step-start"
	kindInvocation = "tool-invocation"
)

// Roles.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
	roleSystem    = "system"
	roleSignal    = "signal" // Mastra's, for what an agent is told by neither
)

// timeLayout is that of JavaScript's Date.toISOString.
const timeLayout = "2006-01-02T15:04:05.000Z"

// turn is a stored message, read.
type turn struct {
	index    int
	message  recall.Message
	content  object
	metadata object
	// parts are those of content; before and after come those that older messages
	// keep beside them.
	before, parts, after []part
}

// part is a stored part of a message.
type part struct {
	kind   string
	stored object
	call   *tool // nil if the part is no tool call
	file   *file // nil if the part is no file
	// beside is true of a part that was read from beside the parts.
	beside bool
}

func readTurn(index int, message recall.Message) turn {
	t := turn{index: index, message: message}
	// What the memory gives is a valid object. A caller's own message may be otherwise.
	switch valid := json.Valid(message.Content); {
	case valid && kindOf(message.Content) == '"':
		t.content = object{{"content", message.Content}}
	case valid:
		t.content = readObject(message.Content)
	}
	t.metadata = t.content.at("metadata")
	for _, stored := range readObjects(t.content.raw("parts")) {
		if p := readPart(stored); p.isSound() {
			t.parts = append(t.parts, p)
		}
	}
	t.before = slices.Concat(t.callsBeside(), t.reasoningBeside(), t.filesBeside())
	t.after = t.textBeside()
	return t
}

func readPart(stored object) part {
	p := part{kind: stored.text("type"), stored: stored}
	p.call = readCall(p.kind, stored)
	p.file = readFile(p.kind, stored)
	return p
}

func readPartBeside(stored object) part {
	p := readPart(stored)
	p.beside = true
	return p
}

// isSound refuses what has no type, or is a text without text.
func (p part) isSound() bool {
	if p.kind == kindText {
		return kindOf(p.stored.raw("text")) == '"'
	}
	return p.kind != ""
}

// all gives the parts with those beside them.
func (t turn) all() []part { return slices.Concat(t.before, t.parts, t.after) }

func (t turn) has(is func(part) bool) bool { return slices.ContainsFunc(t.parts, is) }

func (t turn) callsBeside() (calls []part) {
	if t.has(func(p part) bool { return p.call != nil }) {
		return nil
	}
	for _, invocation := range readObjects(t.content.raw("toolInvocations")) {
		calls = append(calls, readPartBeside(typed(kindInvocation).with("toolInvocation", invocation.json())))
	}
	return calls
}

func (t turn) reasoningBeside() []part {
	text := t.content.text("reasoning")
	if text == "" || t.has(func(p part) bool { return p.kind == kindReasoning }) {
		return nil
	}
	return []part{readPartBeside(typed(kindReasoning).withText("reasoning", text))}
}

// filesBeside gives the attachments that no part has: Mastra keeps some files in
// both places. The reference gives no attachment where any part is a file.
func (t turn) filesBeside() (files []part) {
	held := make(map[string]bool)
	for _, p := range t.parts {
		if p.file != nil {
			held[p.file.data], held[p.file.url()] = true, true
		}
	}
	for _, attachment := range readObjects(t.content.raw("experimental_attachments")) {
		url := attachment.text("url")
		if url == "" || held[url] {
			continue
		}
		files = append(files, readPartBeside(typed(kindFile).withText("data", url).
			withText("mimeType", attachment.text("contentType")).withText("filename", attachment.text("name"))))
	}
	return files
}

// textBeside gives content.content where the parts have no text. The reference
// leaves it out beside a step-start or an unknown part, and so loses it.
func (t turn) textBeside() []part {
	text := t.plainText()
	if text == "" || t.has(func(p part) bool { return p.kind == kindText && p.stored.text("text") != "" }) {
		return nil
	}
	return []part{readPartBeside(typed(kindText).withText("text", text))}
}

// plainText gives content.content: a text, or parts of which the texts count.
func (t turn) plainText() string {
	content := t.content.raw("content")
	if text, ok := strictjson.Text(content); ok {
		return text
	}
	var texts []string
	for _, stored := range readObjects(content) {
		if text := stored.text("text"); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// role gives the role that formats know for the message's. The reference keeps
// "tool" and others, which the AI SDK then refuses.
func (t turn) role() string {
	switch role := t.message.Role; role {
	case roleUser, roleSystem:
		return role
	case "developer":
		return roleSystem
	case roleSignal:
		if t.isUserSignal() {
			return roleUser
		}
		return roleSystem
	default:
		return roleAssistant
	}
}

func (t turn) createdAt() json.RawMessage {
	return quote(t.message.CreatedAt.UTC().Format(timeLayout))
}

// isReminder reports whether the message is a system reminder of Mastra's, which
// it puts before a model in the user's name. The reference takes any text of a
// user with the tag in it for one; here the text must begin with it, as it does
// where Mastra writes it, so that people can write about the tag.
func (t turn) isReminder() bool {
	for _, name := range []string{"systemReminder", "dynamicAgentsMdReminder"} {
		if mark := t.metadata.given(name); mark != nil && kindOf(mark) != 'f' {
			return true
		}
	}
	return t.role() == roleUser && strings.HasPrefix(t.message.Text(), "<system-reminder")
}

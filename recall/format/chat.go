package format

import (
	"encoding/json"
	"strings"
)

// chat knows of the tool calls in all messages what a model must be told of
// each: a result stands behind its call at once, or the model's API refuses all.
type chat struct {
	turns    []turn
	args     map[string]json.RawMessage // of each call that has any
	answered map[string]bool            // calls with a result, be it in another message
}

func readChat(turns []turn) chat {
	c := chat{turns: turns, args: make(map[string]json.RawMessage), answered: make(map[string]bool)}
	for _, t := range turns {
		for _, p := range t.all() {
			if p.call == nil {
				continue
			}
			c.answered[p.call.id] = c.answered[p.call.id] || !p.call.waits()
			if len(readObject(p.call.args)) > 0 {
				c.args[p.call.id] = p.call.args
			}
		}
	}
	return c
}

// step is what an assistant says and the tools it then calls.
type step struct {
	texts []string
	calls []tool
}

// steps splits an assistant's message: what it says after calls it says knowing
// their results.
func (c chat) steps(t turn) []step {
	var steps []step
	var current step
	end := func() {
		if len(current.texts)+len(current.calls) > 0 {
			steps = append(steps, current)
		}
		current = step{}
	}
	for _, p := range t.all() {
		text := p.text()
		if p.kind == kindStepStart || text != "" && len(current.calls) > 0 {
			end()
		}
		if text != "" {
			current.texts = append(current.texts, text)
		}
		if p.call != nil && c.tells(t, *p.call) {
			current.calls = append(current.calls, c.whole(*p.call))
		}
	}
	end()
	return steps
}

// tells reports whether a model is told of a call. One that waits is told where
// its result is or, without one, at the end, for the caller to answer.
func (c chat) tells(t turn, call tool) bool {
	if !call.waits() {
		return true
	}
	return call.state != statePartial && !c.answered[call.id] && t.index == len(c.turns)-1
}

// whole gives a call with arguments, where its message or another has them: a
// result in a message of its own comes without.
func (c chat) whole(call tool) tool {
	if args := c.args[call.id]; len(readObject(call.args)) == 0 && args != nil {
		call.args = args
	}
	if kindOf(call.args) == 'n' || call.args == nil {
		call.args = json.RawMessage(`{}`)
	}
	return call
}

// output gives what a model is told of the result of a call.
func (c tool) output() string {
	switch c.state {
	case stateError:
		return c.errorText
	case stateDenied:
		return plain(c.denial())
	}
	// An application can have told the model less than it stored.
	if output := c.metadata().at("mastra", "modelOutput"); output.raw("value") != nil {
		return plain(output.raw("value"))
	}
	return plain(c.result)
}

// plain gives a string's text, and any other value as JSON.
func plain(value json.RawMessage) string {
	if kindOf(value) == '"' {
		return object{{"text", value}}.text("text")
	}
	return string(value)
}

// text gives what a text part says; empty for another, and for a blank text,
// which APIs refuse.
func (p part) text() string {
	text := p.stored.text("text")
	if p.kind != kindText || strings.TrimSpace(text) == "" {
		return ""
	}
	return text
}

// blocks gives what a user says and sends, each part converted.
func (t turn) blocks(text func(string) object, sent func(file) object) []json.RawMessage {
	var blocks []json.RawMessage
	for _, p := range t.all() {
		switch said := p.text(); {
		case said != "":
			blocks = append(blocks, text(said).json())
		case p.file != nil:
			blocks = append(blocks, sent(*p.file).json())
		}
	}
	return blocks
}

// mention names a file in a text, for an API that takes none of its kind.
func (f file) mention() string {
	if _, here := f.base64(); here {
		return strings.TrimSpace(f.name + " (" + f.media + ")")
	}
	if f.name != "" {
		return f.name + ": " + f.data
	}
	return f.data
}

func (f file) isImage() bool { return f.media == "" || strings.HasPrefix(f.media, "image/") }

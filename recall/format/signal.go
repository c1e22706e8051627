package format

import "encoding/json"

// Signals are messages that an agent gets from neither a person nor a model. In
// a UI, one that is not in a user's name is a data part of the assistant's
// message beside it.

func (t turn) signal() object { return t.metadata.at("signal") }

func (t turn) signalType() string {
	if kind := t.signal().text("type"); kind != "" {
		return kind
	}
	return t.message.Type
}

func (t turn) isUserSignal() bool {
	kind := t.signalType()
	return t.message.Role == roleSignal && (kind == "user" || kind == "user-message")
}

// isSignal reports whether the message is a signal that is not in a user's name.
func (t turn) isSignal() bool { return t.message.Role == roleSignal && !t.isUserSignal() }

func (t turn) signalPart() json.RawMessage {
	signal, kind := t.signal(), t.signalType()
	if kind == "" {
		kind = roleSignal
	}
	data := object{}.withText("id", t.message.ID).withText("id", signal.text("id")).
		withText("type", kind).withText("tagName", kind)
	if kind == "reactive" {
		data = data.withText("tagName", t.message.Type)
	}
	data = data.withText("tagName", signal.text("tagName")).
		with("contents", quote(t.message.Text())).with("contents", signal.raw("contents")).
		with("createdAt", t.createdAt()).withText("createdAt", signal.text("createdAt")).
		withText("acceptedAt", signal.text("acceptedAt"))
	for _, name := range []string{"attributes", "metadata"} {
		if len(signal.at(name)) > 0 {
			data = data.with(name, signal.raw(name))
		}
	}
	return typed("data-signal").with("data", data.json()).json()
}

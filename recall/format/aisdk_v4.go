package format

import (
	"encoding/json"
	"strconv"
)

func toAISDKv4(turns []turn) []Message { return toAISDK(turns, turn.v4) }

func (t turn) v4() uiMessage {
	attachments := t.v4Attachments()
	m := uiMessage{of: t.index, role: t.role(), rest: t.v4Rest(attachments), signal: t.isSignal()}
	if m.signal {
		m.parts = []json.RawMessage{t.signalPart()}
		return m
	}
	all, calls := t.all(), t.callsByID()
	m.signal = m.role == roleSystem && isDataOnly(all)
	for _, p := range all {
		if converted := p.v4(calls); converted != nil {
			m.parts = append(m.parts, converted.json())
		}
	}
	if m.parts == nil && len(attachments) > 0 {
		// The AI SDK leaves a message without parts out of what it sends.
		m.parts = []json.RawMessage{typed(kindText).with("text", quote("")).json()}
	}
	return m
}

// v4Rest gives an assistant's attachments, reasoning and annotations too, which
// the reference loses.
func (t turn) v4Rest(attachments []json.RawMessage) object {
	rest := object{{"id", quote(t.message.ID)}, {"content", quote(t.v4Content())}, {"createdAt", t.createdAt()}}
	if t.role() != roleAssistant || len(attachments) > 0 {
		rest = rest.with("experimental_attachments", array(attachments))
	}
	if t.role() == roleAssistant {
		rest = rest.withText("reasoning", t.content.text("reasoning")).with("toolInvocations", t.v4Results())
	}
	if annotations := t.content.raw("annotations"); kindOf(annotations) == '[' {
		rest = rest.with("annotations", annotations)
	}
	if t.metadata != nil {
		rest = rest.with("metadata", t.metadata.json())
	}
	return rest
}

// v4Content gives the plain text or, as the AI SDK has it, the last text part.
func (t turn) v4Content() string {
	if t.isSignal() {
		return ""
	}
	text := t.plainText()
	if text != "" {
		return text
	}
	for _, p := range t.parts {
		if p.kind == kindText {
			text = p.stored.text("text")
		}
	}
	return text
}

// v4Attachments gives the message's files, each once: Mastra keeps some both as an
// attachment and as a part, which the reference then gives twice.
func (t turn) v4Attachments() (attachments []json.RawMessage) {
	attached := make(map[string]bool)
	for _, attachment := range readObjects(t.content.raw("experimental_attachments")) {
		attachments = append(attachments, attachment.json())
		attached[attachment.text("url")] = true
	}
	for _, p := range t.parts {
		if p.kind != kindFile || p.file == nil || attached[p.file.url()] {
			continue
		}
		f := p.file.withMedia("application/octet-stream")
		attachment := object{}.withText("name", f.name).with("contentType", quote(f.media)).with("url", quote(f.url()))
		attachments = append(attachments, attachment.json())
	}
	return attachments
}

// v4Results gives the calls of toolInvocations that have a result; nil where
// there is no such list.
func (t turn) v4Results() json.RawMessage {
	stored := t.content.raw("toolInvocations")
	if kindOf(stored) != '[' {
		return nil
	}
	results, calls := []json.RawMessage{}, t.callsByID()
	for _, invocation := range readObjects(stored) {
		if invocation.text("state") != stateResult {
			continue
		}
		twin := calls[invocation.text("toolCallId")]
		if len(invocation.at("args")) == 0 && len(readObject(twin.args)) > 0 {
			invocation = invocation.with("args", twin.args)
		}
		results = append(results, v4Displayed(invocation, twin.metadata()).json())
	}
	return array(results)
}

// v4Displayed gives a call as people are to see it.
func v4Displayed(invocation, metadata object) object {
	invocation = invocation.with("args", displayed(metadata, invocation.raw("args"), phaseInput))
	if invocation.text("state") != stateResult {
		return invocation
	}
	return invocation.with("result", displayed(metadata, invocation.raw("result"), phaseOutput, phaseError))
}

// v4 gives the part; nil for what is elsewhere in the message.
func (p part) v4(calls map[string]firstCall) object {
	switch {
	case p.call != nil && p.beside:
		return p.call.v4(-1)
	case p.call != nil:
		return p.call.v4(calls[p.call.id].step)
	case p.kind == kindFile:
		return nil
	case p.kind == kindReasoning:
		return p.v4Reasoning()
	default:
		return p.stored
	}
}

// v4 gives a call that has come to its end: the AI SDK 4 refuses to send a
// message with another, and so the reference leaves them out.
func (c tool) v4(step int) object {
	invocation := v4Displayed(c.stored, c.metadata())
	switch c.state {
	case stateCall, statePartial:
		return nil
	case stateDenied:
		invocation = invocation.with("state", quote(stateResult)).with("result", c.denial())
	case stateError:
		invocation = invocation.with("state", quote(stateResult)).with("isError", json.RawMessage(`true`)).
			with("result", quote(c.errorText))
	}
	if step >= 0 && invocation.raw("step") == nil {
		invocation = invocation.with("step", strconv.AppendInt(nil, int64(step), 10))
	}
	return typed(kindInvocation).with("toolInvocation", invocation.json())
}

// firstCall is the first call of an id among the parts.
type firstCall struct {
	tool
	step int // that it is in, counted from 0; -1 where the parts tell no steps
}

func (t turn) callsByID() map[string]firstCall {
	calls, step := make(map[string]firstCall), -1
	for _, p := range t.parts {
		if p.kind == kindStepStart {
			step++
		}
		if p.call == nil {
			continue
		}
		if _, again := calls[p.call.id]; !again {
			calls[p.call.id] = firstCall{*p.call, step}
		}
	}
	return calls
}

// v4Reasoning names the text as the AI SDK 4 does.
func (p part) v4Reasoning() object {
	if p.stored.raw("reasoning") != nil && p.stored.raw("details") != nil {
		return p.stored
	}
	text, _ := p.reasoning()
	detail := typed(kindText).with("text", quote(text)).json()
	return p.stored.with("reasoning", quote(text)).with("details", array([]json.RawMessage{detail}))
}

package format

import (
	"encoding/json"
	"slices"
	"strings"
)

func toAISDKv5(turns []turn) []Message { return toAISDK(turns, turn.v5) }

func (t turn) v5() uiMessage {
	m := uiMessage{of: t.index, role: t.role(), rest: t.v5Rest(), signal: t.isSignal()}
	if m.signal {
		m.parts = []json.RawMessage{t.signalPart()}
		return m
	}
	all := t.all()
	m.signal = m.role == roleSystem && isDataOnly(all)
	var parts []v5Part
	for _, p := range all {
		if converted := p.v5(); converted != nil {
			parts = append(parts, v5Part{converted, p.callID()})
		}
	}
	for _, part := range t.withToolStates(parts) {
		m.parts = append(m.parts, part.object.json())
	}
	if m.parts == nil && m.role != roleAssistant {
		// The AI SDK refuses all messages where one of these has no part.
		m.parts = []json.RawMessage{typed(kindText).with("text", quote("")).json()}
	}
	return m
}

func (t turn) v5Rest() object {
	metadata := t.metadata.with("createdAt", t.createdAt()).
		withText("threadId", t.message.ThreadID).withText("resourceId", t.message.ResourceID).
		with("providerMetadata", t.content.given("providerMetadata"))
	return object{{"id", quote(t.message.ID)}, {"metadata", metadata.json()}}
}

// v5Part is a converted part.
type v5Part struct {
	object object
	callID string // of a tool call, and of a data part that tells of one
}

// callID gives the id of the call that a part is or tells of.
func (p part) callID() string {
	if p.call != nil {
		return p.call.id
	}
	if p.kind == kindSuspended || p.kind == kindApproval {
		return p.stored.at("data").text("toolCallId")
	}
	return ""
}

// v5 gives the part; nil where there is none for it.
func (p part) v5() object {
	switch {
	case p.call != nil && !p.call.ofUI:
		return p.v5Call()
	case p.call == nil && strings.HasPrefix(p.kind, toolPrefix):
		return nil // of no use to the AI SDK, which takes it for a call
	case p.kind == kindText:
		return typed(kindText).with("text", p.stored.raw("text")).with("providerMetadata", p.stampedMetadata())
	case p.kind == kindReasoning:
		return p.v5Reasoning()
	case p.kind == kindFile:
		return p.v5File()
	case p.kind == "source":
		return p.v5Source()
	case p.kind == kindSuspended || p.kind == kindApproval:
		return p.stored.with("data", displayedState(p.kind, p.stored.raw("data")))
	default:
		// The AI SDK 5's own calls and source documents too, which the reference loses.
		return p.stored
	}
}

func (p part) v5Call() object {
	metadata := p.call.metadata()
	input := displayed(metadata, p.call.args, phaseInput)
	if input == nil {
		input = json.RawMessage(`{}`) // the AI SDK refuses a call without input
	}
	converted := object{{"type", quote(toolPrefix + p.call.name)}, {"toolCallId", quote(p.call.id)}, {"input", input}}
	state := "input-available"
	switch p.call.state {
	case statePartial:
		// The reference calls it available, as if its arguments were whole.
		state = "input-streaming"
	case stateResult:
		state = "output-available"
		converted = converted.with("output", json.RawMessage(`null`)).
			with("output", displayed(metadata, p.call.result, phaseOutput, phaseError))
	case stateDenied: // a state that the AI SDK 5 did not have at first
		state = "output-available"
		converted = converted.with("output", p.call.denial())
	case stateError:
		state = "output-error"
		converted = converted.with("errorText", asText(displayed(metadata, quote(p.call.errorText), phaseError)))
	}
	return converted.with("state", quote(state)).with("callProviderMetadata", p.stampedMetadata()).
		with("providerExecuted", p.stored.given("providerExecuted"))
}

func (p part) v5Source() object {
	source := p.stored.at("source")
	if source == nil {
		return nil
	}
	return typed("source-url").with("url", source.raw("url")).with("sourceId", source.raw("id")).
		with("title", source.given("title")).with("providerMetadata", p.stampedMetadata())
}

// asText gives a value as a JSON string.
func asText(value json.RawMessage) json.RawMessage {
	if kindOf(value) == '"' {
		return value
	}
	return quote(string(value))
}

func (p part) v5Reasoning() object {
	text, details := p.reasoning()
	if text == "" && !details {
		return nil
	}
	converted := typed(kindReasoning).with("text", quote(text))
	if !p.beside {
		converted = converted.with("state", quote("done"))
	}
	return converted.with("providerMetadata", p.stampedMetadata())
}

// reasoning gives the text of reasoning, stored as the AI SDK 4 or 5 has it, and
// whether it has details, which can be encrypted and without text.
func (p part) reasoning() (text string, details bool) {
	list := readObjects(p.stored.raw("details"))
	if text := p.stored.textOf("reasoning", "text"); text != "" {
		return text, len(list) > 0
	}
	for _, detail := range list {
		if detail.text("type") == kindText {
			text += detail.text("text")
		}
	}
	return text, len(list) > 0
}

func (p part) v5File() object {
	if p.file == nil {
		return nil
	}
	media := "image/png" // the reference's words, both
	if p.beside {
		media = "unknown"
	}
	f := p.file.withMedia(media)
	return typed(kindFile).with("url", quote(f.url())).with("mediaType", quote(f.media)).
		withText("filename", f.name).with("providerMetadata", p.stampedMetadata())
}

// stampedMetadata gives what a provider said of the part, with the part's
// createdAt where Mastra's converter back looks for it.
func (p part) stampedMetadata() json.RawMessage {
	metadata := p.stored.at("providerMetadata")
	if createdAt := p.stored.given("createdAt"); createdAt != nil {
		metadata = metadata.with("mastra", metadata.at("mastra").with("createdAt", createdAt).json())
	}
	if metadata == nil {
		return nil
	}
	return metadata.json()
}

// Data parts that tell of a tool call that waits for a person.
const (
	kindSuspended = "data-tool-call-suspended"
	kindApproval  = "data-tool-call-approval"
)

// withToolStates adds data parts for the calls that wait for a person by the
// message's metadata, each behind its call or, where that is not here, at the end.
func (t turn) withToolStates(parts []v5Part) []v5Part {
	told := make(map[string]bool)
	for _, p := range parts {
		if p.tells() {
			told[p.callID] = true
		}
	}
	states := slices.Concat(t.toolStates("suspendedTools", kindSuspended), t.toolStates("pendingToolApprovals", kindApproval))
	untold, inOrder := make(map[string]v5Part), []v5Part{}
	for _, state := range states {
		if !told[state.callID] {
			told[state.callID], untold[state.callID] = true, state
			inOrder = append(inOrder, state)
		}
	}
	var all []v5Part
	for _, p := range parts {
		all = append(all, p)
		if state, waits := untold[p.callID]; waits && !p.tells() {
			all = append(all, state)
			delete(untold, p.callID)
		}
	}
	for _, state := range inOrder {
		if _, left := untold[state.callID]; left {
			all = append(all, state)
		}
	}
	return all
}

// tells reports whether the part tells of a call that waits for a person.
func (p v5Part) tells() bool {
	kind := p.object.text("type")
	return kind == kindSuspended || kind == kindApproval
}

// toolStates gives what a member of the metadata tells of calls, as data parts.
func (t turn) toolStates(name, kind string) (states []v5Part) {
	for _, state := range t.metadata.at(name) {
		if id := readObject(state.value).text("toolCallId"); id != "" {
			data := typed(kind).with("data", displayedState(kind, state.value))
			states = append(states, v5Part{data, id})
		}
	}
	return states
}

// displayedState gives what people are to see of a call that waits for them.
func displayedState(kind string, data json.RawMessage) json.RawMessage {
	state := readObject(data)
	if state == nil {
		return data
	}
	metadata := state.at("metadata")
	if metadata == nil {
		metadata = state.at("providerMetadata")
	}
	if kind == kindApproval {
		return state.with("args", displayed(metadata, nil, phaseApproval, phaseInput)).json()
	}
	return state.with("args", displayed(metadata, nil, phaseInput, phaseSuspend)).
		with("suspendPayload", displayed(metadata, nil, phaseSuspend)).json()
}

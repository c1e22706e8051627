package format

import (
	"encoding/json"
	"strings"
)

// States of a stored tool call.
const (
	statePartial = "partial-call" // its arguments were still coming
	stateCall    = "call"
	stateResult  = "result"
	stateError   = "output-error"
	stateDenied  = "output-denied"
)

// uiStates are the states of a part that the AI SDK 5 made and an application
// stored as it was.
var uiStates = map[string]string{
	"input-streaming":  statePartial,
	"input-available":  stateCall,
	"output-available": stateResult,
}

// Types of the AI SDK 5's parts for calls: one prefix for those of known tools.
const (
	toolPrefix  = "tool-"
	dynamicTool = "dynamic-tool"
)

// denied is what a tool call without approval results in where no reason is
// given; the words are Mastra's.
const denied = "Tool call was not approved by the user"

// tool is a tool call.
type tool struct {
	id, name, state string
	// args and result are nil where they are missing.
	args, result json.RawMessage
	errorText    string
	// stored is the call as Mastra stores it, and part the part that holds it.
	stored, part object
	// ofUI is true of a part that the AI SDK 5 made.
	ofUI bool
}

// readCall reads a tool call, be it stored as Mastra does or as the AI SDK 5 has
// it; nil for another part.
func readCall(kind string, stored object) *tool {
	if invocation := stored.at("toolInvocation"); kind == kindInvocation && invocation != nil {
		return readInvocation(invocation, stored)
	}
	if kind != dynamicTool && !strings.HasPrefix(kind, toolPrefix) ||
		stored.text("toolCallId") == "" || stored.text("state") == "" {
		return nil
	}
	call := readInvocation(invocationOf(kind, stored), stored)
	call.ofUI = true
	return call
}

func readInvocation(invocation, part object) *tool {
	return &tool{
		id: invocation.text("toolCallId"), name: invocation.text("toolName"), state: invocation.text("state"),
		args: invocation.raw("args"), result: invocation.raw("result"), errorText: invocation.text("errorText"),
		stored: invocation, part: part,
	}
}

// invocationOf gives what Mastra would store of a part of the AI SDK 5.
func invocationOf(kind string, part object) object {
	name := strings.TrimPrefix(kind, toolPrefix)
	if kind == dynamicTool {
		name = part.text("toolName")
	}
	state := part.text("state")
	if stored := uiStates[state]; stored != "" {
		state = stored
	}
	return object{}.with("toolCallId", part.raw("toolCallId")).with("toolName", quote(name)).
		with("state", quote(state)).with("args", part.raw("input")).with("result", part.raw("output")).
		with("errorText", part.raw("errorText")).with("approval", part.raw("approval"))
}

// waits reports whether the call has no result yet.
func (c tool) waits() bool {
	return c.state != stateResult && c.state != stateError && c.state != stateDenied
}

// denial says why the call was not approved.
func (c tool) denial() json.RawMessage {
	if reason := c.stored.at("approval").given("reason"); reason != nil {
		return reason
	}
	return quote(denied)
}

// metadata is the provider's, of the call.
func (c tool) metadata() object {
	if metadata := c.part.at("providerMetadata"); metadata != nil {
		return metadata
	}
	return c.part.at("callProviderMetadata")
}

// Phases of a call, for each of which an application can have what people see
// differ from what the model got.
const (
	phaseInput    = "input-available"
	phaseOutput   = "output-available"
	phaseError    = "error"
	phaseApproval = "approval"
	phaseSuspend  = "suspend"
)

// displayed gives what people are to see of a value: what the first of the phases
// that has something else says, and the value itself where none has.
func displayed(metadata object, value json.RawMessage, phases ...string) json.RawMessage {
	mastra := metadata.at("mastra")
	for _, phase := range phases {
		for _, place := range []string{"toolPayloadTransform", "toolPayloadProjection"} {
			state := mastra.at(place, "display", phase)
			for _, name := range []string{"transformed", "projected"} {
				if shown := state.raw(name); shown != nil {
					return shown
				}
			}
		}
	}
	return value
}

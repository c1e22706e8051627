package recall

import (
	"encoding/json"
	"strings"
)

// toolPairs gives the ids of the tool calls that a message makes, and of those
// whose results it has. The SQL functions tool_call_ids and tool_result_ids give
// the same.
func toolPairs(content json.RawMessage) (calls, results []string) {
	read := members(content)
	note := func(object map[string]json.RawMessage, isResult bool) {
		id, ok := jsonText(object["toolCallId"])
		switch {
		case !ok:
		case isResult:
			results = append(results, id)
		default:
			calls = append(calls, id)
		}
	}
	for _, part := range objects(read["parts"]) {
		if call := members(part["toolInvocation"]); call != nil {
			if state, ok := jsonText(call["state"]); ok {
				note(call, state == "result")
			}
		}
		kind, _ := jsonText(part["type"])
		state, hasState := jsonText(part["state"])
		done := strings.HasPrefix(state, "output-")
		if kind == "tool-result" || done {
			note(part, true)
		}
		if kind == "tool-call" || hasState && !done {
			note(part, false)
		}
	}
	for _, call := range objects(read["toolInvocations"]) {
		if state, ok := jsonText(call["state"]); ok {
			note(call, state == "result")
		}
	}
	return calls, results
}

// objects gives the objects of an array, split into their members; none for
// anything else.
func objects(array json.RawMessage) []map[string]json.RawMessage {
	var elements []json.RawMessage
	if json.Unmarshal(array, &elements) != nil {
		return nil
	}
	var found []map[string]json.RawMessage
	for _, element := range elements {
		if object := members(element); object != nil {
			found = append(found, object)
		}
	}
	return found
}

package format_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/format"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// stored gives a message of this role and content.
func stored(role, content string) recall.Message {
	return recall.Message{
		ID: "m", ThreadID: "t", ResourceID: "u", Role: role, CreatedAt: noon, Content: json.RawMessage(content),
	}
}

// ofParts gives a message of these parts.
func ofParts(role, parts string) recall.Message {
	return stored(role, `{"format":2,"parts":[`+parts+`]}`)
}

// call gives a part for the call "c" of the tool "w".
func call(rest string) string {
	return `{"type":"tool-invocation","toolInvocation":{"toolCallId":"c","toolName":"w",` + rest + `}}`
}

// converted gives the messages in a format as one JSON array.
func converted(f format.Format, messages ...recall.Message) string {
	all := []json.RawMessage{}
	for _, m := range format.Convert(f, messages) {
		all = append(all, m.JSON)
	}
	encoded, err := json.Marshal(all)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}

// partsOf gives the parts of one message in a UI format.
func partsOf(t *testing.T, f format.Format, message recall.Message) string {
	t.Helper()
	messages := format.Convert(f, []recall.Message{message})
	require.Len(t, messages, 1)
	var m struct{ Parts json.RawMessage }
	require.NoError(t, json.Unmarshal(messages[0].JSON, &m))
	return string(m.Parts)
}

package format_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/format"
)

var allFormats = []format.Format{format.AISDKv5, format.AISDKv4, format.OpenAI, format.Anthropic}

// Whatever a message holds, each format of it is valid JSON that has its text,
// and is the same again.
func FuzzConvert(f *testing.F) {
	for _, seed := range []string{
		`{}`, `"plain"`, `[1]`, `{"parts":{}}`, `{`, `{"parts":[{"type":"text","text":"hi \ud83d\ude00","createdAt":1,"providerMetadata":{"mastra":[]}}]}`,
		`{"parts":[` + call(rain) + `,` + call(openCall) + `,{"type":"tool-w","toolCallId":"c","state":"output-error","errorText":1}]}`,
		`{"parts":[{"type":"file","data":"data:"},{"type":"file","data":"data:;base64"},{"type":"image","image":"//"},{"type":"source","source":{}}]}`,
		`{"toolInvocations":[{"state":"result","args":[]},null],"reasoning":"r","experimental_attachments":[{"url":"x"},1],"content":["a",{"text":"b"}]}`,
		`{"parts":[{"type":"reasoning","details":[{"type":"text","text":"x"},{}]},{"type":"step-start"}],"metadata":{"suspendedTools":{"a":{"toolCallId":"c"}},"pendingToolApprovals":[]}}`,
		`{"metadata":{"signal":{"type":"x","contents":null,"attributes":{"a":1}},"createdAt":1},"annotations":[]}`,
	} {
		for _, role := range []string{"user", "assistant", "system", "tool", "signal"} {
			f.Add(role, []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, role string, content []byte) {
		m := stored(role, string(content))
		for _, to := range allFormats {
			messages := format.Convert(to, []recall.Message{m, m})
			var all strings.Builder
			for _, converted := range messages {
				var decoded map[string]any
				require.NoError(t, json.Unmarshal(converted.JSON, &decoded), to)
				collect(&all, decoded)
			}
			require.Equal(t, messages, format.Convert(to, []recall.Message{m, m}))
			if keepsText(to, m) {
				for line := range strings.SplitSeq(m.Text(), "\n") {
					require.Contains(t, all.String(), strings.TrimSpace(line), "%s: %s", to, content)
				}
			}
		}
	})
}

// keepsText reports whether the format must have the message's text: reminders
// are not for people, and a signal has contents of its own.
func keepsText(f format.Format, m recall.Message) bool {
	hidden := strings.Contains(string(m.Content), "eminder") || m.Role == "signal"
	return utf8.Valid(m.Content) && json.Valid(m.Content) && (!f.ForUI() || !hidden)
}

// collect writes all strings of a decoded value.
func collect(all *strings.Builder, value any) {
	switch value := value.(type) {
	case string:
		all.WriteString(value)
	case []any:
		for _, element := range value {
			collect(all, element)
		}
	case map[string]any:
		for _, element := range value {
			collect(all, element)
		}
	}
}

package format_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/format"
)

// The suite in e2e/ compares both UI formats with Mastra's own converters. The
// tests here are of what those lose, refuse or leave to chance.

func TestAUIMessageHasIDRolePartsAndMetadata(t *testing.T) {
	t.Parallel()
	m := stored("user", `{"format":2,"parts":[{"type":"text","text":"hi"}],"metadata":{"k":1,"threadId":"old"}}`)
	require.JSONEq(t, `[{"id":"m","role":"user","parts":[{"type":"text","text":"hi"}],
		"metadata":{"k":1,"createdAt":"2026-03-01T12:00:00.000Z","threadId":"t","resourceId":"u"}}]`,
		converted(format.AISDKv5, m))
	require.JSONEq(t, `[{"id":"m","role":"user","content":"hi","createdAt":"2026-03-01T12:00:00.000Z",
		"parts":[{"type":"text","text":"hi"}],"experimental_attachments":[],"metadata":{"k":1,"threadId":"old"}}]`,
		converted(format.AISDKv4, m))
}

func TestPartsOfTheAISDK5(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ stored, want string }{
		"a call whose arguments are still coming": {call(`"state":"partial-call","args":{"a":1}`),
			`{"type":"tool-w","toolCallId":"c","state":"input-streaming","input":{"a":1}}`},
		"a call without arguments": {call(`"state":"call"`),
			`{"type":"tool-w","toolCallId":"c","state":"input-available","input":{}}`},
		"a result of nothing": {call(`"state":"result","args":{}`),
			`{"type":"tool-w","toolCallId":"c","state":"output-available","input":{},"output":null}`},
		"a failure": {call(`"state":"output-error","args":{},"errorText":"no rain gauge"`),
			`{"type":"tool-w","toolCallId":"c","state":"output-error","input":{},"errorText":"no rain gauge"}`},
		"a denial": {call(`"state":"output-denied","args":{},"approval":{"id":"a","approved":false}`),
			`{"type":"tool-w","toolCallId":"c","state":"output-available","input":{},"output":"Tool call was not approved by the user"}`},
		"a call of the AI SDK 5's own": {`{"type":"tool-w","toolCallId":"c","state":"output-available","input":{},"output":1}`,
			`{"type":"tool-w","toolCallId":"c","state":"output-available","input":{},"output":1}`},
		"reasoning of the AI SDK 5's own": {`{"type":"reasoning","text":"hm","state":"done"}`,
			`{"type":"reasoning","text":"hm","state":"done"}`},
		"a source document": {`{"type":"source-document","sourceId":"s","mediaType":"application/pdf","title":"T"}`,
			`{"type":"source-document","sourceId":"s","mediaType":"application/pdf","title":"T"}`},
		"a data URL that is not base64": {`{"type":"file","mimeType":"text/plain","data":"data:text/plain,hello"}`,
			`{"type":"file","mediaType":"text/plain","url":"data:text/plain,hello"}`},
		"base64 that begins like a URL without a scheme": {`{"type":"file","mimeType":"audio/mpeg","data":"//uQxAAA"}`,
			`{"type":"file","mediaType":"audio/mpeg","url":"data:audio/mpeg;base64,//uQxAAA"}`},
		"a URL without a scheme": {`{"type":"file","mimeType":"image/gif","data":"//x.org/a.gif"}`,
			`{"type":"file","mediaType":"image/gif","url":"//x.org/a.gif"}`},
		"a part of an unknown type": {`{"type":"hologram","x":[1]}`, `{"type":"hologram","x":[1]}`},
	} {
		require.JSONEq(t, `[`+test.want+`]`, partsOf(t, format.AISDKv5, ofParts("assistant", test.stored)), name)
	}
}

func TestPartsThatAreNoneAreLeftOut(t *testing.T) {
	t.Parallel()
	for _, broken := range []string{
		`null`, `7`, `[]`, `{}`, `{"type":null}`, `{"type":"text"}`, `{"type":"text","text":1}`, `{"type":"file"}`, `{"type":"file","data":{"0":1}}`,
		`{"type":"tool-invocation"}`, `{"type":"tool-x"}`, `{"type":"reasoning"}`, `{"type":"source"}`,
	} {
		require.JSONEq(t, `[{"type":"text","text":"after"}]`,
			partsOf(t, format.AISDKv5, ofParts("assistant", broken+`,{"type":"text","text":"after"}`)), broken)
	}
}

// The reference drops the text beside a step-start, and attachments beside a file.
func TestWhatStandsBesideThePartsIsNotLost(t *testing.T) {
	t.Parallel()
	text := `{"type":"text","text":"said"}`
	for _, content := range []string{
		`"said"`, `{"content":"said"}`, `{"parts":null,"content":"said"}`, `{"parts":[{"type":"text","text":""}],"content":"said"}`,
		`{"parts":[{"type":"step-start"}],"content":"said"}`, `{"content":[{"type":"text","text":"said"}]}`,
		`{"parts":[{"type":"data-x","data":1}],"content":"said"}`,
	} {
		for _, f := range []format.Format{format.AISDKv5, format.AISDKv4} {
			require.Contains(t, partsOf(t, f, stored("assistant", content)), text, "%s: %s", f, content)
		}
		for _, f := range []format.Format{format.OpenAI, format.Anthropic} {
			require.Contains(t, converted(f, stored("assistant", content)), `"said"`, "%s: %s", f, content)
		}
	}
	files := `{"parts":[{"type":"file","mimeType":"image/png","data":"https://x.org/a.png"}],
		"experimental_attachments":[{"url":"https://x.org/a.png"},{"url":"https://x.org/b.png","contentType":"image/png","name":"b"}]}`
	require.JSONEq(t, `[{"type":"file","url":"https://x.org/b.png","mediaType":"image/png","filename":"b"},
		{"type":"file","url":"https://x.org/a.png","mediaType":"image/png"}]`, partsOf(t, format.AISDKv5, stored("user", files)))
}

// The AI SDK refuses all messages where one has a role that it does not know, or
// is another's than the assistant's and has no part.
func TestEveryUIMessageHasARoleAndPartsThatTheAISDKTakes(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]string{
		"user": "user", "system": "system", "assistant": "assistant", "tool": "assistant", "developer": "system", "x": "assistant",
	} {
		messages := format.Convert(format.AISDKv5, []recall.Message{stored(role, `{}`)})
		var m struct {
			Role  string
			Parts []any
		}
		require.NoError(t, json.Unmarshal(messages[0].JSON, &m))
		require.Equal(t, want, m.Role, role)
		require.Equal(t, want == "assistant", len(m.Parts) == 0, role)
	}
}

func TestOnlyRemindersAreKeptFromPeople(t *testing.T) {
	t.Parallel()
	reminder := ofParts("user", `{"type":"text","text":"<system-reminder>Be brief</system-reminder>"}`)
	marked := stored("user", `{"parts":[{"type":"text","text":"x"}],"metadata":{"systemReminder":{"type":"gap"}}}`)
	mention := ofParts("user", `{"type":"text","text":"What is a <system-reminder>?"}`)
	for _, f := range []format.Format{format.AISDKv5, format.AISDKv4} {
		messages := format.Convert(f, []recall.Message{reminder, marked, mention})
		require.Len(t, messages, 1)
		require.Equal(t, 2, messages[0].Of)
	}
	require.Len(t, format.Convert(format.OpenAI, []recall.Message{reminder, marked, mention}), 3)
}

func TestSignalsJoinTheAssistantsMessageBesideThem(t *testing.T) {
	t.Parallel()
	signal := stored("signal", `{"parts":[{"type":"text","text":"It rains"}],"metadata":{"signal":{"type":"weather"}}}`)
	said, asked := ofParts("assistant", `{"type":"text","text":"said"}`), ofParts("user", `{"type":"text","text":"asked"}`)
	for name, test := range map[string]struct {
		messages []recall.Message
		of       []int
	}{
		"before":  {[]recall.Message{said, signal, asked}, []int{0, 2}},
		"after":   {[]recall.Message{asked, signal, said}, []int{0, 2}},
		"both":    {[]recall.Message{said, signal, said}, []int{0, 2}},
		"neither": {[]recall.Message{asked, signal, asked}, []int{0, 1, 2}},
	} {
		for _, f := range []format.Format{format.AISDKv5, format.AISDKv4} {
			var of []int
			for _, m := range format.Convert(f, test.messages) {
				of = append(of, m.Of)
			}
			require.Equal(t, test.of, of, "%s: %s", f, name)
			require.Contains(t, converted(f, test.messages...), `"contents":"It rains"`, "%s: %s", f, name)
		}
	}
}

func TestTheAISDK4HasNoCallsThatWait(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"call", "partial-call"} {
		require.JSONEq(t, `[]`, partsOf(t, format.AISDKv4, ofParts("assistant", call(`"state":"`+state+`","args":{}`))))
	}
	require.JSONEq(t, `[{"type":"tool-invocation","toolInvocation":{"toolCallId":"c","toolName":"w","state":"result","args":{"a":1},"result":2}}]`,
		partsOf(t, format.AISDKv4, ofParts("assistant", `{"type":"tool-w","toolCallId":"c","state":"output-available","input":{"a":1},"output":2}`)))
}

// The reference gives an assistant neither, and a file twice that Mastra keeps in
// two places.
func TestTheAISDK4HasAllAttachmentsOnce(t *testing.T) {
	t.Parallel()
	content := `{"parts":[{"type":"file","mimeType":"image/png","data":"https://x.org/a.png"},{"type":"file","mimeType":"image/png","data":"AAAA"}],
		"experimental_attachments":[{"url":"https://x.org/a.png","contentType":"image/png"}],"reasoning":"hm","annotations":[1]}`
	for _, role := range []string{"user", "assistant"} {
		var m struct {
			Attachments []struct{ URL string } `json:"experimental_attachments"`
			Annotations []int
		}
		require.NoError(t, json.Unmarshal(format.Convert(format.AISDKv4, []recall.Message{stored(role, content)})[0].JSON, &m))
		require.Len(t, m.Attachments, 2, role)
		require.Equal(t, "data:image/png;base64,AAAA", m.Attachments[1].URL)
		require.Equal(t, []int{1}, m.Annotations)
	}
	require.Contains(t, converted(format.AISDKv4, stored("assistant", content)), `"reasoning":"hm"`)
}

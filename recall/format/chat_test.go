package format_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/format"
)

const (
	rain     = `"args":{"city":"Kyoto"},"result":{"mm":3},"state":"result"`
	openCall = `"args":{"city":"Kyoto"},"state":"call"`
)

func textPart(text string) string { return `{"type":"text","text":"` + text + `"}` }

func TestAnAssistantsMessageIsOneForEachStep(t *testing.T) {
	t.Parallel()
	m := ofParts("assistant", `{"type":"step-start"},{"type":"reasoning","reasoning":"hm"},`+textPart("Let me look.")+`,`+call(rain)+`,
		{"type":"source","source":{"url":"https://x.org"}},{"type":"data-x","data":1},`+textPart("It rains.")+`,`+textPart("Take a coat."))
	require.JSONEq(t, `[
		{"role":"assistant","content":"Let me look.","tool_calls":[{"id":"c","type":"function","function":{"name":"w","arguments":"{\"city\":\"Kyoto\"}"}}]},
		{"role":"tool","tool_call_id":"c","content":"{\"mm\":3}"},
		{"role":"assistant","content":"It rains.\nTake a coat."}]`, converted(format.OpenAI, m))
	require.JSONEq(t, `[
		{"role":"assistant","content":[{"type":"text","text":"Let me look."},{"type":"tool_use","id":"c","name":"w","input":{"city":"Kyoto"}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"{\"mm\":3}"}]},
		{"role":"assistant","content":[{"type":"text","text":"It rains."},{"type":"text","text":"Take a coat."}]}]`, converted(format.Anthropic, m))
}

func TestCallsOfOneStepStandTogether(t *testing.T) {
	t.Parallel()
	second := `{"type":"tool-invocation","toolInvocation":{"toolCallId":"d","toolName":"v","args":{},"state":"output-error","errorText":"no gauge"}}`
	require.JSONEq(t, `[
		{"role":"assistant","content":null,"tool_calls":[
			{"id":"c","type":"function","function":{"name":"w","arguments":"{\"city\":\"Kyoto\"}"}},
			{"id":"d","type":"function","function":{"name":"v","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"c","content":"{\"mm\":3}"},
		{"role":"tool","tool_call_id":"d","content":"no gauge"}]`, converted(format.OpenAI, ofParts("assistant", call(rain)+","+second)))
	require.Contains(t, converted(format.Anthropic, ofParts("assistant", second)), `"is_error":true`)
	require.Len(t, format.Convert(format.OpenAI, []recall.Message{ofParts("assistant", call(rain)+`,{"type":"step-start"},`+second)}), 4)
}

// An API refuses all messages where a result does not stand behind its call.
func TestACallStandsWhereItsResultDoes(t *testing.T) {
	t.Parallel()
	asked := ofParts("assistant", call(openCall))
	between := ofParts("user", textPart("Well?"))
	answer := ofParts("tool", call(`"state":"result","result":"rain"`))
	want := `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"w","arguments":"{\"city\":\"Kyoto\"}"}}]}`
	require.JSONEq(t, `[{"role":"user","content":"Well?"},`+want+`,{"role":"tool","tool_call_id":"c","content":"rain"}]`,
		converted(format.OpenAI, asked, between, answer))
	require.JSONEq(t, `[{"role":"user","content":"Well?"},`+want+`]`, converted(format.OpenAI, between, asked), "to be answered")
	require.JSONEq(t, `[{"role":"user","content":"Well?"}]`, converted(format.OpenAI, asked, between), "never answered")
	require.JSONEq(t, `[]`, converted(format.OpenAI, ofParts("assistant", call(`"state":"partial-call"`))))
}

func TestAModelIsToldWhatItWasTold(t *testing.T) {
	t.Parallel()
	part := `{"type":"tool-invocation","toolInvocation":{"toolCallId":"c","toolName":"w","args":{},"result":{"all":true},"state":"result"},
		"providerMetadata":{"mastra":{"modelOutput":{"type":"text","value":"brief"},
			"toolPayloadTransform":{"display":{"output-available":{"transformed":"for people"}}}}}}`
	require.Contains(t, converted(format.OpenAI, ofParts("assistant", part)), `"content":"brief"`)
	require.Contains(t, partsOf(t, format.AISDKv5, ofParts("assistant", part)), `"output":"for people"`)
}

func TestFilesForModels(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ part, openAI, anthropic string }{
		"an image": {`{"type":"file","mimeType":"image/png","data":"AAAA"}`,
			`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`,
			`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`},
		"an image elsewhere": {`{"type":"image","image":"https://x.org/a.png"}`,
			`{"type":"image_url","image_url":{"url":"https://x.org/a.png"}}`,
			`{"type":"image","source":{"type":"url","url":"https://x.org/a.png"}}`},
		"a PDF": {`{"type":"file","mediaType":"application/pdf","url":"data:application/pdf;base64,AAAA","filename":"a.pdf"}`,
			`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AAAA"}}`,
			`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}`},
		"sound": {`{"type":"file","mimeType":"audio/mpeg","data":"//uQ","filename":"a.mp3"}`,
			`{"type":"input_audio","input_audio":{"data":"//uQ","format":"mp3"}}`,
			`{"type":"text","text":"a.mp3 (audio/mpeg)"}`},
		"a text": {`{"type":"file","mimeType":"text/plain","data":"aGVsbG8="}`,
			`{"type":"file","file":{"filename":"file","file_data":"data:text/plain;base64,aGVsbG8="}}`,
			`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"hello"}}`},
		"a file that a provider keeps": {`{"type":"file","mimeType":"application/pdf","data":"file-1"}`,
			`{"type":"file","file":{"file_id":"file-1"}}`,
			`{"type":"document","source":{"type":"file","file_id":"file-1"}}`},
		"an archive elsewhere": {`{"type":"file","mimeType":"application/zip","data":"https://x.org/a.zip","filename":"a"}`,
			`{"type":"text","text":"a: https://x.org/a.zip"}`,
			`{"type":"text","text":"a: https://x.org/a.zip"}`},
	} {
		m := ofParts("user", textPart("See:")+`,`+test.part)
		require.JSONEq(t, `[{"role":"user","content":[`+textPart("See:")+`,`+test.openAI+`]}]`, converted(format.OpenAI, m), name)
		require.JSONEq(t, `[{"role":"user","content":[`+textPart("See:")+`,`+test.anthropic+`]}]`, converted(format.Anthropic, m), name)
	}
}

func TestWhatSaysNothingIsNoMessage(t *testing.T) {
	t.Parallel()
	for _, parts := range []string{``, textPart(""), textPart(" "), `{"type":"reasoning","reasoning":"hm"}`, `{"type":"data-x","data":1}`} {
		for _, role := range []string{"user", "assistant", "system"} {
			require.Equal(t, `[]`, converted(format.OpenAI, ofParts(role, parts)), "%s: %s", role, parts)
			require.Equal(t, `[]`, converted(format.Anthropic, ofParts(role, parts)), "%s: %s", role, parts)
		}
	}
}

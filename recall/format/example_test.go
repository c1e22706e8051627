package format_test

import (
	"encoding/json"
	"fmt"

	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/format"
)

func ExampleConvert() {
	messages := []recall.Message{{ID: "m1", Role: "assistant", Content: json.RawMessage(`{"format":2,"parts":[
		{"type":"tool-invocation","toolInvocation":{"state":"result","toolCallId":"c1","toolName":"weather","args":{"city":"Kyoto"},"result":"rain"}},
		{"type":"text","text":"It rains."}]}`)}}
	for _, message := range format.Convert(format.OpenAI, messages) {
		fmt.Printf("%s\n", message.JSON)
	}
	// Output:
	// {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Kyoto\"}"}}]}
	// {"role":"tool","tool_call_id":"c1","content":"rain"}
	// {"role":"assistant","content":"It rains."}
}

package server_test

import (
	"net/http"
	"strings"
	"testing"
)

const processors = "/api/memory/processors/"

func TestATurnGoesThroughTheProcessors(t *testing.T) {
	t.Parallel()
	s := kept(t)
	say(t, s, "sam", "trip", "The train to Kyoto was late", "It always is")
	turn := `"threadId":"new","resourceId":"sam","messages":[{"id":"q","role":"user","content":"Was the train late?"}]`
	recalled := must(t, s, http.MethodPost, processors+"semantic-recall/input",
		`{`+turn+`,"config":{"semanticRecall":{"topK":1,"messageRange":0,"mode":"lexical"}}}`)
	first := recalled["messages"].([]any)[0].(map[string]any)
	if first["role"] != "system" || first["source"] != "memory" || !strings.Contains(first["content"].(map[string]any)["content"].(string), ": User: The train to Kyoto was late\n") {
		t.Errorf("recalled: %v", recalled)
	}
	for _, name := range []string{"semantic-recall", "message-history"} {
		body := strings.Replace(`{`+turn+`}`, `"messages":[`, `"messages":[{"id":"recalled","role":"system","source":"memory","content":"x"},{"id":"m","role":"user","source":"memory","content":"x"},`, 1)
		saved := must(t, s, http.MethodPost, processors+name+"/output", body)
		if ids := messageIDs(saved); len(ids) != 1 || ids[0] != "q" {
			t.Errorf("%s saves %q", name, ids)
		}
	}
	history := must(t, s, http.MethodPost, processors+"message-history/input", `{"threadId":"trip","config":{"lastMessages":1}}`)
	if ids := messageIDs(history); len(ids) != 1 || ids[0] != "trip2" || history["messages"].([]any)[0].(map[string]any)["source"] != "memory" {
		t.Errorf("history: %v", history)
	}
	context := must(t, s, http.MethodPost, "/api/memory/context", `{"threadId":"trip","query":"the train","lastMessages":1,"semanticRecall":{"topK":1,"messageRange":0,"mode":"lexical","scope":"thread"}}`)
	if ids := messageIDs(context); len(ids) != 2 || context["tokenizer"] != "o200k_base" || context["tokens"].(float64) < 10 || len(context["dropped"].([]any)) != 0 {
		t.Errorf("context: %v", context)
	}
	must(t, s, http.MethodPut, ofAgent, `{"config":{"lastMessages":2,"semanticRecall":false}}`)
	ofTheAgent := must(t, s, http.MethodPost, "/api/memory/context", `{"threadId":"trip","agentId":"agent"}`)
	if ids := messageIDs(ofTheAgent); len(ids) != 2 {
		t.Errorf("context of an agent: %q", ids)
	}
}

func TestProcessorsNameTheFieldsOfTheirRequests(t *testing.T) {
	t.Parallel()
	s := kept(t)
	for _, test := range []struct {
		path, body string
		status     int
		field      string
	}{
		{processors + "semantic-recall/input", `{"threadId":"t","config":{"semanticRecall":{"topK":1000}},"messages":[{"role":"user","content":"x"}]}`, 400, "config.semanticRecall.topK"},
		{processors + "semantic-recall/input", `{"messages":[]}`, 400, "threadId"},
		{processors + "message-history/input", `{"threadId":"t","config":{"lastMessages":-1}}`, 400, "config.lastMessages"},
		{processors + "message-history/output", `{"threadId":"t","resourceId":"u","messages":[{"role":"user","content":"x"}]}`, 400, "messages.0.id"},
		{"/api/memory/context", `{"threadId":"garden","query":"q","semanticRecall":{"topK":1000}}`, 400, "semanticRecall.topK"},
		{"/api/memory/context", `{"threadId":"garden","query":""}`, 400, "query"},
		{"/api/memory/context", `{"threadId":"garden","maxTokens":0}`, 400, "maxTokens"},
		{"/api/memory/context", `{"threadId":"garden","maxTokens":3}`, 422, "maxTokens"},
		{"/api/memory/context", `{"threadId":"garden","lastMessage":3}`, 400, "lastMessage"},
	} {
		got := call(t, s, http.MethodPost, test.path, test.body)
		if fields := got.problem(t).fields(); got.status != test.status || len(fields) != 1 || fields[0] != test.field {
			t.Errorf("%s %s: %d %s, want %d naming %s", test.path, test.body, got.status, got.body, test.status, test.field)
		}
	}
}

func TestAContextIsGivenInAnyFormat(t *testing.T) {
	t.Parallel()
	s := kept(t)
	for format, member := range map[string]string{"openai": "content", "anthropic": "content", "aisdk-v5": "parts", "aisdk-v4": "parts"} {
		for _, request := range [][2]string{{"?format=" + format, ""}, {"", `,"format":"` + format + `"`}} {
			got := must(t, s, http.MethodPost, "/api/memory/context"+request[0], `{"threadId":"garden","lastMessages":2,"semanticRecall":false`+request[1]+`}`)
			messages := got["messages"].([]any)
			if len(messages) != 2 || messages[0].(map[string]any)[member] == nil {
				t.Errorf("%s: %v", format, got)
			}
		}
	}
}

func TestWhatIsRememberedHasAnOwnerThoughTheTurnNamesNone(t *testing.T) {
	t.Parallel()
	s := kept(t)
	const search = `{"topK":1,"messageRange":0,"mode":"lexical"}`
	for path, body := range map[string]string{
		"/api/memory/context":                `{"threadId":"work","query":"yellow leaves","semanticRecall":` + search + `}`,
		processors + "semantic-recall/input": `{"threadId":"work","messages":[{"role":"user","content":"yellow leaves"}],"config":{"semanticRecall":` + search + `}}`,
		processors + "working-memory/input":  `{"threadId":"work","config":{"workingMemory":{"enabled":true}}}`,
	} {
		first := must(t, s, http.MethodPost, path, body)["messages"].([]any)[0].(map[string]any)
		if first["role"] != "system" || first["source"] != "memory" || first["resourceId"] != "sam" {
			t.Errorf("%s gives %v", path, first)
		}
	}
}

func TestWhatIsAnothersOrNotThereIsRefusedWhereTheBodyNamesItToo(t *testing.T) {
	t.Parallel()
	s := kept(t)
	const said = `"messages":[{"id":"garden1","role":"user","content":"x"}]`
	for _, test := range []struct {
		path, body string
		status     int
	}{
		{"/api/memory/threads", `{"threadId":"garden","resourceId":"alex"}`, 409},
		{"/api/memory/recall", `{"threadId":"garden","resourceId":"alex"}`, 403},
		{"/api/memory/recall", `{"threadId":"none"}`, 404},
		{"/api/memory/context", `{"threadId":"garden","resourceId":"alex","query":"q"}`, 403},
		{processors + "semantic-recall/input", `{"threadId":"garden","resourceId":"alex",` + said + `}`, 403},
		{processors + "semantic-recall/output", `{"threadId":"garden","resourceId":"alex",` + said + `}`, 403},
		{processors + "semantic-recall/output", `{"threadId":"work","resourceId":"sam",` + said + `}`, 409},
		{processors + "message-history/input", `{"threadId":"garden","resourceId":"alex",` + said + `}`, 403},
		{processors + "message-history/output", `{"threadId":"garden","resourceId":"alex",` + said + `}`, 403},
		{processors + "message-history/output", `{"threadId":"work","resourceId":"sam",` + said + `}`, 409},
	} {
		if got := call(t, s, http.MethodPost, test.path, test.body); got.status != test.status {
			t.Errorf("%s %s: %d %s, want %d", test.path, test.body, got.status, got.body, test.status)
		}
	}
}

func TestProcessorsGiveMessagesInAnyFormat(t *testing.T) {
	t.Parallel()
	s := kept(t)
	const turn = `"resourceId":"sam","messages":[{"id":"q","role":"user","content":"yellow leaves"}],` +
		`"config":{"semanticRecall":{"topK":2,"messageRange":0,"mode":"lexical"},"workingMemory":{"enabled":true}}`
	for format, member := range map[string]string{"openai": "content", "anthropic": "content", "aisdk-v5": "parts", "aisdk-v4": "parts"} {
		for name, thread := range map[string]string{
			"semantic-recall/input": "work", "working-memory/input": "work", "message-history/input": "work", "message-history/output": "new",
		} {
			for _, request := range [][2]string{{"?format=" + format, ""}, {"", `,"format":"` + format + `"`}} {
				messages := must(t, s, http.MethodPost, processors+name+request[0], `{"threadId":"`+thread+`",`+turn+request[1]+`}`)["messages"].([]any)
				first := messages[0].(map[string]any)
				if first[member] == nil || first["source"] != nil {
					t.Errorf("%s %s gives %v", name, format, first)
				}
			}
		}
	}
}

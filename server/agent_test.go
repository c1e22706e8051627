package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/server"
)

const ofAgent = "/api/memory/config?agentId=agent"

func TestAnAgentThatIsNotStoredHasTheDefaults(t *testing.T) {
	t.Parallel()
	const want = `{"config":{"generateTitle":false,"lastMessages":10,"observationalMemory":{"enabled":false},` +
		`"semanticRecall":{"topK":4,"messageRange":1,"scope":"resource"},"workingMemory":{"enabled":false}}}`
	s := attached(t)
	for _, path := range []string{ofAgent, "/api/memory/config"} {
		if got := call(t, s, http.MethodGet, path, ""); string(got.body) != want {
			t.Errorf("%s: %s", path, got.body)
		}
	}
	none := httptest.NewServer(server.New(recall.New(dbtest.New(t), recall.DefaultLimits()), quiet()))
	defer none.Close()
	var config struct{ Config map[string]any }
	if err := json.Unmarshal(call(t, none, http.MethodGet, ofAgent, "").body, &config); err != nil || config.Config["semanticRecall"] != false {
		t.Errorf("without an embedder: %v, %v", config, err)
	}
}

func TestAConfigurationIsGivenBackAsItWasStored(t *testing.T) {
	t.Parallel()
	s := attached(t)
	const stored = `{"config":{"generateTitle":{"model":"small"},"lastMessages":false,"observationalMemory":{"enabled":false},` +
		`"retention":{"messages":{"maxAge":"30d"}},"semanticRecall":{"topK":5,"indexConfig":{"type":"hnsw"}},` +
		`"workingMemory":{"scope":"thread","enabled":true,"schema":{"type":"object"}}}}`
	for _, method := range []string{http.MethodPut, http.MethodGet} {
		got := call(t, s, method, ofAgent, stored)
		var want, have any
		if json.Unmarshal([]byte(stored), &want) != nil || json.Unmarshal(got.body, &have) != nil {
			t.Fatalf("%s: %s", method, got.body)
		}
		for _, difference := range differences("", want, have) {
			t.Errorf("%s: %s", method, difference)
		}
	}
}

func TestAStoredConfigurationHoldsWhereACallSaysNothing(t *testing.T) {
	t.Parallel()
	s := attached(t)
	say(t, s, "sam", "m", "One about tea", "Two about trains", "Three about whales", "Four about bread")
	must(t, s, http.MethodPut, ofAgent, `{"config":{"lastMessages":2,"semanticRecall":{"topK":1,"messageRange":0,"mode":"lexical"}}}`)
	for body, want := range map[string][]string{
		`{"threadId":"m","agentId":"agent"}`:                                                                                       {"m3", "m4"},
		`{"threadId":"m","agentId":"agent","perPage":1}`:                                                                           {"m4"},
		`{"threadId":"m","agentId":"agent","threadConfig":{"lastMessages":3}}`:                                                     {"m2", "m3", "m4"},
		`{"threadId":"m","agentId":"agent","include":[{"id":"m1"}]}`:                                                               {"m1"},
		`{"threadId":"m","agentId":"agent","perPage":0,"vectorSearchString":"tea trains"}`:                                         {"m1"},
		`{"threadId":"m","perPage":0,"vectorSearchString":"whales","threadConfig":{"semanticRecall":{"topK":1,"messageRange":1}}}`: {"m2", "m3", "m4"},
		`{"threadId":"m","agentId":"agent","perPage":0,"vectorSearchString":"tea","threadConfig":{"semanticRecall":false}}`:        {},
	} {
		got := messageIDs(must(t, s, http.MethodPost, "/api/memory/recall", body))
		if len(got) != len(want) || len(want) > 0 && got[0] != want[0] {
			t.Errorf("%s gives %q, want %q", body, got, want)
		}
	}
}

func TestAConfigurationIsOfAnAgentThatTheQueryNames(t *testing.T) {
	t.Parallel()
	e := detached(quiet())
	for _, query := range []string{"", "?agentId=", "?agentId=" + strings.Repeat("x", 513)} {
		got := send(t, e, request(http.MethodPut, "/api/memory/config"+query, `{"config":{}}`))
		p := got.problem(t)
		if got.status != http.StatusBadRequest || p.Error != "Invalid query parameters" || !slices.Equal(p.fields(), []string{"agentId"}) {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
}

func TestABadConfigurationIsRefusedByItsFields(t *testing.T) {
	t.Parallel()
	s := attached(t)
	for config, field := range map[string]string{
		`[]`:                                                         "config",
		`{"lastMessage":1}`:                                          "config.lastMessage",
		`{"lastMessages":-1}`:                                        "config.lastMessages",
		`{"lastMessages":100000}`:                                    "config.lastMessages",
		`{"semanticRecall":{"topK":100000}}`:                         "config.semanticRecall.topK",
		`{"semanticRecall":{"scope":"all"}}`:                         "config.semanticRecall.scope",
		`{"semanticRecall":{"filter":{"a":{}}}}`:                     "config.semanticRecall.filter.a",
		`{"workingMemory":{"scope":"agent"}}`:                        "config.workingMemory.scope",
		`{"workingMemory":{"template":"t","schema":{}}}`:             "config.workingMemory.schema",
		`{"workingMemory":{"schema":{"type":"thing"}}}`:              "config.workingMemory.schema",
		`{"workingMemory":{"schema":{"$ref":"http://example.org"}}}`: "config.workingMemory.schema",
		`{"generateTitle":1}`:                                        "config.generateTitle",
		`{"threads":{"generateTitle":{"model":""}}}`:                 "config.threads.generateTitle.model",
		`{"retention":{"messages":{"maxAge":"soon"}}}`:               "config.retention.messages.maxAge",
		`{"retention":{"threads":{"maxAge":"0d"}}}`:                  "config.retention.threads.maxAge",
		`{"observationalMemory":{"enabled":true}}`:                   "config.observationalMemory",
	} {
		got := call(t, s, http.MethodPut, ofAgent, `{"config":`+config+`}`)
		if p := got.problem(t); got.status != http.StatusBadRequest || len(p.fields()) != 1 || p.fields()[0] != field {
			t.Errorf("%s: %d %s, want 400 naming %s", config, got.status, got.body, field)
		}
	}
	if got := call(t, s, http.MethodGet, ofAgent, ""); len(got.body) == 0 || string(got.body) != string(call(t, s, http.MethodGet, "/api/memory/config", "").body) {
		t.Errorf("something was stored: %s", got.body)
	}
}

func TestAnAgentIsNamedInTheQueryOrInTheBody(t *testing.T) {
	t.Parallel()
	s := kept(t)
	must(t, s, http.MethodPut, ofAgent, `{"config":{"lastMessages":1,"semanticRecall":false,"workingMemory":{"enabled":true,"schema":{"type":"object"}}}}`)
	for _, named := range [][2]string{{"?agentId=agent", ""}, {"", `,"agentId":"agent"`}, {"?agentId=agent", `,"agentId":"agent"`}} {
		for path, count := range map[string]int{"recall": 1, "context": 2, "processors/message-history/input": 1, "processors/working-memory/input": 1} {
			got := must(t, s, http.MethodPost, "/api/memory/"+path+named[0], `{"threadId":"garden"`+named[1]+`}`)
			if messages := got["messages"].([]any); len(messages) != count {
				t.Errorf("%s, named by %q, gives %d messages, want %d", path, named, len(messages), count)
			}
		}
		got := call(t, s, http.MethodPost, "/api/memory/threads/garden/working-memory"+named[0], `{"workingMemory":"no document"`+named[1]+`}`)
		if got.status != http.StatusUnprocessableEntity {
			t.Errorf("working memory, named by %q: %d", named, got.status)
		}
	}
}

func TestAnAgentIsNotNamedInTwoWays(t *testing.T) {
	t.Parallel()
	e := detached(quiet())
	for path, body := range map[string]string{
		"threads":                           `"resourceId":"sam"`,
		"threads/t/clone":                   `"newThreadId":"u"`,
		"threads/t/working-memory":          `"workingMemory":"x"`,
		"threads/t/working-memory/restore":  `"version":1`,
		"save-messages":                     `"messages":[]`,
		"recall":                            `"threadId":"t"`,
		"context":                           `"threadId":"t"`,
		"processors/semantic-recall/input":  `"threadId":"t"`,
		"processors/message-history/output": `"threadId":"t","resourceId":"sam"`,
	} {
		got := send(t, e, request(http.MethodPost, "/api/memory/"+path+"?agentId=a", `{"agentId":"b",`+body+`}`))
		if p := got.problem(t); got.status != http.StatusBadRequest || !slices.Equal(p.fields(), []string{"agentId"}) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

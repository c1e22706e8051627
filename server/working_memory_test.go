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

const (
	ofThread = "/api/memory/threads/t/working-memory"
	person   = `{"type":"object","properties":{"name":{"type":"string"},"city":{"type":"string"},` +
		`"address":{"type":"object","properties":{"city":{"type":"string"}}}}}`
)

// remembering gives a server with the thread "t" of the resource "u", and the agent
// "person", whose working memory has a schema.
func remembering(t *testing.T) *httptest.Server {
	t.Helper()
	s := attached(t)
	must(t, s, http.MethodPost, "/api/memory/threads", `{"resourceId":"u","threadId":"t"}`)
	must(t, s, http.MethodPut, "/api/memory/config?agentId=person", `{"config":{"workingMemory":{"enabled":true,"schema":`+person+`}}}`)
	return s
}

// conditional sends a change with If-Match.
func conditional(t *testing.T, s *httptest.Server, path, body string, ifMatch ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for _, value := range ifMatch {
		r.Header.Add("If-Match", value)
	}
	return exchange(t, s, r)
}

func TestWorkingMemoryHasTheETagOfItsVersion(t *testing.T) {
	t.Parallel()
	s := remembering(t)
	for _, test := range []struct{ method, path, body, tag string }{
		{http.MethodGet, ofThread, "", `"0"`},
		{http.MethodPost, ofThread, `{"workingMemory":"one"}`, `"1"`},
		{http.MethodPost, ofThread, `{"workingMemory":"two","resourceId":"u","more":1}`, `"2"`},
		{http.MethodPost, ofThread + "/restore", `{"version":1}`, `"3"`},
		{http.MethodGet, ofThread + "?resourceId=u", "", `"3"`},
		{http.MethodGet, ofThread + "/instruction", "", `"3"`},
	} {
		got := call(t, s, test.method, test.path, test.body)
		if got.status != http.StatusOK || got.header.Get("ETag") != test.tag {
			t.Errorf("%s %s: %d %s, ETag %s, want %s", test.method, test.path, got.status, got.body, got.header.Get("ETag"), test.tag)
		}
	}
	body := must(t, s, http.MethodGet, ofThread, "")
	if body["workingMemory"] != "one" || body["version"] != 3.0 || body["updatedAt"] == nil {
		t.Errorf("it is %v", body)
	}
}

func TestIfMatchNamesTheVersionsThatMayBeChanged(t *testing.T) {
	t.Parallel()
	s := remembering(t)
	for _, test := range []struct {
		match  []string
		status int
	}{
		{[]string{`"1"`}, 412},
		{[]string{`"0"`}, 200},
		{[]string{`"0"`}, 412},
		{[]string{`*`}, 200},
		{[]string{`W/"2"`}, 412},
		{[]string{`"8", "2"`}, 200},
		{[]string{`x`}, 400},
		{nil, 200},
	} {
		// A text that is new, whatever came before.
		got := conditional(t, s, ofThread, `{"workingMemory":`+quote(t.Name()+strings.Join(test.match, "")+string(rune('a'+test.status%7)))+`}`, test.match...)
		if got.status != test.status {
			t.Errorf("If-Match %q: %d %s, want %d", test.match, got.status, got.body, test.status)
		}
		if test.status == 400 && !slices.Equal(got.problem(t).fields(), []string{"If-Match"}) {
			t.Errorf("If-Match %q names %q", test.match, got.problem(t).fields())
		}
	}
	if got := conditional(t, s, ofThread+"/restore", `{"version":1}`, `"3"`); got.status != 412 {
		t.Errorf("a restore: %d %s", got.status, got.body)
	}
}

// Two servers on one database, as two processes are.
func TestOfTwoServersOneLosesTheRaceAndBothAreMergedInTheEnd(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	var servers []*httptest.Server
	for range 2 {
		s := httptest.NewServer(server.New(recall.New(dbtest.Open(t, url), recall.DefaultLimits()), quiet()))
		t.Cleanup(s.Close)
		servers = append(servers, s)
	}
	must(t, servers[0], http.MethodPost, "/api/memory/threads", `{"resourceId":"u","threadId":"t"}`)
	must(t, servers[0], http.MethodPut, "/api/memory/config?agentId=person", `{"config":{"workingMemory":{"schema":`+person+`}}}`)
	const path = ofThread + "?agentId=person"
	must(t, servers[0], http.MethodPost, path, `{"workingMemory":"{}"}`)

	bodies := []string{`{"merge":{"name":"A"}}`, `{"merge":{"city":"B"}}`}
	results := make(chan int, 2)
	for i, s := range servers {
		go func() { results <- conditional(t, s, path, bodies[i], `"1"`).status }()
	}
	statuses := []int{<-results, <-results}
	slices.Sort(statuses)
	if !slices.Equal(statuses, []int{200, 412}) {
		t.Fatalf("the two got %v", statuses)
	}
	for i, s := range servers { // whoever lost tries again; the other's says nothing new
		tag := call(t, s, http.MethodGet, path, "").header.Get("ETag")
		if got := conditional(t, s, path, bodies[i], tag); got.status != 200 {
			t.Fatalf("again: %d %s", got.status, got.body)
		}
	}
	var document map[string]string
	last := must(t, servers[1], http.MethodGet, path, "")
	if err := json.Unmarshal([]byte(last["workingMemory"].(string)), &document); err != nil || document["name"] != "A" || document["city"] != "B" || last["version"] != 3.0 {
		t.Errorf("in the end it is %v", last)
	}
	versions := must(t, servers[0], http.MethodGet, ofThread+"/versions", "")["versions"].([]any)
	if len(versions) != 3 {
		t.Fatalf("the history is %v", versions)
	}
	for i, keys := range []int{2, 1, 0} { // of the document, newest first
		version := versions[i].(map[string]any)
		var document map[string]string
		if err := json.Unmarshal([]byte(version["workingMemory"].(string)), &document); err != nil || len(document) != keys || version["version"] != float64(3-i) {
			t.Errorf("version %d is %v", 3-i, version)
		}
	}
}

func TestVersionsComeInPagesNewestFirst(t *testing.T) {
	t.Parallel()
	s := remembering(t)
	for _, text := range []string{"one", "two", "three"} {
		must(t, s, http.MethodPost, ofThread, `{"workingMemory":`+quote(text)+`}`)
	}
	for query, want := range map[string]string{
		"":                    "three two one",
		"?perPage=2":          "three two",
		"?perPage=2&before=2": "one",
		"?before=1":           "",
	} {
		var texts []string
		for _, version := range must(t, s, http.MethodGet, ofThread+"/versions"+query, "")["versions"].([]any) {
			texts = append(texts, version.(map[string]any)["workingMemory"].(string))
		}
		if got := strings.Join(texts, " "); got != want {
			t.Errorf("%s gives %q, want %q", query, got, want)
		}
	}
}

func TestADocumentIsTakenAsTextAndAsAnObject(t *testing.T) {
	t.Parallel()
	s := remembering(t)
	const path = ofThread + "?agentId=person"
	for _, body := range []string{`{"workingMemory":{ "name": "Sam" }}`, `{"workingMemory":"{ \"name\": \"Sam\" }"}`} {
		if got := must(t, s, http.MethodPost, path, body); got["workingMemory"] != `{"name":"Sam"}` || got["version"] != 1.0 {
			t.Errorf("%s gives %v", body, got)
		}
	}
	template := must(t, s, http.MethodGet, path, "")["workingMemoryTemplate"].(map[string]any)
	if template["format"] != "json" || template["content"] != `{"address":{"city":""},"name":"","city":""}` && !strings.Contains(template["content"].(string), `"name":""`) {
		t.Errorf("the template is %v", template)
	}
}

func TestWhatTheSchemaDoesNotAdmitIsA422ThatChangesNothing(t *testing.T) {
	t.Parallel()
	s := remembering(t)
	const path = ofThread + "?agentId=person"
	must(t, s, http.MethodPost, path, `{"workingMemory":{"name":"Sam"}}`)
	for body, field := range map[string]string{
		`{"workingMemory":{"address":{"city":7}}}`:                                  "workingMemory.address.city",
		`{"workingMemory":"{\"name\":1}"}`:                                          "workingMemory.name",
		`{"workingMemory":"# Profile"}`:                                             "workingMemory",
		`{"workingMemory":null}`:                                                    "workingMemory",
		`{"merge":{"address":{"city":["x"]}}}`:                                      "workingMemory.address.city",
		`{"workingMemory":[1],"memoryConfig":{"workingMemory":{"scope":"thread"}}}`: "workingMemory",
	} {
		got := call(t, s, http.MethodPost, path, body)
		if got.status != 422 || !slices.Equal(got.problem(t).fields(), []string{field}) {
			t.Errorf("%s: %d %s, want 422 naming %s", body, got.status, got.body, field)
		}
	}
	if got := must(t, s, http.MethodGet, path, ""); got["workingMemory"] != `{"name":"Sam"}` || got["version"] != 1.0 {
		t.Errorf("it is %v", got)
	}
}

func TestTheScopeIsThatOfTheAgentOrTheCall(t *testing.T) {
	t.Parallel()
	s := remembering(t)
	must(t, s, http.MethodPut, "/api/memory/config?agentId=threads", `{"config":{"workingMemory":{"scope":"thread","template":"# Mine"}}}`)
	must(t, s, http.MethodPost, ofThread, `{"workingMemory":"of the user"}`)
	must(t, s, http.MethodPost, ofThread+"?agentId=threads", `{"workingMemory":"of the thread"}`)
	must(t, s, http.MethodPost, ofThread, `{"workingMemory":"of the thread still","memoryConfig":{"workingMemory":{"scope":"thread"}}}`)
	for query, want := range map[string][]string{
		"":                 {"resource", "of the user"},
		"?agentId=threads": {"thread", "of the thread still"},
		`?memoryConfig={"workingMemory":{"scope":"thread"}}`:                   {"thread", "of the thread still"},
		`?agentId=threads&memoryConfig={"workingMemory":{"scope":"resource"}}`: {"resource", "of the user"},
	} {
		got := must(t, s, http.MethodGet, ofThread+query, "")
		if got["source"] != want[0] || got["workingMemory"] != want[1] {
			t.Errorf("%s gives %v, want %v", query, got, want)
		}
	}
	if got := must(t, s, http.MethodGet, ofThread+"?agentId=threads", ""); got["workingMemoryTemplate"].(map[string]any)["content"] != "# Mine" {
		t.Errorf("the template is %v", got["workingMemoryTemplate"])
	}
}

func TestInstructionAndToolAreThoseOfTheAgent(t *testing.T) {
	t.Parallel()
	s := remembering(t)
	must(t, s, http.MethodPost, ofThread, `{"workingMemory":"{\"name\":\"Sam\"}"}`)
	for query, words := range map[string][]string{
		"":                {`{"name":"Sam"}`, "# User Information", "updateWorkingMemory"},
		"?agentId=person": {`{"name":"Sam"}`, `"properties"`, "updateWorkingMemory"},
	} {
		instruction := must(t, s, http.MethodGet, ofThread+"/instruction"+query, "")["instruction"].(string)
		for _, word := range words {
			if !strings.Contains(instruction, word) {
				t.Errorf("the instruction of %q lacks %s: %s", query, word, instruction)
			}
		}
	}
	for query, kind := range map[string]string{"": "string", "?agentId=person": "object"} {
		tool := must(t, s, http.MethodGet, ofThread+"/tool"+query, "")["tool"].(map[string]any)
		parameters := tool["parameters"].(map[string]any)
		memory := parameters["properties"].(map[string]any)["memory"].(map[string]any)
		if tool["name"] != "updateWorkingMemory" || tool["description"] == "" || parameters["type"] != "object" || memory["type"] != kind {
			t.Errorf("the tool of %q is %v", query, tool)
		}
	}
}

func TestACloneForAnotherTakesTheMemoryOfResourcesWhereItsAgentHasThat(t *testing.T) {
	t.Parallel()
	s := remembering(t)
	must(t, s, http.MethodPost, ofThread, `{"workingMemory":"notes"}`)
	must(t, s, http.MethodPut, "/api/memory/config?agentId=threads", `{"config":{"workingMemory":{"enabled":true,"scope":"thread"}}}`)
	for agent, want := range map[string]any{"person": "notes", "threads": nil, "unknown": nil} {
		must(t, s, http.MethodPost, "/api/memory/threads/t/clone?agentId="+agent, `{"newThreadId":"of-`+agent+`","resourceId":"for-`+agent+`"}`)
		if got := must(t, s, http.MethodGet, "/api/memory/threads/of-"+agent+"/working-memory", ""); got["workingMemory"] != want {
			t.Errorf("with %s it is %v, want %v", agent, got["workingMemory"], want)
		}
	}
}

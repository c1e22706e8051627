package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pgrecall/pgrecall/recall"
)

// counted gives counts as answers have them, for those that are not zero.
func counted(t *testing.T, counts map[string]int) string {
	t.Helper()
	all := map[string]int{"threads": 0, "messages": 0, "vectors": 0, "workingMemory": 0, "versions": 0, "jobs": 0, "idempotencyKeys": 0}
	for name, n := range counts {
		if _, known := all[name]; !known {
			t.Fatal(name)
		}
		all[name] = n
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// countsOf gives the counts of an answer.
func countsOf(t *testing.T, answer map[string]any) string {
	t.Helper()
	text, err := json.Marshal(answer["counts"])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAUserIsErasedWithAReceipt(t *testing.T) {
	t.Parallel()
	s := attached(t)
	say(t, s, "sam", "one", "Tea", "Trains", "Whales")
	say(t, s, "sam", "two", "Bread")
	say(t, s, "kim", "other", "Guitars")
	const sam = "/api/memory/resources/sam"
	held := must(t, s, http.MethodGet, sam, "")
	want := counted(t, map[string]int{"threads": 2, "messages": 4, "vectors": 4})
	if held["resourceId"] != "sam" || countsOf(t, held) != want || len(held) != 4 {
		t.Errorf("held: %v, want %s", held, want)
	}
	for _, name := range []string{"firstActivityAt", "lastActivityAt"} {
		if _, err := time.Parse("2006-01-02T15:04:05.000Z", held[name].(string)); err != nil {
			t.Error(name, err)
		}
	}
	for _, want := range []string{want, counted(t, nil)} { // the second time of nothing
		receipt := must(t, s, http.MethodDelete, sam, "")
		if _, err := time.Parse("2006-01-02T15:04:05.000Z", receipt["erasedAt"].(string)); err != nil {
			t.Error(err)
		}
		if receipt["resourceId"] != "sam" || countsOf(t, receipt) != want || len(receipt) != 3 {
			t.Errorf("receipt: %v, want %s", receipt, want)
		}
	}
	if got := call(t, s, http.MethodGet, sam, ""); got.status != http.StatusNotFound || got.problem(t).Error != "Resource not found" {
		t.Errorf("afterwards: %d %s", got.status, got.body)
	}
	if held := must(t, s, http.MethodGet, "/api/memory/resources/kim", ""); countsOf(t, held) != counted(t, map[string]int{"threads": 1, "messages": 1, "vectors": 1}) {
		t.Errorf("of the other: %v", held)
	}
}

func TestAResourceIsFoundByAnyIDInThePath(t *testing.T) {
	t.Parallel()
	s := attached(t)
	for i, id := range []string{"a/b", "a", "a:b", "A", "a ", "é", "e\u0301", "100%", "a?b#c", `"'`, "../a", "ユーザー"} {
		say(t, s, id, fmt.Sprint("t", i), "Hello")
		path := "/api/memory/resources/" + escaped(id)
		receipt := must(t, s, http.MethodDelete, path, "")
		if receipt["resourceId"] != id || receipt["counts"].(map[string]any)["threads"] != 1.0 {
			t.Errorf("%q: %v", id, receipt)
		}
	}
}

// escaped gives an id as it stands in a path.
func escaped(id string) string {
	var path strings.Builder
	for i := range len(id) {
		fmt.Fprintf(&path, "%%%02X", id[i])
	}
	return path.String()
}

func TestAThreadBelongsToTheAgentOfTheCallThatCreatesIt(t *testing.T) {
	t.Parallel()
	r := newRemote(t, quiet())
	const message = `{"id":"%s","threadId":"%[1]s","resourceId":"sam","role":"user","content":"Hello"}`
	must(t, r.Server, http.MethodPost, "/api/memory/threads?agentId=agent", `{"threadId":"created","resourceId":"sam"}`)
	must(t, r.Server, http.MethodPost, "/api/memory/threads", `{"threadId":"of no agent","resourceId":"sam"}`)
	must(t, r.Server, http.MethodPost, "/api/memory/save-messages?agentId=agent", `{"createThread":true,"messages":[`+fmt.Sprintf(message, "saved")+`]}`)
	must(t, r.Server, http.MethodPost, "/api/memory/threads/saved/clone", `{"newThreadId":"cloned"}`)
	for _, name := range []string{"semantic-recall", "message-history"} {
		must(t, r.Server, http.MethodPost, processors+name+"/output",
			`{"agentId":"agent","threadId":"`+name+`","resourceId":"sam","messages":[`+fmt.Sprintf(message, name)+`]}`)
	}
	must(t, r.Server, http.MethodPut, ofAgent, `{"config":{"retention":{"threads":{"maxAge":"1h"}}}}`)
	if _, err := r.pool.Exec(t.Context(), `UPDATE recall.threads SET updated_at = updated_at - interval '61 minutes'`); err != nil {
		t.Fatal(err)
	}
	if err := recall.New(r.pool, recall.DefaultLimits()).Retain(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	left := must(t, r.Server, http.MethodGet, "/api/memory/threads", "")["threads"].([]any)
	if len(left) != 1 || left[0].(map[string]any)["id"] != "of no agent" {
		t.Errorf("left: %v", left)
	}
}

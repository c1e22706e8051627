package server_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
)

// filled gives a server with a thread "t" of the resource "u" with the messages
// m1 to m12, a second apart.
func filled(t *testing.T) *httptest.Server {
	t.Helper()
	s := attached(t)
	must(t, s, http.MethodPost, "/api/memory/threads", `{"resourceId":"u","threadId":"t"}`)
	var messages []string
	for i := 1; i <= 12; i++ {
		n := strconv.Itoa(i)
		messages = append(messages, `{"id":"m`+n+`","threadId":"t","resourceId":"u","role":"user",`+
			`"createdAt":"2026-03-01T10:00:`+strconv.Itoa(i+10)+`Z","content":"message `+n+`"}`)
	}
	must(t, s, http.MethodPost, "/api/memory/save-messages", `{"messages":[`+strings.Join(messages, ",")+`]}`)
	return s
}

// numbered names the messages from first to last.
func numbered(first, last int) []string {
	ids := []string{}
	for i := first; i <= last; i++ {
		ids = append(ids, "m"+strconv.Itoa(i))
	}
	return ids
}

func TestRecallByBodyHasTheDefaultsOfRecall(t *testing.T) {
	t.Parallel()
	s := filled(t)
	for _, test := range []struct {
		body string
		want []string
	}{
		{`{"threadId":"t"}`, numbered(3, 12)},
		{`{"threadId":"t","agentId":"nobody"}`, numbered(3, 12)},
		{`{"resourceId":"u"}`, numbered(3, 12)},
		{`{"threadId":"t","threadConfig":{"lastMessages":2,"workingMemory":{"enabled":true}}}`, numbered(11, 12)},
		{`{"threadId":"t","threadConfig":{"lastMessages":false,"semanticRecall":false}}`, numbered(1, 0)},
		{`{"threadId":"t","perPage":3,"threadConfig":{"lastMessages":2}}`, numbered(10, 12)},
		{`{"threadId":"t","perPage":false}`, numbered(1, 12)},
		{`{"threadId":"t","include":[{"id":"m5"}]}`, numbered(5, 5)},
		{`{"threadId":"t","include":[{"id":"m5"}],"threadConfig":{"lastMessages":2}}`, numbered(5, 5)},
		{`{"threadId":"t","include":[{"id":"m11"}],"page":0,"threadConfig":{"lastMessages":2}}`, numbered(11, 12)},
		{`{"threadId":"t","perPage":2,"orderBy":{"direction":"ASC"}}`, numbered(1, 2)},
		{`{"threadId":"t","perPage":2,"cursor":null,"vectorSearchString":""}`, numbered(11, 12)},
	} {
		if got := messageIDs(must(t, s, http.MethodPost, "/api/memory/recall", test.body)); !slices.Equal(got, test.want) {
			t.Errorf("%s gives %q, want %q", test.body, got, test.want)
		}
	}
}

func TestRecallMayLeaveOutTheTotal(t *testing.T) {
	t.Parallel()
	s := filled(t)
	for _, answer := range []map[string]any{
		must(t, s, http.MethodPost, "/api/memory/recall", `{"threadId":"t","includeTotal":false}`),
		must(t, s, http.MethodGet, "/api/memory/threads/t/messages?includeTotal=false", ""),
	} {
		if total, ok := answer["total"]; !ok || total != nil {
			t.Errorf("total is %v, want null", total)
		}
	}
}

func TestAWalkByCursorSeesEachMessageOnce(t *testing.T) {
	t.Parallel()
	s := filled(t)
	var walked []string
	cursor := ""
	for range 10 {
		page := must(t, s, http.MethodGet, "/api/memory/threads/t/messages?perPage=5&cursor="+url.QueryEscape(cursor), "")
		walked = append(walked, messageIDs(page)...)
		next, more := page["nextCursor"].(string)
		if page["hasMore"] != more {
			t.Errorf("hasMore is %v with nextCursor %q", page["hasMore"], next)
		}
		if !more {
			break
		}
		cursor = next
	}
	if !slices.Equal(walked, numbered(1, 12)) {
		t.Errorf("the walk gives %q", walked)
	}
}

func TestEverythingAsAPage(t *testing.T) {
	t.Parallel()
	s := filled(t)
	for _, target := range []string{"/api/memory/threads/t/messages", "/api/memory/threads"} {
		if got := must(t, s, http.MethodGet, target+"?perPage=false", "")["perPage"]; got != false {
			t.Errorf("%s: perPage is %v, want false", target, got)
		}
	}
}

func TestExplainSaysWhyAMessageIsThere(t *testing.T) {
	t.Parallel()
	s := filled(t)
	answer := must(t, s, http.MethodPost, "/api/memory/recall",
		`{"threadId":"t","explain":true,"include":[{"id":"m5","withPreviousMessages":1}]}`)
	unknown := map[string]any{"mode": nil, "plan": nil, "visited": nil, "pending": nil, "backlogSeconds": nil}
	if got := answer["explain"]; !reflect.DeepEqual(got, unknown) {
		t.Errorf("the answer's explain is %v, want %v", got, unknown)
	}
	want := []map[string]any{
		{"reason": []any{"context"}, "score": nil, "similarity": nil, "words": nil, "rank": nil, "contextOf": "m5", "offset": -1.0},
		{"reason": []any{"include"}, "score": nil, "similarity": nil, "words": nil, "rank": nil, "contextOf": nil, "offset": nil},
	}
	for i, message := range answer["messages"].([]any) {
		if got := message.(map[string]any)["explain"]; !reflect.DeepEqual(got, any(want[i])) {
			t.Errorf("message %d: explain is %v, want %v", i, got, want[i])
		}
	}
}

func TestMessagesAreUpdatedByID(t *testing.T) {
	t.Parallel()
	s := filled(t)
	updated := must(t, s, http.MethodPatch, "/api/memory/messages",
		`{"messages":[{"id":"m1","role":"assistant","content":{"metadata":{"seen":true}}}]}`)
	message := updated["messages"].([]any)[0].(map[string]any)
	content := message["content"].(map[string]any)
	if message["role"] != "assistant" || content["content"] != "message 1" || !reflect.DeepEqual(content["metadata"], map[string]any{"seen": true}) {
		t.Errorf("the update gives %v", message)
	}
	before := call(t, s, http.MethodGet, "/api/memory/threads/t/messages", "").body
	refused := call(t, s, http.MethodPatch, "/api/memory/messages",
		`{"messages":[{"id":"m2","role":"tool"},{"id":"nobody","role":"tool"}]}`)
	if refused.status != http.StatusNotFound {
		t.Errorf("an unknown id: %d %s, want 404", refused.status, refused.body)
	}
	if after := call(t, s, http.MethodGet, "/api/memory/threads/t/messages", "").body; string(after) != string(before) {
		t.Error("a refused update changed something")
	}
}

func TestAThreadIsEmptied(t *testing.T) {
	t.Parallel()
	s := filled(t)
	got := must(t, s, http.MethodDelete, "/api/memory/threads/t/messages", "")
	if got["message"] != "12 messages deleted successfully" {
		t.Errorf("emptying a thread gives %v", got)
	}
	page := must(t, s, http.MethodGet, "/api/memory/threads/t/messages", "")
	if page["total"] != 0.0 {
		t.Errorf("total is %v after that", page["total"])
	}
}

func TestCloneUtilities(t *testing.T) {
	t.Parallel()
	s := filled(t)
	must(t, s, http.MethodPost, "/api/memory/threads/t/clone", `{"newThreadId":"c1"}`)
	must(t, s, http.MethodPost, "/api/memory/threads/c1/clone", `{"newThreadId":"c2","options":{"messageFilter":{"messageIds":[]}}}`)
	for path, want := range map[string][]string{"t/clones": {"c1"}, "c2/clones": {}, "c2/clone-history": {"t", "c1", "c2"}} {
		ids := []string{}
		for _, thread := range must(t, s, http.MethodGet, "/api/memory/threads/"+path, "")["threads"].([]any) {
			ids = append(ids, thread.(map[string]any)["id"].(string))
		}
		if !slices.Equal(ids, want) {
			t.Errorf("%s gives %q, want %q", path, ids, want)
		}
	}
	source := must(t, s, http.MethodGet, "/api/memory/threads/c2/source", "")["thread"].(map[string]any)
	if source["id"] != "c1" {
		t.Errorf("the source of c2 is %v", source["id"])
	}
	if none := must(t, s, http.MethodGet, "/api/memory/threads/t/source", ""); none["thread"] != nil {
		t.Errorf("the source of t is %v, want null", none["thread"])
	}
	if page := must(t, s, http.MethodGet, "/api/memory/threads/c2/messages", ""); page["total"] != 0.0 {
		t.Errorf("a clone of no messages has %v", page["total"])
	}
}

// beforeItsThread says of a route that it answers before there is the thread: what a
// model is told of working memory, which a resource has already.
func beforeItsThread(route *echo.Route) bool {
	return route.Method == http.MethodGet && strings.Contains(route.Path, "/working-memory") && !strings.HasSuffix(route.Path, "/versions")
}

// Every route under a thread takes resourceId as a condition on its owner.
func TestEveryThreadRouteChecksTheOwner(t *testing.T) {
	t.Parallel()
	s := filled(t)
	before := call(t, s, http.MethodGet, "/api/memory/threads/t/messages", "").body
	for id, status := range map[string]int{"t": http.StatusForbidden, "none": http.StatusNotFound} {
		for _, route := range detached(quiet()).Routes() {
			if !strings.Contains(route.Path, ":threadId") {
				continue
			}
			target := strings.Replace(route.Path, ":threadId", id, 1) + "?resourceId=thief"
			got := call(t, s, route.Method, target, validBodies[route.Method+" "+route.Path])
			want := status
			if id == "none" && beforeItsThread(route) {
				want = http.StatusOK
			}
			if got.status != want {
				t.Errorf("%s %s: %d %s, want %d", route.Method, target, got.status, got.body, want)
			}
		}
	}
	if after := call(t, s, http.MethodGet, "/api/memory/threads/t/messages", "").body; string(after) != string(before) {
		t.Error("a refused request changed something")
	}
}

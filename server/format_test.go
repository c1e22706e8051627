package server_test

import (
	"net/http"
	"slices"
	"testing"
)

func TestAnUnknownFormatIsRefusedByEveryRouteThatGivesMessages(t *testing.T) {
	t.Parallel()
	e := detached(quiet())
	for _, format := range []string{"", "AISDK-V5", "aisdk", "mastra", "v5", "null"} {
		for _, r := range []*http.Request{
			request(http.MethodGet, "/api/memory/threads/t/messages?format="+format, ""),
			request(http.MethodPost, "/api/memory/recall?format="+format, `{"threadId":"t"}`),
			request(http.MethodPost, "/api/memory/recall", `{"threadId":"t","format":"`+format+`"}`),
			request(http.MethodPost, "/api/memory/save-messages?format="+format, `{"messages":[]}`),
			request(http.MethodPatch, "/api/memory/messages?format="+format, `{"messages":[]}`),
			request(http.MethodPost, "/api/memory/threads/t/clone?format="+format, `{}`),
			request(http.MethodPost, "/api/memory/context?format="+format, `{"threadId":"t"}`),
			request(http.MethodPost, "/api/memory/context", `{"threadId":"t","format":"`+format+`"}`),
			request(http.MethodPost, processors+"semantic-recall/input?format="+format, `{"threadId":"t"}`),
			request(http.MethodPost, processors+"semantic-recall/output", `{"threadId":"t","resourceId":"sam","format":"`+format+`"}`),
			request(http.MethodPost, processors+"working-memory/input?format="+format, `{"threadId":"t"}`),
			request(http.MethodPost, processors+"working-memory/output?format="+format, `{"threadId":"t","resourceId":"sam"}`),
			request(http.MethodPost, processors+"message-history/input", `{"threadId":"t","format":"`+format+`"}`),
			request(http.MethodPost, processors+"message-history/output?format="+format, `{"threadId":"t","resourceId":"sam"}`),
		} {
			got := send(t, e, r)
			if fields := got.problem(t).fields(); got.status != http.StatusBadRequest || !slices.Equal(fields, []string{"format"}) {
				t.Errorf("%s %s: %d, fields %q", r.Method, r.URL, got.status, fields)
			}
		}
	}
}

func TestAFormatIsGivenOnceAndAsAString(t *testing.T) {
	t.Parallel()
	e := detached(quiet())
	for target, body := range map[string]string{
		"/api/memory/recall?format=openai":                 `{"threadId":"t","format":"openai"}`,
		"/api/memory/recall?format=openai&format=aisdk-v5": `{"threadId":"t"}`,
		"/api/memory/recall":                               `{"threadId":"t","format":null}`,
	} {
		got := send(t, e, request(http.MethodPost, target, body))
		if fields := got.problem(t).fields(); got.status != http.StatusBadRequest || !slices.Equal(fields, []string{"format"}) {
			t.Errorf("%s %s: %d, fields %q", target, body, got.status, fields)
		}
	}
}

func TestAPageInAFormatIsThePageOtherwise(t *testing.T) {
	t.Parallel()
	s := filled(t)
	const target = "/api/memory/threads/t/messages?perPage=5&page=1"
	stored, formatted := must(t, s, http.MethodGet, target, ""), must(t, s, http.MethodGet, target+"&format=aisdk-v5", "")
	if got, want := messageIDs(formatted), messageIDs(stored); !slices.Equal(got, want) {
		t.Errorf("the messages are %q, want %q", got, want)
	}
	for _, name := range []string{"total", "page", "perPage", "hasMore", "nextCursor"} {
		if formatted[name] != stored[name] {
			t.Errorf("%s is %v, want %v", name, formatted[name], stored[name])
		}
	}
}

// APIs of models refuse members that they do not know.
func TestExplainStandsInMessagesForPeopleOnly(t *testing.T) {
	t.Parallel()
	s := filled(t)
	for format, want := range map[string]bool{"aisdk-v5": true, "aisdk-v4": true, "openai": false, "anthropic": false} {
		answer := must(t, s, http.MethodPost, "/api/memory/recall", `{"threadId":"t","perPage":1,"explain":true,"format":"`+format+`"}`)
		message := answer["messages"].([]any)[0].(map[string]any)
		if _, got := message["explain"]; got != want {
			t.Errorf("%s: explain is there: %v, want %v", format, got, want)
		}
		if _, ok := answer["explain"]; !ok {
			t.Errorf("%s: the answer has no explain", format)
		}
	}
}

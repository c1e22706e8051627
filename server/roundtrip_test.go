package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// must sends a request that has to succeed and decodes its answer.
func must(t *testing.T, s *httptest.Server, method, target, body string) map[string]any {
	t.Helper()
	got := call(t, s, method, target, body)
	if got.status != http.StatusOK {
		t.Fatalf("%s %s %s: %d %s", method, target, body, got.status, got.body)
	}
	var decoded map[string]any
	if err := json.Unmarshal(got.body, &decoded); err != nil {
		t.Fatal(err)
	}
	return decoded
}

func quote(text string) string {
	quoted, _ := json.Marshal(text)
	return string(quoted)
}

func TestAnyIDRoundTripsThroughThePath(t *testing.T) {
	t.Parallel()
	s := attached(t)
	for _, id := range []string{
		"a:b", "a/b", "50%", "50%25", "%2F", "../x", "..", ".", "a b", " a", "a ", "a+b", "a?b#c", "a&b=c", "a;b",
		"\u00e9", "e\u0301", "日本", "😀", "a\\b", "a\"b", "a\nb", "threads", strings.Repeat("x", 512),
	} {
		must(t, s, http.MethodPost, "/api/memory/threads", `{"resourceId":"u","threadId":`+quote(id)+`}`)
		path := "/api/memory/threads/" + segment(id)
		if got := must(t, s, http.MethodGet, path, "")["id"]; got != id {
			t.Errorf("%q came back as %q", id, got)
		}
		must(t, s, http.MethodPost, "/api/memory/save-messages",
			`{"messages":[{"id":`+quote(id)+`,"threadId":`+quote(id)+`,"resourceId":"u","role":"user","content":"x"}]}`)
		if got := messageIDs(must(t, s, http.MethodGet, path+"/messages", "")); len(got) != 1 || got[0] != id {
			t.Errorf("%q has the messages %q", id, got)
		}
		if got := must(t, s, http.MethodDelete, path, "")["result"]; got != "Thread deleted" {
			t.Errorf("%q: %v", id, got)
		}
	}
}

// segment escapes an id for a path. Dots are escaped too: clients and proxies
// resolve ".." in a path.
func segment(id string) string { return strings.ReplaceAll(url.PathEscape(id), ".", "%2E") }

func TestContentComesBackAsItWasSent(t *testing.T) {
	t.Parallel()
	s := attached(t)
	content := `{"format": 2, "parts": [{"type": "text", "text": "<a href=\"x\">&</a> \u2028 😀 \\u0000"}], "metadata": {"n": 12345678901234567890.123456789, "e": 1e30}, "unknown": {"deep": [[[{}]]], "null": null}}`
	must(t, s, http.MethodPost, "/api/memory/threads", `{"resourceId":"u","threadId":"t"}`)
	must(t, s, http.MethodPost, "/api/memory/save-messages",
		`{"messages":[{"id":"m","threadId":"t","resourceId":"u","role":"user","content":`+content+`}]}`)
	got := call(t, s, http.MethodGet, "/api/memory/threads/t/messages", "")
	var answer struct {
		Messages []struct{ Content json.RawMessage }
	}
	if err := json.Unmarshal(got.body, &answer); err != nil {
		t.Fatal(err)
	}
	if want, got := exact(t, content), exact(t, string(answer.Messages[0].Content)); want != got {
		t.Errorf("content came back as\n%s, want\n%s", got, want)
	}
	if !strings.Contains(string(answer.Messages[0].Content), "12345678901234567890.123456789") {
		t.Errorf("digits were lost: %s", answer.Messages[0].Content)
	}
}

// exact writes JSON with sorted keys and every digit of its numbers, but for
// those that PostgreSQL writes out.
func exact(t *testing.T, text string) string {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(strings.ReplaceAll(text, "1e30", "1000000000000000000000000000000")))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func TestTimesAreReadInUTCToTheMillisecond(t *testing.T) {
	t.Parallel()
	s := attached(t)
	must(t, s, http.MethodPost, "/api/memory/threads", `{"resourceId":"u","threadId":"t"}`)
	for id, times := range map[string][2]string{
		"offset":    {"2026-03-01T10:00:00.123+05:30", "2026-03-01T04:30:00.123Z"},
		"cut":       {"2026-03-01T10:00:00.9999999Z", "2026-03-01T10:00:00.999Z"},
		"date":      {"2026-03-01", "2026-03-01T00:00:00.000Z"},
		"first":     {"0001-01-01T00:00:00.001Z", "0001-01-01T00:00:00.001Z"},
		"last":      {"9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999Z"},
		"before 70": {"1969-12-31T23:59:59.9995Z", "1969-12-31T23:59:59.999Z"},
	} {
		saved := must(t, s, http.MethodPost, "/api/memory/save-messages",
			`{"messages":[{"id":"`+id+`","threadId":"t","resourceId":"u","role":"user","content":"x","createdAt":"`+times[0]+`"}]}`)
		if got := saved["messages"].([]any)[0].(map[string]any)["createdAt"]; got != times[1] {
			t.Errorf("%s: %s was saved as %s, want %s", id, times[0], got, times[1])
		}
		filter := `{"dateRange":{"start":"` + times[1] + `","end":"` + times[1] + `"}}`
		page := must(t, s, http.MethodGet, "/api/memory/threads/t/messages?filter="+url.QueryEscape(filter), "")
		if ids := messageIDs(page); len(ids) != 1 || ids[0] != id {
			t.Errorf("%s: its own time as both bounds finds %q", id, ids)
		}
	}
}

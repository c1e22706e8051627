package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// callWith is call with a header more; an empty value is none.
func callWith(t *testing.T, s *httptest.Server, name, value, method, target, body string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if value != "" {
		r.Header.Set(name, value)
	}
	return exchange(t, s, r)
}

const threadTarget = "/api/memory/threads/t"

func TestTheETagOfAThreadCountsChangesOfTitleMetadataAndOwner(t *testing.T) {
	t.Parallel()
	s := attached(t)
	for _, step := range []struct{ method, target, body, etag string }{
		{http.MethodPost, "/api/memory/threads", `{"threadId":"t","resourceId":"sam"}`, `"1"`},
		{http.MethodGet, threadTarget, "", `"1"`},
		{http.MethodPost, "/api/memory/save-messages", saving("Hello"), ""},
		{http.MethodGet, threadTarget, "", `"1"`},
		{http.MethodPatch, threadTarget, `{"title":"Tea"}`, `"2"`},
		{http.MethodPatch, threadTarget, `{"metadata":{"a":1}}`, `"3"`},
		{http.MethodPatch, threadTarget, `{}`, `"3"`},
		{http.MethodPost, "/api/memory/threads", `{"threadId":"t","resourceId":"sam","title":"Coffee"}`, `"4"`},
		{http.MethodPost, threadTarget + "/transfer", `{"resourceId":"kim"}`, `"5"`},
		{http.MethodGet, threadTarget, "", `"5"`},
	} {
		got := call(t, s, step.method, step.target, step.body)
		if got.status != http.StatusOK || got.header.Get("ETag") != step.etag {
			t.Errorf("%s %s %s: %d, ETag %s, want %s: %s", step.method, step.target, step.body, got.status, got.header.Get("ETag"), step.etag, got.body)
		}
	}
}

// changes are the ways to change the thread that take If-Match.
var changes = []struct{ method, target, body string }{
	{http.MethodPatch, threadTarget, `{"title":"new"}`},
	{http.MethodPatch, threadTarget, `{}`},
	{http.MethodPost, threadTarget + "/transfer", `{"resourceId":"kim"}`},
	{http.MethodDelete, threadTarget, ""},
}

func TestIfMatchIsReadAsRFC9110Says(t *testing.T) {
	t.Parallel()
	s := attached(t)
	for ifMatch, status := range map[string]int{
		`"1"`:               200,
		`*`:                 200,
		` * `:               200,
		`"9", "1"`:          200,
		`"9","1"`:           200,
		`, "1" ,, `:         200,
		`W/"1", "x,", "1"`:  200,
		`"2"`:               412,
		`"01"`:              412,
		`"+1"`:              412,
		`"0"`:               412,
		`W/"1"`:             412,
		`""`:                412,
		`"ä"`:               412,
		`"2", W/"1", "1,1"`: 412,
		`1`:                 400,
		`"1`:                400,
		`1"`:                400,
		`'1'`:               400,
		`"1" "2"`:           400,
		`"1"x`:              400,
		`w/"1"`:             400,
		`*, "1"`:            400,
		`"1", *`:            400,
		`"a b"`:             400,
		`,`:                 400,
	} {
		for _, change := range changes {
			must(t, s, http.MethodPost, "/api/memory/threads", `{"threadId":"t","resourceId":"sam"}`)
			got := callWith(t, s, "If-Match", ifMatch, change.method, change.target, change.body)
			if got.status != status {
				t.Errorf("%s %s with If-Match %s: %d %s, want %d", change.method, change.target, ifMatch, got.status, got.body, status)
			}
			if status == http.StatusBadRequest && !slices.Equal(got.problem(t).fields(), []string{"If-Match"}) {
				t.Errorf("If-Match %s: %s", ifMatch, got.body)
			}
			if tag := call(t, s, http.MethodGet, threadTarget, "").header.Get("ETag"); status != http.StatusOK && tag != `"1"` {
				t.Errorf("%s %s with If-Match %s changed the thread", change.method, change.target, ifMatch)
			}
			call(t, s, http.MethodDelete, threadTarget, "")
		}
	}
}

func TestLinesOfIfMatchAreOneList(t *testing.T) {
	t.Parallel()
	s := attached(t)
	must(t, s, http.MethodPost, "/api/memory/threads", `{"threadId":"t","resourceId":"sam"}`)
	r := request(http.MethodDelete, threadTarget, "")
	r.Header["If-Match"] = []string{`"7"`, `"1"`}
	if got := send(t, s.Config.Handler, r); got.status != http.StatusOK {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// What would fail without the condition fails alike with it.
func TestIfMatchOnWhatIsNotThereIsA404AndAnothersA403(t *testing.T) {
	t.Parallel()
	s := attached(t)
	for _, ifMatch := range []string{`"1"`, `"2"`, `*`} {
		for _, change := range changes {
			if got := callWith(t, s, "If-Match", ifMatch, change.method, change.target, change.body); got.status != http.StatusNotFound {
				t.Errorf("%s %s: %d %s", change.method, change.target, got.status, got.body)
			}
		}
	}
	must(t, s, http.MethodPost, "/api/memory/threads", `{"threadId":"t","resourceId":"sam"}`)
	for _, change := range changes {
		if got := callWith(t, s, "If-Match", `"2"`, change.method, change.target+"?resourceId=kim", change.body); got.status != http.StatusForbidden {
			t.Errorf("%s %s: %d %s", change.method, change.target, got.status, got.body)
		}
	}
}

func TestOfTwoChangesOfOneVersionOneIsLate(t *testing.T) {
	t.Parallel()
	s := attached(t)
	must(t, s, http.MethodPost, "/api/memory/threads", `{"threadId":"t","resourceId":"sam"}`)
	for round := range 20 {
		tag := call(t, s, http.MethodGet, threadTarget, "").header.Get("ETag")
		var statuses [2]int
		var both sync.WaitGroup
		for i := range statuses {
			both.Go(func() {
				body := fmt.Sprintf(`{"title":"%d of %d"}`, i, round)
				statuses[i] = callWith(t, s, "If-Match", tag, http.MethodPatch, threadTarget, body).status
			})
		}
		both.Wait()
		slices.Sort(statuses[:])
		if statuses != [2]int{http.StatusOK, http.StatusPreconditionFailed} {
			t.Errorf("%v", statuses)
		}
	}
	if tag := call(t, s, http.MethodGet, threadTarget, "").header.Get("ETag"); tag != `"21"` {
		t.Errorf("after twenty changes the thread has %s", tag)
	}
}

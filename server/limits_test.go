package server_test

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pgrecall/pgrecall/recall"
)

// list writes n items, each made from its position.
func list(n int, item func(i int) string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = item(i)
	}
	return strings.Join(items, ",")
}

func nested(depth int) string {
	return strings.Repeat(`{"a":`, depth-1) + "{}" + strings.Repeat("}", depth-1)
}

// Each limit admits what is at it, and above it names the field.
func TestLimitsAreExact(t *testing.T) {
	t.Parallel()
	limits := recall.DefaultLimits()
	s := filled(t)
	const messages = "/api/memory/threads/t/messages?"
	message := func(id, content string) string {
		return `{"id":` + id + `,"threadId":"t","resourceId":"u","role":"user","content":` + content + `}`
	}
	save := func(message string) (method, target, body string) {
		return http.MethodPost, "/api/memory/save-messages", `{"messages":[` + message + `]}`
	}
	create := func(member string) (method, target, body string) {
		return http.MethodPost, "/api/memory/threads", `{"resourceId":"u",` + member + `}`
	}
	page := func(name, value string) (method, target, body string) {
		return http.MethodGet, messages + name + "=" + url.QueryEscape(value), ""
	}
	for _, test := range []struct {
		field string
		limit int
		make  func(n int) (method, target, body string)
	}{
		{"threadId", limits.IDBytes, func(n int) (string, string, string) {
			return create(`"threadId":"` + strings.Repeat("x", n) + `"`)
		}},
		{"title", limits.TitleBytes, func(n int) (string, string, string) {
			return create(`"title":"` + strings.Repeat("x", n) + `"`)
		}},
		{"metadata", limits.MetadataBytes, func(n int) (string, string, string) {
			return create(`"metadata":{"a":"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}`)
		}},
		{"workingMemory", limits.WorkingMemoryBytes, func(n int) (string, string, string) {
			return http.MethodPost, "/api/memory/threads/t/working-memory", `{"workingMemory":"` + strings.Repeat("x", n) + `"}`
		}},
		{"metadata" + strings.Repeat(".a", limits.JSONDepth), limits.JSONDepth, func(n int) (string, string, string) {
			return create(`"metadata":` + nested(n))
		}},
		{"messages.0.id", limits.IDBytes, func(n int) (string, string, string) {
			return save(message(quote(strings.Repeat("x", n)), `"x"`))
		}},
		{"messages.0.content", limits.ContentBytes, func(n int) (string, string, string) {
			return save(message(`"large"`, `{"format":2,"parts":[],"a":"`+strings.Repeat("x", n-len(`{"format":2,"parts":[],"a":""}`))+`"}`))
		}},
		{"messages.0.content" + strings.Repeat(".a", limits.JSONDepth), limits.JSONDepth, func(n int) (string, string, string) {
			return save(message(`"deep"`, nested(n)))
		}},
		{"messages", limits.Messages, func(n int) (string, string, string) {
			return save(list(n, func(i int) string { return message(`"n`+strconv.Itoa(i)+`"`, `"x"`) }))
		}},
		{"messageIds", limits.Messages, func(n int) (string, string, string) {
			ids := list(n, func(i int) string { return `"n` + strconv.Itoa(i) + `"` })
			return http.MethodPost, "/api/memory/messages/delete", `{"messageIds":[` + ids + `]}`
		}},
		{"perPage", limits.PerPage, func(n int) (string, string, string) { return page("perPage", strconv.Itoa(n)) }},
		{"page", limits.Page, func(n int) (string, string, string) { return page("page", strconv.Itoa(n)) }},
		{"perPage", limits.PerPage, func(n int) (string, string, string) {
			return http.MethodGet, "/api/memory/jobs?perPage=" + strconv.Itoa(n), ""
		}},
		{"ids", 1000, func(n int) (string, string, string) {
			return http.MethodPost, "/api/memory/jobs/retry", `{"ids":[` + list(n, func(i int) string { return `"` + strconv.Itoa(i+1) + `"` }) + `]}`
		}},
		{"include", limits.IncludeItems, func(n int) (string, string, string) {
			return page("include", "["+list(n, func(int) string { return `{"id":"m1"}` })+"]")
		}},
		{"include.0.withNextMessages", limits.ContextWidth, func(n int) (string, string, string) {
			return page("include", `[{"id":"m1","withNextMessages":`+strconv.Itoa(n)+`}]`)
		}},
		{"filter.metadata", limits.MetadataPairs, func(n int) (string, string, string) {
			return page("filter", `{"metadata":{`+list(n, func(i int) string { return `"k` + strconv.Itoa(i) + `":1` })+`}}`)
		}},
		{"filter.where", limits.WhereOperators, func(n int) (string, string, string) {
			return page("filter", `{"where":{`+list(n, func(i int) string { return `"k` + strconv.Itoa(i) + `":{"$gt":1}` })+`}}`)
		}},
	} {
		for n, status := range map[int]int{test.limit: http.StatusOK, test.limit + 1: http.StatusBadRequest} {
			method, target, body := test.make(n)
			got := call(t, s, method, target, body)
			if got.status != status {
				t.Errorf("%s: %d at %d of %d, want %d: %.200s", test.field, got.status, n, test.limit, status, got.body)
			}
			if status != http.StatusOK && !slices.Equal(got.problem(t).fields(), []string{test.field}) {
				t.Errorf("%s: names %.200q", test.field, got.problem(t).fields())
			}
		}
	}
}

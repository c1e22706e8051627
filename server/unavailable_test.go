package server_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/server"
)

// validBodies holds for each route with a body one that its checks let pass.
var validBodies = map[string]string{
	"POST /api/memory/threads":                                  `{"resourceId":"u"}`,
	"PATCH /api/memory/threads/:threadId":                       `{"title":"x"}`,
	"POST /api/memory/threads/:threadId/transfer":               `{"resourceId":"v"}`,
	"POST /api/memory/threads/:threadId/clone":                  `{}`,
	"POST /api/memory/save-messages":                            `{"messages":[{"threadId":"t","resourceId":"u","role":"user","content":"x"}]}`,
	"PATCH /api/memory/messages":                                `{"messages":[{"id":"m","role":"user"}]}`,
	"POST /api/memory/messages/delete":                          `{"messageIds":"m"}`,
	"POST /api/memory/recall":                                   `{"threadId":"t"}`,
	"PUT /api/memory/config":                                    `{"config":{}}`,
	"POST /api/memory/context":                                  `{"threadId":"t"}`,
	"POST /api/memory/processors/semantic-recall/input":         `{"threadId":"t","config":{"semanticRecall":{"mode":"lexical"}},"messages":[{"id":"m","role":"user","content":"x"}]}`,
	"POST /api/memory/processors/semantic-recall/output":        `{"threadId":"t","resourceId":"u","messages":[{"id":"m","role":"user","content":"x"}]}`,
	"POST /api/memory/processors/working-memory/input":          `{"threadId":"t","config":{"workingMemory":{"enabled":true}}}`,
	"POST /api/memory/processors/working-memory/output":         `{"threadId":"t","resourceId":"u","messages":[{"id":"m","role":"user","content":"x"}]}`,
	"POST /api/memory/processors/message-history/input":         `{"threadId":"t"}`,
	"POST /api/memory/processors/message-history/output":        `{"threadId":"t","resourceId":"u","messages":[{"id":"m","role":"user","content":"x"}]}`,
	"POST /api/memory/jobs/retry":                               `{}`,
	"POST /api/memory/threads/:threadId/working-memory":         `{"workingMemory":"x"}`,
	"POST /api/memory/threads/:threadId/working-memory/restore": `{"version":1}`,
}

// validQueries holds for each route with required parameters some that its checks
// let pass without an embedder.
var validQueries = map[string]string{
	"GET /api/memory/config": "?agentId=a",
	"PUT /api/memory/config": "?agentId=a",
	"GET /api/memory/search": "?searchQuery=q&resourceId=u&memoryConfig=" + url.QueryEscape(`{"semanticRecall":false}`),
}

func TestWithoutADatabaseEveryRouteIsA503(t *testing.T) {
	t.Parallel()
	pool := dbtest.Open(t, "postgres://user:secret@127.0.0.1:1/none")
	e := server.New(recall.New(pool, recall.DefaultLimits()), quiet())
	for _, route := range e.Routes() {
		if slices.Contains([]string{"/healthz", "/openapi.yaml", "/api/memory/status"}, route.Path) {
			continue // they do not ask the database
		}
		body := validBodies[route.Method+" "+route.Path]
		if takesBody(route.Method) && body == "" {
			t.Errorf("%s %s: give it a body in validBodies", route.Method, route.Path)
		}
		target := idInPath.ReplaceAllLiteralString(route.Path, "t") + validQueries[route.Method+" "+route.Path]
		got := send(t, e, request(route.Method, target, body))
		_ = got.problem(t)
		if got.status != http.StatusServiceUnavailable || got.header.Get(echo.HeaderRetryAfter) != "1" {
			t.Errorf("%s %s: %d %s, Retry-After %q", route.Method, route.Path, got.status, got.body, got.header.Get(echo.HeaderRetryAfter))
		}
		if strings.Contains(string(got.body), "127.0.0.1") || strings.Contains(string(got.body), "user") {
			t.Errorf("%s %s tells where the database is: %s", route.Method, route.Path, got.body)
		}
	}
	if got := send(t, e, request(http.MethodGet, "/healthz", "")); got.status != http.StatusOK {
		t.Errorf("/healthz: %d", got.status)
	}
}

package server_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/chat/chattest"
	chat "github.com/pgrecall/pgrecall/recall/chat/remote"
	"github.com/pgrecall/pgrecall/recall/jobs"
	"github.com/pgrecall/pgrecall/server"
)

const saveForAgent = "/api/memory/save-messages?agentId=agent"

// newTitled gives a server that makes titles, and works on its jobs.
func newTitled(t *testing.T) (*httptest.Server, *chattest.Stub) {
	t.Helper()
	stub := chattest.NewStub(t, "Yellow tomatoes")
	client, err := chat.NewOpenAI(chat.Config{BaseURL: stub.URL(), Model: "small"})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	url := dbtest.URL(t)
	memory := recall.New(dbtest.Open(t, url), recall.DefaultLimits(), recall.WithChat(client))
	workers, err := jobs.Start(context.WithoutCancel(t.Context()), jobs.Config{
		Pool: dbtest.Open(t, url), Logger: slog.New(heard), Title: memory.GenerateTitle, TitleTries: 1,
	})
	require.NoError(t, err)
	s := httptest.NewServer(server.New(memory, quiet()))
	t.Cleanup(func() {
		stub.Release()
		s.Close()
		assert.NoError(t, workers.Stop(context.WithoutCancel(t.Context())))
	})
	must(t, s, http.MethodPut, ofAgent, `{"config":{"generateTitle":true}}`)
	return s, stub
}

func titleOf(t *testing.T, s *httptest.Server) any {
	t.Helper()
	return must(t, s, http.MethodGet, "/api/memory/threads/t", "")["title"]
}

func TestASaveForAnAgentBringsATitle(t *testing.T) {
	t.Parallel()
	s, stub := newTitled(t)
	must(t, s, http.MethodPost, "/api/memory/save-messages", saving("The tomatoes are yellow."))
	must(t, s, http.MethodPost, "/api/memory/save-messages?agentId=another", saving("The tomatoes are yellow."))
	if got := must(t, s, http.MethodGet, "/api/memory/jobs", "")["jobs"].([]any); len(got) != 0 {
		t.Errorf("without an agent that wants titles there are jobs: %v", got)
	}
	hold := stub.Hold()
	must(t, s, http.MethodPost, saveForAgent, saving("The tomatoes are yellow."))
	<-hold.Arrived()
	job := must(t, s, http.MethodGet, "/api/memory/jobs", "")["jobs"].([]any)[0].(map[string]any)
	assert.Equal(t, []any{"title", "running", "sam", "t", []any{}},
		[]any{job["kind"], job["state"], job["resourceId"], job["threadId"], job["messageIds"]})
	stub.Release()
	eventually(t, func() bool { return titleOf(t, s) == "Yellow tomatoes" })
}

func TestATurnOfAnAgentBringsATitle(t *testing.T) {
	t.Parallel()
	s, _ := newTitled(t)
	must(t, s, http.MethodPost, "/api/memory/processors/message-history/output", `{"agentId":"agent","threadId":"t","resourceId":"sam",
		"messages":[{"id":"m1","role":"user","content":"The tomatoes are yellow."}]}`)
	eventually(t, func() bool { return titleOf(t, s) == "Yellow tomatoes" })
}

func TestARenamedThreadKeepsItsNameThoughATitleIsUnderWay(t *testing.T) {
	t.Parallel()
	s, stub := newTitled(t)
	hold := stub.Hold()
	must(t, s, http.MethodPost, saveForAgent, saving("The tomatoes are yellow."))
	<-hold.Arrived()
	must(t, s, http.MethodPatch, "/api/memory/threads/t", `{"title":"Mine"}`)
	stub.Release()
	eventually(t, func() bool {
		return len(must(t, s, http.MethodGet, "/api/memory/jobs", "")["jobs"].([]any)) == 0
	})
	assert.Equal(t, "Mine", titleOf(t, s))
}

func TestARefusedTitleIsADeadJobAndNoFailureOfTheSave(t *testing.T) {
	t.Parallel()
	s, stub := newTitled(t)
	stub.Fail(chattest.Refusal)
	must(t, s, http.MethodPost, saveForAgent, saving("The tomatoes are SECRET-TEXT."))
	var dead []any
	eventually(t, func() bool {
		dead = must(t, s, http.MethodGet, "/api/memory/jobs?dead=true", "")["jobs"].([]any)
		return len(dead) == 1
	})
	reason := dead[0].(map[string]any)["lastError"]
	assert.Contains(t, reason, "a refusal")
	assert.NotContains(t, reason, "SECRET")
	stub.Heal()
	assert.EqualValues(t, 1, must(t, s, http.MethodPost, "/api/memory/jobs/retry", `{}`)["retried"])
	eventually(t, func() bool { return titleOf(t, s) == "Yellow tomatoes" })
}

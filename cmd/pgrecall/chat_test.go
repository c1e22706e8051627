package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/chat/chattest"
)

func TestAServerWithAChatServiceMakesTitles(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	flag := "--database-url=" + url
	stub := chattest.NewStub(t, "Trip to Kyoto")
	stub.RequireKey("SECRET-KEY")
	memory := recall.New(dbtest.Open(t, url), recall.DefaultLimits())
	require.NoError(t, memory.SaveAgent(t.Context(), "agent", []byte(`{"generateTitle":true}`)))
	var log strings.Builder
	out, code := make(lines, 10), make(chan int, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		code <- run(ctx, []string{
			"serve", "--addr=127.0.0.1:0", flag, "--chat-url=" + stub.URL(), "--chat-model=small", "--chat-key=SECRET-KEY",
		}, terminal{out: out, log: io.MultiWriter(&log)})
	}()
	base := strings.TrimPrefix(strings.SplitN(<-out, "/api\n", 2)[0], "The API is at ")

	hold := stub.Hold()
	body := `{"createThread":true,"messages":[{"threadId":"t","resourceId":"u","role":"user","content":"SECRET-TEXT"}]}`
	response, err := http.Post(base+"/api/memory/save-messages?agentId=agent", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode, "it does not wait for the service")
	<-hold.Arrived()
	assert.Contains(t, execute(t, "jobs", "list", flag).out, "title  running  thread t")
	job := decode(t, execute(t, "jobs", "list", "--json", flag))["jobs"].([]any)[0].(map[string]any)
	assert.Equal(t, "title u t []", fmt.Sprint(job["kind"], " ", job["resourceId"], " ", job["threadId"], " ", job["messageIds"]))
	stub.Release()
	require.Eventually(t, func() bool {
		return strings.Contains(get(t, base+"/api/memory/threads/t"), `"title":"Trip to Kyoto"`)
	}, time.Minute, 10*time.Millisecond)
	stop()
	assert.Equal(t, exitOK, <-code)
	assert.NotContains(t, log.String(), "SECRET")
}

func TestAWrongChatServiceIsNamedWithoutItsSecrets(t *testing.T) {
	t.Parallel()
	got := execute(t, "serve", "--database-url=postgres://localhost/none", "--chat-model=m", "--chat-url=ftp://user:SECRET@host", "--chat-key=SECRET")
	assert.Equal(t, exitUsage, got.code)
	assert.Contains(t, got.log, "PGRECALL_CHAT_... (--chat-...): the chat URL")
	assert.NotContains(t, got.log, "SECRET")
}

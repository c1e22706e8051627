package remote_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pgrecall/pgrecall/recall/chat"
	"github.com/pgrecall/pgrecall/recall/chat/chattest"
	"github.com/pgrecall/pgrecall/recall/chat/remote"
	"github.com/pgrecall/pgrecall/recall/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var prompt = chat.Prompt{Instructions: "Give it a title.", Text: "SECRET-TEXT"}

func connectTo(t *testing.T, url string, timeout time.Duration) *remote.OpenAI {
	t.Helper()
	client, err := remote.NewOpenAI(remote.Config{BaseURL: url, Key: "SECRET-KEY", Model: "small", Timeout: timeout})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

func connect(t *testing.T) (*chattest.Stub, *remote.OpenAI) {
	t.Helper()
	stub := chattest.NewStub(t, "An answer")
	return stub, connectTo(t, stub.URL(), time.Minute)
}

func TestAModelIsAskedAsOpenAIIs(t *testing.T) {
	t.Parallel()
	stub, client := connect(t)
	stub.RequireKey("SECRET-KEY")
	got, err := client.Complete(t.Context(), prompt)
	require.NoError(t, err)
	assert.Equal(t, "An answer", got)
	other := prompt
	other.Model = "large"
	_, err = client.Complete(t.Context(), other)
	require.NoError(t, err)
	assert.Equal(t, []chattest.Request{
		{Model: "small", System: "Give it a title.", User: "SECRET-TEXT"},
		{Model: "large", System: "Give it a title.", User: "SECRET-TEXT"},
	}, stub.Requests())
}

// failures are all that a stub can do, and what each means.
var failures = map[string]struct {
	failure chattest.Failure
	reason  error
	shown   string
}{
	"400":        {chattest.Status(400), service.ErrRejected, "status 400"},
	"401":        {chattest.Status(401), service.ErrSettings, "status 401"},
	"404":        {chattest.Status(404), service.ErrSettings, "status 404"},
	"422":        {chattest.Status(422), service.ErrRejected, "status 422"},
	"429":        {chattest.TooManyRequests(7 * time.Second), service.ErrUnavailable, "status 429"},
	"500":        {chattest.Status(500), service.ErrUnavailable, "status 500"},
	"hanging up": {chattest.Hangup, service.ErrUnavailable, "EOF"},
	"garbage":    {chattest.Garbage, service.ErrReply, "not the JSON"},
	"no choices": {chattest.NoChoices, service.ErrReply, "not the JSON"},
	"empty":      {chattest.Empty, service.ErrRejected, "empty"},
	"null":       {chattest.Null, service.ErrRejected, "empty"},
	"refusal":    {chattest.Refusal, service.ErrRejected, "refusal"},
	"filtered":   {chattest.Filtered, service.ErrRejected, "content filter"},
}

func TestAFailureSaysWhatItMeansAndNoSecrets(t *testing.T) {
	t.Parallel()
	for name, want := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stub, client := connect(t)
			stub.Fail(want.failure)
			_, err := client.Complete(t.Context(), prompt)
			var failure *service.Error
			require.ErrorAs(t, err, &failure)
			require.ErrorIs(t, err, want.reason)
			assert.Contains(t, err.Error(), want.shown)
			for _, shown := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
				assert.NotContains(t, shown, "SECRET")
			}
			for unwrapped := errors.Unwrap(err); unwrapped != nil; unwrapped = errors.Unwrap(unwrapped) {
				assert.NotContains(t, unwrapped.Error(), "SECRET")
			}
			assert.Len(t, stub.Requests(), 1, "who asks decides on another try")
		})
	}
}

func TestAServiceSaysHowLongItWantsToBeLeftAlone(t *testing.T) {
	t.Parallel()
	stub, client := connect(t)
	stub.Fail(chattest.TooManyRequests(7 * time.Second))
	_, err := client.Complete(t.Context(), prompt)
	var failure *service.Error
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, 7*time.Second, failure.RetryAfter)
}

func TestASlowServiceIsUnavailable(t *testing.T) {
	t.Parallel()
	stub := chattest.NewStub(t, "late")
	stub.Hold()
	_, err := connectTo(t, stub.URL(), 20*time.Millisecond).Complete(t.Context(), prompt)
	require.ErrorIs(t, err, service.ErrUnavailable)
	assert.Contains(t, err.Error(), "no answer within 20ms")
}

func TestWhoCancelsIsToldSo(t *testing.T) {
	t.Parallel()
	stub, client := connect(t)
	hold := stub.Hold()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-hold.Arrived()
		cancel()
	}()
	_, err := client.Complete(ctx, prompt)
	require.ErrorIs(t, err, context.Canceled)
}

func TestAServiceThatIsNotThereIsUnavailable(t *testing.T) {
	t.Parallel()
	stub, client := connect(t)
	stub.Stop()
	_, err := client.Complete(t.Context(), prompt)
	require.ErrorIs(t, err, service.ErrUnavailable)
	assert.Contains(t, err.Error(), "refused")
}

func TestAReplyIsBounded(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(strings.Repeat(" ", 2<<20)))
	}))
	t.Cleanup(server.Close)
	_, err := connectTo(t, server.URL, time.Minute).Complete(t.Context(), prompt)
	require.ErrorIs(t, err, service.ErrReply)
}

func TestTheKeyAndTheTextStayWithTheService(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	_, err := connectTo(t, server.URL, time.Minute).Complete(t.Context(), prompt)
	require.Error(t, err)
	assert.False(t, reached.Load())
}

func TestTheEnvironmentIsNotRead(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"} {
		t.Setenv(name, "from-the-environment")
	}
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	var headers atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers.Store(fmt.Sprint(r.Header))
		_, _ = fmt.Fprint(w, `{"choices":[{"message":{"content":"An answer"}}]}`)
	}))
	defer server.Close()
	client, err := remote.NewOpenAI(remote.Config{BaseURL: server.URL, Model: "small"})
	require.NoError(t, err)
	defer client.Close()
	_, err = client.Complete(t.Context(), prompt)
	require.NoError(t, err)
	assert.NotContains(t, headers.Load(), "from-the-environment")
	assert.NotContains(t, headers.Load(), "Authorization")
}

func TestAConfigurationIsCheckedWithoutShowingIt(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]remote.Config{
		"model":    {BaseURL: "http://host/v1"},
		"URL":      {Model: "m", BaseURL: "user:SECRET@host"},
		"query":    {Model: "m", BaseURL: "http://user:SECRET@host/v1?a"},
		"key":      {Model: "m", BaseURL: "http://host/v1", Key: "SECRET\n"},
		"negative": {Model: "m", BaseURL: "http://host/v1", Timeout: -1},
	} {
		_, err := remote.NewOpenAI(config)
		require.ErrorContains(t, err, name)
		assert.NotContains(t, err.Error(), "SECRET")
	}
}

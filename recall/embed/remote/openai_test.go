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
	"golang.org/x/sync/errgroup"

	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/embed/embedtest"
	"github.com/pgrecall/pgrecall/recall/embed/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const dimensions = 8

// connectTo gives an embedder that makes one attempt.
func connectTo(t *testing.T, handler http.Handler) *remote.OpenAI {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	e, err := remote.NewOpenAI(remote.OpenAIConfig{BaseURL: server.URL, Key: "SECRET-KEY", Model: "stub", Attempts: 1, Timeout: time.Minute})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return e
}

// connect gives a stub and an embedder that asks it, and waits next to nothing
// between attempts.
func connect(t *testing.T, change func(*remote.OpenAIConfig)) (*embedtest.Stub, *remote.OpenAI) {
	t.Helper()
	stub := embedtest.NewStub(t, dimensions)
	config := remote.OpenAIConfig{BaseURL: stub.URL(), Key: "SECRET-KEY", Model: "stub", Backoff: time.Nanosecond}
	if change != nil {
		change(&config)
	}
	e, err := remote.NewOpenAI(config)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return stub, e
}

func words(texts ...string) []embed.Vector {
	vectors := make([]embed.Vector, len(texts))
	for i, text := range texts {
		for _, value := range embedtest.Words(text, dimensions) {
			vectors[i] = append(vectors[i], float32(value))
		}
	}
	return vectors
}

func TestOpenAIGivesVectorsInTheOrderOfTheTexts(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, func(c *remote.OpenAIConfig) { c.BatchSize = 3 })
	stub.RequireKey("SECRET-KEY")
	var texts []string
	for i := range 20 {
		texts = append(texts, fmt.Sprintf("text number %d", i))
	}
	got, err := e.Embed(t.Context(), texts, embed.Document)
	require.NoError(t, err)
	embedtest.EqualVectors(t, words(texts...), got)
	assert.Equal(t, 7, stub.Requests())
	assert.ElementsMatch(t, texts, stub.Texts())
}

func TestOpenAIPutsThePrefixOfTheKindBefore(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, func(c *remote.OpenAIConfig) { c.QueryPrefix, c.DocumentPrefix = "query: ", "passage: " })
	_, err := e.Embed(t.Context(), []string{"a"}, embed.Query)
	require.NoError(t, err)
	_, err = e.Embed(t.Context(), []string{"b"}, embed.Document)
	require.NoError(t, err)
	assert.Equal(t, []string{"query: a", "passage: b"}, stub.Texts())
}

func TestOpenAIDoesNotSendBlankTexts(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, func(c *remote.OpenAIConfig) { c.DocumentPrefix = "passage: " })
	got, err := e.Embed(t.Context(), []string{"", " \n", "a"}, embed.Document)
	require.NoError(t, err)
	assert.Nil(t, got[0])
	assert.Nil(t, got[1])
	assert.NotNil(t, got[2])
	assert.Equal(t, []string{"passage: a"}, stub.Texts())

	got, err = e.Embed(t.Context(), nil, embed.Document)
	require.NoError(t, err)
	assert.Empty(t, got)
	assert.Equal(t, 1, stub.Requests())
}

func TestOpenAISendsDimensionsOnlyWhenConfigured(t *testing.T) {
	t.Parallel()
	for _, configured := range []int{0, 4} {
		stub, e := connect(t, func(c *remote.OpenAIConfig) { c.Dimensions = configured })
		assert.Equal(t, configured, e.Dimensions())
		got, err := e.Embed(t.Context(), []string{"a"}, embed.Query)
		require.NoError(t, err)
		assert.Equal(t, []int{configured}, stub.SentDimensions())
		assert.Len(t, got[0], e.Dimensions())
	}
}

func TestOpenAILearnsItsDimensions(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, nil)
	require.Zero(t, e.Dimensions())
	got, err := embed.Probe(t.Context(), e)
	require.NoError(t, err)
	assert.Equal(t, dimensions, got)
	assert.Equal(t, dimensions, e.Dimensions())

	stub.Fail(embedtest.WrongDimensions)
	_, err = e.Embed(t.Context(), []string{"a"}, embed.Query)
	require.ErrorIs(t, err, embed.ErrReply)
	assert.Equal(t, dimensions, e.Dimensions())
}

func TestOpenAIHoldsRepliesToTheExpectedDimensions(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, nil)
	e.Expect(dimensions)
	assert.Equal(t, dimensions, e.Dimensions())
	stub.FailNext(embedtest.WrongDimensions)
	_, err := e.Embed(t.Context(), []string{"a"}, embed.Document)
	require.ErrorIs(t, err, embed.ErrReply)
	_, err = e.Embed(t.Context(), []string{"a"}, embed.Document)
	require.NoError(t, err)
	assert.Equal(t, []int{0, 0}, stub.SentDimensions(), "asked of the service")
}

func TestOpenAIExpectsNothingElseOnceItKnows(t *testing.T) {
	t.Parallel()
	_, configured := connect(t, func(c *remote.OpenAIConfig) { c.Dimensions = 4 })
	_, learnt := connect(t, nil)
	for _, e := range []*remote.OpenAI{configured, learnt} {
		known, err := embed.Probe(t.Context(), e)
		require.NoError(t, err)
		e.Expect(known + 1)
		assert.Equal(t, known, e.Dimensions())
		_, err = e.Embed(t.Context(), []string{"a"}, embed.Document)
		require.NoError(t, err)
	}
}

func TestOpenAINormalises(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{"long": "3,4", "huge": "3e300,4e300", "tiny": "3e-320,4e-320"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stub, e := connect(t, nil)
			stub.FailNext(embedtest.Body(`{"data":[{"index":0,"embedding":[` + values + `]}]}`))
			got, err := e.Embed(t.Context(), []string{"a"}, embed.Query)
			require.NoError(t, err)
			assert.InDeltaSlice(t, []float32{.6, .8}, []float32(got[0]), 1e-4)
		})
	}
}

func TestOpenAIRefusesBadReplies(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]embedtest.Failure{
		"garbage":          embedtest.Garbage,
		"cut short":        embedtest.CutShort,
		"wrong dimensions": embedtest.WrongDimensions,
		"mixed dimensions": embedtest.MixedDimensions,
		"fewer vectors":    embedtest.FewerVectors,
		"more vectors":     embedtest.MoreVectors,
		"same index":       embedtest.SameIndex,
		"shifted index":    embedtest.ShiftedIndex,
		"no index":         embedtest.NoIndex,
		"zero":             embedtest.Zero,
		"NaN":              embedtest.NotANumber,
		"null":             embedtest.Null,
		"infinite":         embedtest.Infinite,
		"text":             embedtest.Text,
		"empty":            embedtest.Empty,
		"nothing":          embedtest.Body(""),
		"an error as 200":  embedtest.Body(`{"error":{"message":"no"}}`),
		"base64":           embedtest.Body(`{"data":[{"index":0,"embedding":"AAAAPwAAgL4="},{"index":1,"embedding":"AAAAPwAAgL4="}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stub, e := connect(t, func(c *remote.OpenAIConfig) { c.Dimensions = dimensions })
			stub.Fail(failure)
			got, err := e.Embed(t.Context(), []string{"a", "b"}, embed.Document)
			require.ErrorIs(t, err, embed.ErrReply)
			assert.Nil(t, got)
			assert.Equal(t, 1, stub.Requests(), "tried again, which cannot help")
		})
	}
}

func TestOpenAIRefusesAMixOfDimensionsBeforeItKnowsThem(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, nil)
	stub.Fail(embedtest.MixedDimensions)
	_, err := e.Embed(t.Context(), []string{"a", "b"}, embed.Document)
	require.ErrorIs(t, err, embed.ErrReply)
}

func TestOpenAITriesAgainWhatIsTemporary(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]embedtest.Failure{
		"429":     embedtest.TooManyRequests(0),
		"500":     embedtest.Status(500),
		"502":     embedtest.Status(502),
		"503":     embedtest.Status(503),
		"408":     embedtest.Status(408),
		"hang up": embedtest.Hangup,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stub, e := connect(t, nil)
			stub.FailNext(failure, failure)
			got, err := e.Embed(t.Context(), []string{"a"}, embed.Query)
			require.NoError(t, err)
			embedtest.EqualVectors(t, words("a"), got)
			assert.GreaterOrEqual(t, stub.Requests(), 3)

			stub.Fail(failure)
			stub.Reset()
			_, err = e.Embed(t.Context(), []string{"a"}, embed.Query)
			require.ErrorIs(t, err, embed.ErrUnavailable)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
			assert.GreaterOrEqual(t, stub.Requests(), 3)
		})
	}
}

func TestOpenAIDoesNotTryAgainWhatIsPermanent(t *testing.T) {
	t.Parallel()
	for status, reason := range map[int]error{
		400: embed.ErrRejected, 413: embed.ErrRejected, 422: embed.ErrRejected,
		401: embed.ErrSettings, 403: embed.ErrSettings, 404: embed.ErrSettings, 405: embed.ErrSettings,
	} {
		stub, e := connect(t, nil)
		stub.Fail(embedtest.Status(status))
		_, err := e.Embed(t.Context(), []string{"a"}, embed.Query)
		require.ErrorIs(t, err, reason)
		assert.Equal(t, status, embedtest.FailureOf(t, err).Status)
		assert.Equal(t, 1, stub.Requests())
	}
}

func TestOpenAIKnowsTheStatusOfAnErrorThatIsNotJSON(t *testing.T) {
	t.Parallel()
	for status, reason := range map[int]error{502: embed.ErrUnavailable, 404: embed.ErrSettings} {
		e := connectTo(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<html>Bad Gateway</html>", status)
		}))
		_, err := e.Embed(t.Context(), []string{"a"}, embed.Query)
		require.ErrorIs(t, err, reason)
		assert.Equal(t, status, embedtest.FailureOf(t, err).Status)
	}
}

func TestOpenAIReturnsAtOnceWhenItMustWaitTooLong(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, nil)
	stub.Fail(embedtest.TooManyRequests(10 * time.Minute))
	_, err := e.Embed(t.Context(), []string{"a"}, embed.Query)
	require.ErrorIs(t, err, embed.ErrUnavailable)
	assert.Equal(t, 10*time.Minute, embedtest.FailureOf(t, err).RetryAfter)
	assert.Equal(t, 1, stub.Requests())
}

func TestOpenAIWaitsAsLongAsItIsAsked(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, nil)
	stub.FailNext(embedtest.TooManyRequests(time.Second))
	begin := time.Now()
	_, err := e.Embed(t.Context(), []string{"a"}, embed.Query)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, time.Since(begin), time.Second)
}

func TestOpenAIGivesUpOnASlowService(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, func(c *remote.OpenAIConfig) { c.Timeout, c.Attempts = 50*time.Millisecond, 2 })
	stub.Hold()
	_, err := e.Embed(t.Context(), []string{"a"}, embed.Query)
	require.ErrorIs(t, err, embed.ErrUnavailable)
	// The caller's own deadline is another matter.
	require.NotErrorIs(t, err, context.DeadlineExceeded)
}

func TestOpenAITriesAgainAfterATimeout(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, func(c *remote.OpenAIConfig) { c.Timeout, c.Attempts = time.Second, 5 })
	hold := stub.Hold()
	done := make(chan error)
	go func() {
		_, err := e.Embed(context.WithoutCancel(t.Context()), []string{"a"}, embed.Query)
		done <- err
	}()
	<-hold.Arrived()
	<-hold.Arrived() // the second attempt
	stub.Release()
	require.NoError(t, <-done)
}

func TestOpenAIKeepsToTheDeadlineOfItsCaller(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, nil)
	stub.Hold()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := e.Embed(ctx, []string{"a"}, embed.Query)
	require.ErrorIs(t, err, embed.ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestOpenAIEndsWhenItIsCancelled(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, nil)
	hold := stub.Hold()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error)
	go func() {
		_, err := e.Embed(ctx, []string{"a"}, embed.Query)
		done <- err
	}()
	<-hold.Arrived()
	cancel()
	err := <-done
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, embed.ErrUnavailable)
}

func TestOpenAIBoundsItsRequests(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, func(c *remote.OpenAIConfig) { c.BatchSize, c.Concurrency = 1, 2 })
	hold := stub.Hold()
	done := make(chan error, 2)
	embedAll := func(kind embed.Kind, texts ...string) {
		_, err := e.Embed(context.WithoutCancel(t.Context()), texts, kind)
		done <- err
	}
	go embedAll(embed.Document, "a", "b", "c", "d")
	<-hold.Arrived()
	<-hold.Arrived()
	go embedAll(embed.Query, "q") // documents do not keep it waiting
	<-hold.Arrived()
	select {
	case <-hold.Arrived():
		t.Error("a third request for documents")
	case <-time.After(20 * time.Millisecond):
	}
	stub.Release()
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	assert.Equal(t, 5, stub.Requests())
}

func TestOpenAIIsUnavailableWhenNothingListens(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, nil)
	stub.Stop()
	_, err := e.Embed(t.Context(), []string{"a"}, embed.Query)
	require.ErrorIs(t, err, embed.ErrUnavailable)
	assert.Contains(t, err.Error(), "refused")
}

func TestOpenAIBoundsTheReply(t *testing.T) {
	t.Parallel()
	e := connectTo(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		chunk := []byte(strings.Repeat(" ", 1<<20))
		for range 200 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	_, err := e.Embed(t.Context(), []string{"a"}, embed.Query)
	require.ErrorIs(t, err, embed.ErrReply)
}

func TestOpenAIErrorsTellNoSecrets(t *testing.T) {
	t.Parallel()
	for _, failure := range []embedtest.Failure{
		embedtest.Status(400), embedtest.Status(401), embedtest.Status(500), embedtest.TooManyRequests(time.Hour),
		embedtest.Hangup, embedtest.Garbage, embedtest.NotANumber, embedtest.Body(`{"data":"SECRET-TEXT SECRET-KEY"}`),
	} {
		stub, e := connect(t, func(c *remote.OpenAIConfig) { c.Attempts = 1 })
		stub.Fail(failure)
		_, err := e.Embed(t.Context(), []string{"SECRET-TEXT"}, embed.Query)
		require.Error(t, err)
		for _, shown := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
			assert.NotContains(t, shown, "SECRET")
		}
		for unwrapped := errors.Unwrap(err); unwrapped != nil; unwrapped = errors.Unwrap(unwrapped) {
			assert.NotContains(t, unwrapped.Error(), "SECRET")
		}
	}
}

func TestOpenAIDoesNotReadTheEnvironment(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"} {
		t.Setenv(name, "from-the-environment")
	}
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Custom: from-the-environment")
	var headers atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers.Store(fmt.Sprint(r.Header))
		_, _ = fmt.Fprint(w, `{"data":[{"index":0,"embedding":[1]}]}`)
	}))
	defer server.Close()
	e, err := remote.NewOpenAI(remote.OpenAIConfig{BaseURL: server.URL, Model: "stub"})
	require.NoError(t, err)
	defer e.Close()
	_, err = e.Embed(t.Context(), []string{"a"}, embed.Query)
	require.NoError(t, err)
	assert.NotContains(t, headers.Load(), "from-the-environment")
	assert.NotContains(t, headers.Load(), "Authorization")
}

func TestOpenAIKeepsItsKeyFromOtherHosts(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer other.Close()
	e := connectTo(t, http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	_, err := e.Embed(t.Context(), []string{"SECRET-TEXT"}, embed.Query)
	require.ErrorIs(t, err, embed.ErrUnavailable)
	assert.False(t, reached.Load())
}

func TestOpenAIIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, func(c *remote.OpenAIConfig) { c.BatchSize = 2 })
	stub.FailNext(embedtest.Status(500), embedtest.Hangup)
	var group errgroup.Group
	for i := range 8 {
		group.Go(func() error {
			text := fmt.Sprintf("number %d", i)
			got, err := e.Embed(t.Context(), []string{text, "a", "b"}, embed.Query)
			embedtest.EqualVectors(t, words(text, "a", "b"), got)
			return err
		})
	}
	require.NoError(t, group.Wait())
}

func TestOpenAIConfigIsChecked(t *testing.T) {
	t.Parallel()
	good := func() remote.OpenAIConfig { return remote.OpenAIConfig{Model: "m"} }
	e, err := remote.NewOpenAI(good())
	require.NoError(t, err)
	assert.Equal(t, "m", e.Model())
	assert.False(t, e.LengthPrior())

	for name, change := range map[string]func(*remote.OpenAIConfig){
		"no model":            func(c *remote.OpenAIConfig) { c.Model = "" },
		"no host":             func(c *remote.OpenAIConfig) { c.BaseURL = "localhost:11434/v1" },
		"other scheme":        func(c *remote.OpenAIConfig) { c.BaseURL = "ftp://host/v1" },
		"not a URL":           func(c *remote.OpenAIConfig) { c.BaseURL = "http://SECRET:SECRET@ho st\x7f" },
		"query":               func(c *remote.OpenAIConfig) { c.BaseURL = "http://host/v1?api-version=1" },
		"key with line break": func(c *remote.OpenAIConfig) { c.Key = "SECRET\n" },
		"dimensions":          func(c *remote.OpenAIConfig) { c.Dimensions = -1 },
		"many dimensions":     func(c *remote.OpenAIConfig) { c.Dimensions = 65_537 },
		"tokens":              func(c *remote.OpenAIConfig) { c.MaxTokens = -1 },
		"batch size":          func(c *remote.OpenAIConfig) { c.BatchSize = 2049 },
		"attempts":            func(c *remote.OpenAIConfig) { c.Attempts = 11 },
		"concurrency":         func(c *remote.OpenAIConfig) { c.Concurrency = -1 },
		"timeout":             func(c *remote.OpenAIConfig) { c.Timeout = -1 },
		"backoff":             func(c *remote.OpenAIConfig) { c.Backoff = -1 },
	} {
		config := good()
		change(&config)
		_, err := remote.NewOpenAI(config)
		require.Error(t, err, name)
		assert.NotContains(t, err.Error(), "SECRET", name)
	}
}

func BenchmarkOpenAI(b *testing.B) {
	stub := embedtest.NewStub(b, 1)
	var body strings.Builder
	body.WriteString(`{"data":[`)
	for i := range 32 {
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, `{"index":%d,"embedding":[0.1%s]}`, i, strings.Repeat(",0.012345678901234567", 1535))
	}
	body.WriteString(`]}`)
	stub.Fail(embedtest.Body(body.String()))
	e, err := remote.NewOpenAI(remote.OpenAIConfig{BaseURL: stub.URL(), Model: "stub"})
	require.NoError(b, err)
	defer e.Close()
	texts := make([]string, 32)
	for i := range texts {
		texts[i] = "text"
	}
	for b.Loop() {
		if _, err := e.Embed(b.Context(), texts, embed.Document); err != nil {
			b.Fatal(err)
		}
	}
}

package embed_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/embed/embedtest"
	"github.com/pgrecall/pgrecall/recall/embed/remote"
)

// many gives 32 texts, with poison at the positions.
func many(positions ...int) []string {
	var texts []string
	for i := range 32 {
		texts = append(texts, fmt.Sprintf("text %d", i))
	}
	for _, i := range positions {
		texts[i] += " poison"
	}
	return texts
}

// oneAttempt also says the dimensions: else the first reply would, a wrong one too.
func oneAttempt(c *remote.OpenAIConfig) { c.Attempts, c.Dimensions = 1, dimensions }

// interrupted does something before a call, counted from 0.
type interrupted struct {
	embed.Embedder
	call  int
	do    func()
	calls int
}

func (i *interrupted) Embed(ctx context.Context, texts []string, kind embed.Kind) ([]embed.Vector, error) {
	if i.calls == i.call {
		i.do()
	}
	i.calls++
	return i.Embedder.Embed(ctx, texts, kind)
}

// assertSettled checks the texts that have an entry: poison is blamed, and the
// others have their vectors.
func assertSettled(t *testing.T, texts []string, poison map[int]bool, vectors []embed.Vector, blamed []error) {
	t.Helper()
	require.Len(t, blamed, len(vectors))
	for i := range vectors {
		if poison[i] {
			require.ErrorIs(t, blamed[i], embed.ErrRejected)
			assert.Nil(t, vectors[i])
			continue
		}
		require.NoError(t, blamed[i])
		embedtest.EqualVectors(t, words(texts[i]), vectors[i:i+1])
	}
}

func TestEmbedEachFindsTheTextsToBlame(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		failure embedtest.Failure
		status  int
		detail  string
	}{
		"400":              {embedtest.Status(400), 400, "status 400"},
		"403":              {embedtest.Status(403), 403, "status 403"},
		"500":              {embedtest.Status(500), 500, "status 500"},
		"null":             {embedtest.Null, 0, "a vector has values that are not numbers"},
		"wrong dimensions": {embedtest.WrongDimensions, 0, "9 dimensions, not 8"},
		"hang up":          {embedtest.Hangup, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stub, e := connect(t, oneAttempt)
			stub.FailTexts("poison", test.failure)
			texts := many(3, 17)
			vectors, blamed, err := embed.EmbedEach(t.Context(), e, texts, embed.Document)
			require.NoError(t, err)
			require.Len(t, vectors, len(texts))
			assertSettled(t, texts, map[int]bool{3: true, 17: true}, vectors, blamed)
			failure := embedtest.FailureOf(t, blamed[3])
			assert.Equal(t, test.status, failure.Status)
			assert.Contains(t, failure.Detail, test.detail)
			require.NotErrorIs(t, failure, embed.ErrUnavailable)
		})
	}
}

func TestEmbedEachMakesFewCalls(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		poison []int
		calls  int
	}{
		{nil, 1},
		{[]int{3}, 17},
		{[]int{3, 17}, 30}, // in different halves, which is the worst
		{[]int{16, 17}, 18},
	} {
		stub, e := connect(t, nil)
		stub.RejectTexts("poison")
		_, _, err := embed.EmbedEach(t.Context(), e, many(test.poison...), embed.Document)
		require.NoError(t, err)
		assert.Equal(t, test.calls, stub.Requests(), "%v", test.poison)
	}
}

func TestEmbedEachTellsABlankTextFromOneToBlame(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, oneAttempt)
	stub.FailTexts("poison", embedtest.Status(500))
	vectors, blamed, err := embed.EmbedEach(t.Context(), e, []string{" ", "poison"}, embed.Document)
	require.NoError(t, err)
	assert.Equal(t, []embed.Vector{nil, nil}, vectors)
	require.NoError(t, blamed[0])
	require.ErrorIs(t, blamed[1], embed.ErrRejected)
}

func TestEmbedEachBlamesASingleText(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, oneAttempt)
	stub.FailTexts("poison", embedtest.Status(500))
	vectors, blamed, err := embed.EmbedEach(t.Context(), e, []string{"poison"}, embed.Document)
	require.NoError(t, err)
	assertSettled(t, []string{"poison"}, map[int]bool{0: true}, vectors, blamed)
	assert.Equal(t, 2, stub.Requests())
}

func TestEmbedEachBlamesNobodyForWhatAnyTextMeets(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		failure  embedtest.Failure
		reason   error
		requests int
	}{
		"400":              {embedtest.Status(400), embed.ErrRejected, 2},
		"401":              {embedtest.Status(401), embed.ErrSettings, 2},
		"429":              {embedtest.TooManyRequests(0), embed.ErrUnavailable, 1},
		"503":              {embedtest.Status(503), embed.ErrUnavailable, 2},
		"wrong dimensions": {embedtest.WrongDimensions, embed.ErrReply, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stub, e := connect(t, oneAttempt)
			stub.Fail(test.failure)
			vectors, blamed, err := embed.EmbedEach(t.Context(), e, many(), embed.Document)
			require.ErrorIs(t, err, test.reason)
			assert.Empty(t, vectors)
			assert.Empty(t, blamed)
			assert.Equal(t, test.requests, stub.Requests())
		})
	}
}

func TestEmbedEachSaysHowLongToWait(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, nil)
	stub.Fail(embedtest.TooManyRequests(10 * time.Minute))
	_, _, err := embed.EmbedEach(t.Context(), e, many(), embed.Document)
	assert.Equal(t, 10*time.Minute, embedtest.FailureOf(t, err).RetryAfter)

	// The service may also say so to the probe alone.
	stub.Heal()
	stub.FailNext(embedtest.Status(400), embedtest.TooManyRequests(time.Hour))
	_, _, err = embed.EmbedEach(t.Context(), e, many(), embed.Document)
	assert.Equal(t, time.Hour, embedtest.FailureOf(t, err).RetryAfter)
}

func TestEmbedEachIsUnavailableWhenNothingListens(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, oneAttempt)
	stub.Stop()
	vectors, _, err := embed.EmbedEach(t.Context(), e, many(), embed.Document)
	require.ErrorIs(t, err, embed.ErrUnavailable)
	assert.Empty(t, vectors)
}

func TestEmbedEachKeepsWhatIsSettledWhenTheServiceFails(t *testing.T) {
	t.Parallel()
	const calls = 30 // without the failure
	texts, kept := many(3, 17), 0
	for call := range calls {
		stub, e := connect(t, oneAttempt)
		stub.FailTexts("poison", embedtest.Status(500))
		down := func() { stub.Fail(embedtest.Status(503)) }
		dying := &interrupted{Embedder: e, call: call, do: down}
		vectors, blamed, err := embed.EmbedEach(t.Context(), dying, texts, embed.Document)
		require.ErrorIs(t, err, embed.ErrUnavailable)
		assertSettled(t, texts, map[int]bool{3: true, 17: true}, vectors, blamed)
		assert.LessOrEqual(t, stub.Requests(), call+2, "the call that fails and its probe")
		assert.GreaterOrEqual(t, len(vectors), kept)
		kept = len(vectors)
	}
	assert.Equal(t, 24, kept, "all but the texts of the last call")
}

func TestEmbedEachKeepsWhatIsSettledWhenItIsCancelled(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, oneAttempt)
	stub.RejectTexts("poison")
	ctx, cancel := context.WithCancel(t.Context())
	texts := []string{"a", "b", "c", "d poison"}
	// The calls are all, the probe, and the left half.
	ending := &interrupted{Embedder: e, call: 3, do: cancel}
	vectors, blamed, err := embed.EmbedEach(ctx, ending, texts, embed.Document)
	require.ErrorIs(t, err, context.Canceled)
	assert.Len(t, vectors, 2)
	assertSettled(t, texts, nil, vectors, blamed)
	assert.Equal(t, 4, ending.calls, "no probe, which cannot help")
}

func TestEmbedEachKeepsToTheDeadlineOfItsCaller(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, nil)
	hold := stub.Hold()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	vectors, _, err := embed.EmbedEach(ctx, e, many(), embed.Document)
	require.ErrorIs(t, err, embed.ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Empty(t, vectors)
	assert.Len(t, hold.Arrived(), 1, "no probe, which cannot help")
}

func TestEmbedEachPassesOnOtherErrors(t *testing.T) {
	t.Parallel()
	inner := fixed()
	inner.Fail(errors.New("down"))
	_, _, err := embed.EmbedEach(t.Context(), inner, []string{"a", "b"}, embed.Document)
	require.EqualError(t, err, "down")
	assert.Equal(t, 2, inner.Calls())
}

func TestEmbedEachOfNothing(t *testing.T) {
	t.Parallel()
	inner := fixed()
	vectors, blamed, err := embed.EmbedEach(t.Context(), inner, nil, embed.Document)
	require.NoError(t, err)
	assert.Empty(t, vectors)
	assert.Empty(t, blamed)
	assert.Zero(t, inner.Calls())
}

func TestEmbedTogetherBlamesAllTextsOfARequestThatFails(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, nil)
	stub.FailTexts("poison", embedtest.Status(500))
	vectors, blamed, err := embed.EmbedTogether(t.Context(), e, many(3), embed.Document)
	require.NoError(t, err)
	assert.Len(t, vectors, 32)
	require.Len(t, blamed, 32)
	for _, one := range blamed {
		require.ErrorIs(t, one, embed.ErrRejected)
	}
	assert.Equal(t, 2, stub.Requests(), "a request and a probe")

	stub.Fail(embedtest.Status(503))
	_, _, err = embed.EmbedTogether(t.Context(), e, many(), embed.Document)
	require.ErrorIs(t, err, embed.ErrUnavailable)
}

package recall_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pgrecall/pgrecall/recall"
)

// whatModelsSee gives what Context gives.
func (m memory) whatModelsSee(t must, in recall.ContextRequest) recall.Context {
	t.Helper()
	got, err := m.Context(ctx, in)
	require.NoError(t, err)
	return got
}

func reasons(messages []recall.Message) map[string][]recall.Reason {
	all := map[string][]recall.Reason{}
	for _, message := range messages {
		all[message.ID] = message.Explain.Reasons
	}
	return all
}

// lastAnd gives a configuration with the newest n messages, and k hits by words
// with one message around each.
func lastAnd(n, k int) recall.Config {
	config := wordsOnly(k)
	config.LastMessages = of(n)
	config.SemanticRecall.Search.Before, config.SemanticRecall.Search.After = of(1), of(1)
	if k == 0 {
		config.SemanticRecall = &recall.SemanticRecall{Off: true}
	}
	return config
}

func TestContextHoldsEachMessageOnceWithItsReasons(t *testing.T) {
	t.Parallel()
	m, _ := counted(t)
	m.save(t, talk("m", 30)...)
	m.save(t, message(recall.NewMessage{ID: "far", ThreadID: "trip", Content: text("We saw whales off the coast"), CreatedAt: epoch}))
	in := recall.ContextRequest{ThreadID: thread, ResourceID: resource, Query: "whales", Config: lastAnd(3, 4)}
	got := m.whatModelsSee(t, in)
	// m9, m19 and m29 speak of whales.
	assert.Equal(t, []string{"recalled", "m8", "m9", "m10", "m18", "m19", "m20", "m28", "m29", "m30"}, ids(got.Messages))
	why := reasons(got.Messages)
	assert.Equal(t, []recall.Reason{recall.ReasonPage, recall.ReasonLexical}, why["m29"])
	assert.Equal(t, []recall.Reason{recall.ReasonContext}, why["m8"])
	assert.Equal(t, []recall.Reason{recall.ReasonLexical}, why["recalled"])
	for _, message := range got.Messages {
		assert.True(t, message.Recalled, message.ID)
	}
	assert.Empty(t, got.Dropped)
	assert.Equal(t, got, m.whatModelsSee(t, in), "the same state, the same answer")

	in.Query, in.Config = "", lastAnd(2, 1)
	assert.NotEmpty(t, m.whatModelsSee(t, in).Messages, "the last user message is the query")
	in.Config = lastAnd(0, 0)
	assert.Empty(t, m.whatModelsSee(t, in).Messages)
	in.ThreadID, in.Query, in.Config = "new", "whales", lastAnd(2, 4)
	assert.Equal(t, []string{"recalled"}, ids(m.whatModelsSee(t, in).Messages), "a thread that is not there yet")
}

func TestContextBeginsAtAToolCallNeverAtItsResult(t *testing.T) {
	t.Parallel()
	m, _ := counted(t)
	m.save(t,
		said("u1", "What is the weather?"),
		message(recall.NewMessage{ID: "call", Role: "assistant", Content: toolCall("c1")}),
		message(recall.NewMessage{ID: "result", Role: "tool", Content: toolResult("c1")}),
		message(recall.NewMessage{ID: "a1", Role: "assistant", Content: text("Sunny")}),
		said("u2", "Thanks"),
	)
	in := recall.ContextRequest{ThreadID: thread, Config: lastAnd(3, 0)}
	assert.Equal(t, []string{"call", "result", "a1", "u2"}, ids(m.whatModelsSee(t, in).Messages))
	all := m.whatModelsSee(t, in)
	in.MaxTokens = all.Tokens - 1
	got := m.whatModelsSee(t, in)
	assert.Equal(t, []string{"a1", "u2"}, ids(got.Messages), "the pair goes as one")
	assert.Equal(t, []string{"call", "result"}, got.Dropped)
	in.SplitToolPairs, in.MaxTokens = true, 0
	assert.Equal(t, []string{"result", "a1", "u2"}, ids(m.whatModelsSee(t, in).Messages))
}

func TestContextKeepsWithinItsTokens(t *testing.T) {
	t.Parallel()
	m, _ := counted(t)
	m.save(t, talk("m", 40)...)
	m.save(t, message(recall.NewMessage{ID: "far", ThreadID: "trip", Content: text("We saw whales off the coast"), CreatedAt: epoch}))
	in := recall.ContextRequest{ThreadID: thread, ResourceID: resource, Query: "whales and bread", Config: lastAnd(6, 6)}
	all := m.whatModelsSee(t, in)
	rapid.Check(t, func(t *rapid.T) {
		in := in
		in.MaxTokens = rapid.IntRange(1, all.Tokens+5).Draw(t, "max tokens")
		got, err := m.Context(ctx, in)
		if err != nil {
			requireCode(t, err, recall.CodeUnprocessable, "maxTokens")
			least := 0
			_, err := fmt.Sscanf(err.Error()[strings.LastIndex(err.Error(), "takes "):], "takes %d tokens", &least)
			require.NoError(t, err)
			require.Greater(t, least, in.MaxTokens)
			return
		}
		require.LessOrEqual(t, got.Tokens, in.MaxTokens)
		require.Contains(t, ids(got.Messages), "m40", "the newest message")
		lines := func(c recall.Context) (n int) { // those of other threads are in one message
			for _, message := range c.Messages {
				n += max(1, strings.Count(message.Text(), "Message from previous conversation"))
			}
			return n
		}
		require.Equal(t, lines(all), lines(got)+len(got.Dropped), "what is not there was dropped")
		again, err := m.Context(ctx, in)
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
	in.MaxTokens = all.Tokens
	assert.Equal(t, all, m.whatModelsSee(t, in), "as many as it takes")
	in.MaxTokens = -1
	_, err := m.Context(ctx, in)
	requireCode(t, err, recall.CodeInvalid, "maxTokens")
}

func TestContextKeepsItsHistoryWhereAHitOfTheSamePageIsTooLong(t *testing.T) {
	t.Parallel()
	m, _ := counted(t)
	messages := talk("m", 17)
	messages[8].Content = text("An okapi. " + strings.Repeat("It went on and on. ", 200))
	m.save(t, messages...)
	in := recall.ContextRequest{ThreadID: thread, ResourceID: resource, Query: "okapi", Config: lastAnd(16, 1), MaxTokens: 400}
	got := m.whatModelsSee(t, in)
	assert.Equal(t, []string{"m10", "m11", "m12", "m13", "m14", "m15", "m16", "m17"}, ids(got.Messages), "what is newer than the hit")
	assert.Equal(t, []string{"m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9"}, got.Dropped, "the hit, and what is older")
}

func TestContextKeepsHitsBeyondAGapInTheHistory(t *testing.T) {
	t.Parallel()
	m, _ := counted(t)
	m.save(t, said("hit2", "An okapi in the zoo, and much else that made the day a long one to remember"), said("hit1", "An okapi, an okapi"),
		said("long", strings.Repeat("It went on and on. ", 200)), said("last", "Good night"))
	for _, lastMessages := range []int{2, 4} {
		config := lastAnd(lastMessages, 2)
		config.SemanticRecall.Search.Before, config.SemanticRecall.Search.After = of(0), of(0)
		got := m.whatModelsSee(t, recall.ContextRequest{ThreadID: thread, ResourceID: resource, Query: "okapi", Config: config, MaxTokens: 400})
		assert.Equal(t, []string{"hit2", "hit1", "last"}, ids(got.Messages), "whether the page has them or not")
		assert.Equal(t, []string{"long"}, got.Dropped)
	}
}

func TestContextKeepsTheCallOfEachOfSeveralResults(t *testing.T) {
	t.Parallel()
	m, _ := counted(t)
	m.save(t,
		said("u1", "What is the weather here and there?"),
		message(recall.NewMessage{ID: "call1", Role: "assistant", Content: toolCall("c1")}),
		message(recall.NewMessage{ID: "call2", Role: "assistant", Content: toolCall("c2")}),
		message(recall.NewMessage{ID: "results", Role: "tool", Content: toolResult("c1", "c2")}),
		said("u2", "Thanks"),
	)
	in := recall.ContextRequest{ThreadID: thread, Config: lastAnd(5, 0)}
	all := m.whatModelsSee(t, in)
	for in.MaxTokens = all.Tokens; in.MaxTokens > 20; in.MaxTokens-- {
		got := ids(m.whatModelsSee(t, in).Messages)
		calls := slices.Contains(got, "call1") && slices.Contains(got, "call2")
		require.Equal(t, calls, slices.Contains(got, "results"), "%d tokens give %q", in.MaxTokens, got)
	}
}

func TestContextCountsMessagesThatAreCalledAsItsOwn(t *testing.T) {
	t.Parallel()
	m, _ := counted(t)
	m.save(t, said("recalled", strings.Repeat("It went on and on. ", 50)), said("last", "Good night"))
	m.save(t, message(recall.NewMessage{ID: "far", ThreadID: "trip", Content: text("We saw whales off the coast"), CreatedAt: epoch}))
	got := m.whatModelsSee(t, recall.ContextRequest{ThreadID: thread, ResourceID: resource, Query: "whales", Config: lastAnd(2, 1), MaxTokens: 150})
	assert.Equal(t, []string{"recalled", "last"}, ids(got.Messages))
	assert.Equal(t, []string{"recalled"}, got.Dropped)
	assert.Equal(t, "system", got.Messages[0].Role)
}

// What is counted piece by piece is what the whole takes.
func TestContextCountsTheTokensOfItsMessages(t *testing.T) {
	t.Parallel()
	m, _ := counted(t)
	days := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 12)
	words := rapid.StringMatching(`whales[ a-zA-Z0-9.!?/'\n-]{0,40}`)
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		owner, own := fmt.Sprint("owner", run), fmt.Sprint("own", run)
		var messages []recall.NewMessage
		for i, day := range days.Draw(t, "days") {
			messages = append(messages, recall.NewMessage{
				ID: fmt.Sprint(owner, "-", i), ThreadID: fmt.Sprint(owner, "-", day%2), ResourceID: owner, Role: "user",
				Content: text(words.Draw(t, "words")), CreatedAt: epoch.AddDate(0, 0, day),
			})
		}
		m.save(t, messages...)
		got := m.whatModelsSee(t, recall.ContextRequest{
			ThreadID: own, ResourceID: owner, Query: "whales", Config: lastAnd(3, 8), MaxTokens: rapid.IntRange(100, 600).Draw(t, "max tokens"),
		})
		want := 0
		for _, message := range got.Messages {
			tokens, err := recall.TokensOf(message)
			require.NoError(t, err)
			want += tokens
		}
		require.Equal(t, want, got.Tokens)
	})
}

func TestContextOfThousandsOfMessagesTakesNoTime(t *testing.T) {
	t.Parallel()
	m, _ := counted(t)
	for i := range 10 {
		messages := talk(fmt.Sprint("far", i, "-"), 200)
		for j := range messages {
			messages[j].ThreadID = fmt.Sprint("far", i)
		}
		m.save(t, messages...)
	}
	config := lastAnd(10, 200)
	config.SemanticRecall.Search.Before, config.SemanticRecall.Search.After = of(20), of(20)
	within, cancel := context.WithTimeout(ctx, 30*time.Second) // it took minutes
	defer cancel()
	for _, maxTokens := range []int{0, 20_000} {
		got, err := m.Context(within, recall.ContextRequest{ThreadID: "new", ResourceID: resource, Query: "whales", Config: config, MaxTokens: maxTokens})
		require.NoError(t, err)
		require.NoError(t, within.Err())
		require.Greater(t, got.Tokens, 10_000)
	}
}

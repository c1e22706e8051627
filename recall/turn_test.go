package recall_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pgrecall/pgrecall/recall"
)

// wordsOnly is a configuration that finds by words, k hits without context.
func wordsOnly(k int) recall.Config {
	return recall.Config{SemanticRecall: &recall.SemanticRecall{Search: recall.Search{
		TopK: k, Before: of(0), After: of(0), Mode: recall.Lexical,
	}}}
}

// turnOf gives a turn in which the user says text.
func turnOf(config recall.Config, words string) recall.Turn {
	return recall.Turn{
		ThreadID: thread, ResourceID: resource, Config: config,
		Messages: []recall.NewMessage{{ID: "asked", Role: "user", Content: text(words)}},
	}
}

func TestWhatIsRecalledComesBeforeTheTurn(t *testing.T) {
	t.Parallel()
	m, _ := counted(t)
	m.save(t,
		message(recall.NewMessage{ID: "far", ThreadID: "trip", Content: text("We saw whales off the coast"), CreatedAt: epoch}),
		message(recall.NewMessage{ID: "answer", ThreadID: "trip", Role: "assistant", Content: text("Whales, lovely!"), CreatedAt: second(60)}),
		message(recall.NewMessage{ID: "late", ThreadID: "boat", Content: text("The whales sang"), CreatedAt: second(86_400)}),
		message(recall.NewMessage{ID: "own", Content: text("Are whales fish?"), CreatedAt: second(90_000)}),
		said("asked", "Tell me of whales"),
	)
	got, err := m.RecallForTurn(ctx, turnOf(wordsOnly(10), "Tell me of whales"))
	require.NoError(t, err)
	require.Equal(t, []string{"recalled", "own"}, ids(got.Messages), "what the turn has is left out")
	remembered := got.Messages[0]
	assert.Equal(t, "system", remembered.Role)
	assert.Equal(t, `Remembered from other conversations with this user:
<remembered_from_other_conversation>

the following messages are from 2026, Mar, 4
Message from previous conversation at 5:06 AM: User: We saw whales off the coast
Message from previous conversation at 5:07 AM: Assistant: Whales, lovely!

the following messages are from 2026, Mar, 5
Message from previous conversation at 5:06 AM: User: The whales sang
<end_remembered_from_other_conversation>`, remembered.Text())
	for _, recalled := range got.Messages {
		assert.True(t, recalled.Recalled)
	}

	again, err := m.RecallForTurn(ctx, turnOf(wordsOnly(10), "Tell me of whales"))
	require.NoError(t, err)
	assert.Equal(t, got, again)

	first := turnOf(wordsOnly(10), "whales")
	first.ThreadID = "not yet there"
	got, err = m.RecallForTurn(ctx, first)
	require.NoError(t, err)
	assert.Equal(t, []string{"recalled"}, ids(got.Messages), "the first turn of a thread")
	for _, silent := range []recall.Turn{
		turnOf(recall.Config{SemanticRecall: &recall.SemanticRecall{Off: true}}, "whales"),
		turnOf(wordsOnly(1), " "),
		turnOf(wordsOnly(1), "zebra"),
	} {
		got, err = m.RecallForTurn(ctx, silent)
		require.NoError(t, err)
		assert.Empty(t, got.Messages)
	}
}

func TestTheQuestionOfATurnIsItsLastUserMessage(t *testing.T) {
	t.Parallel()
	m, _ := counted(t)
	m.save(t, said("whale", "Whales sing"), said("tea", "Tea is hot"))
	turn := turnOf(wordsOnly(1), "whales")
	turn.Messages = append(turn.Messages,
		recall.NewMessage{ID: "a", Role: "assistant", Content: text("Do you take tea?")},
		recall.NewMessage{ID: "b", Role: "user", Content: toolResult("x")},
	)
	got, err := m.RecallForTurn(ctx, turn)
	require.NoError(t, err)
	assert.Equal(t, []string{"whale"}, ids(got.Messages))
}

func TestHistoryBeforeATurn(t *testing.T) {
	t.Parallel()
	m, _ := counted(t)
	m.save(t,
		said("u1", "What is the weather?"),
		message(recall.NewMessage{ID: "call", Role: "assistant", Content: toolCall("c1")}),
		message(recall.NewMessage{ID: "result", Role: "tool", Content: toolResult("c1")}),
		message(recall.NewMessage{ID: "a1", Role: "assistant", Content: text("Sunny")}),
		message(recall.NewMessage{ID: "s1", Role: "system", Content: text("Be brief")}),
		said("asked", "Thanks"),
	)
	got, err := m.HistoryForTurn(ctx, turnOf(recall.Config{LastMessages: of(4)}, "Thanks"))
	require.NoError(t, err)
	assert.Equal(t, []string{"call", "result", "a1"}, ids(got.Messages), "from the call, never from its result; no system message")
	turn := turnOf(recall.Config{}, "Hello")
	turn.ThreadID = "new"
	got, err = m.HistoryForTurn(ctx, turn)
	require.NoError(t, err)
	assert.Empty(t, got.Messages)
	turn.ThreadID, turn.ResourceID = thread, "ben"
	_, err = m.HistoryForTurn(ctx, turn)
	requireCode(t, err, recall.CodeForbidden)
}

func TestATurnIsSavedWithoutWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	m, embedder := counted(t)
	parts := func(parts ...string) json.RawMessage {
		return json.RawMessage(`{"format":2,"parts":[` + strings.Join(parts, ",") + `]}`)
	}
	const words = `{"type":"text","text":"Noted."}`
	call := func(name, state string) string {
		return `{"type":"tool-invocation","toolInvocation":{"toolCallId":"c","toolName":"` + name + `","state":"` + state + `","args":{}}}`
	}
	turn := recall.Turn{ThreadID: "new", ResourceID: resource, Messages: []recall.NewMessage{
		{ID: "s", Role: "system", Content: text("Be brief")},
		{ID: "r", Role: "user", Content: text("From before"), Recalled: true},
		{ID: "u", Role: "user", Content: text("I am Sam")},
		{ID: "gone", Role: "assistant", Content: parts(call("updateWorkingMemory", "result"))},
		{ID: "writing", Role: "assistant", Content: parts(words, call("weather", "partial-call"))},
		{ID: "called", Role: "assistant", Content: parts(call("weather", "call"), words)},
		{ID: "v5", Role: "assistant", Content: parts(`{"type":"tool-updateWorkingMemory","toolCallId":"d","state":"output-available"}`, words)},
		{ID: "tags", Role: "assistant", Content: parts(`{"type":"text","text":"Hi. <working_memory># Sam</working_memory>","extra":1}`)},
		{ID: "plain", Role: "assistant", Content: json.RawMessage(`"Hello <working_memory>x</working_memory>"`)},
		{ID: "open", Role: "assistant", Content: text("An <working_memory> without an end")},
	}}
	saved, err := m.SaveTurn(ctx, turn)
	require.NoError(t, err)
	assert.Equal(t, []string{"u", "writing", "called", "v5", "tags", "plain", "open"}, ids(saved))
	contents := map[string]string{}
	for _, message := range m.stored(t, "new") {
		contents[message.ID] = string(message.Content)
	}
	assert.JSONEq(t, `{"format":2,"parts":[`+words+`]}`, contents["writing"])
	assert.JSONEq(t, `{"format":2,"parts":[`+call("weather", "call")+`,`+words+`]}`, contents["called"])
	assert.JSONEq(t, `{"format":2,"parts":[`+words+`]}`, contents["v5"])
	assert.JSONEq(t, `{"format":2,"parts":[{"type":"text","text":"Hi.","extra":1}]}`, contents["tags"])
	assert.JSONEq(t, `{"format":2,"parts":[{"type":"text","text":"Hello"}],"content":"Hello"}`, contents["plain"])
	assert.Contains(t, contents["open"], "without an end")

	embedder.calls()
	_, err = m.SaveTurn(ctx, turn)
	require.NoError(t, err)
	assert.Zero(t, embedder.calls(), "saved again")
	assert.Len(t, m.stored(t, "new"), 7)
	turn.Messages = []recall.NewMessage{{Role: "user", Content: text("x")}, {ID: "o", ThreadID: "other", Role: "user", Content: text("x")}}
	_, err = m.SaveTurn(ctx, turn)
	requireCode(t, err, recall.CodeInvalid, "messages.0.id", "messages.1.threadId")
}

func TestWhatWasRecalledIsNotFoundAgain(t *testing.T) {
	t.Parallel()
	m, embedder := counted(t)
	m.save(t, message(recall.NewMessage{ID: "far", ThreadID: "trip", Content: text("We saw whales off the coast")}))
	got, err := m.RecallForTurn(ctx, turnOf(wordsOnly(1), "whales"))
	require.NoError(t, err)
	embedder.calls()
	block := got.Messages[0].Text()
	_, err = m.SaveMessages(ctx, []recall.NewMessage{
		{ID: "r", ThreadID: thread, ResourceID: resource, Role: "user", Content: text("x"), Recalled: true},
		said("all", block),
		said("some", "Sam here. "+block+" Good day."),
	}, true)
	require.NoError(t, err)
	require.Equal(t, [][]string{{"Sam here. Remembered from other conversations with this user:\n Good day."}}, [][]string{{embedder.documents[0][len(embedder.documents[0])-1]}})
	assert.Equal(t, []string{"far"}, m.hitIDs(t, recall.Request{ResourceID: resource, Search: byWords("whales coast")}))
	assert.Equal(t, []string{"all", "some"}, ids(m.stored(t, thread)))
}

func TestToolPairsAreThoseOfTheStatements(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	member := func(t *rapid.T, object map[string]any, name string, values ...any) {
		if value := rapid.SampledFrom(values).Draw(t, name); value != nil {
			object[name] = value
		}
	}
	call := rapid.Custom(func(t *rapid.T) any {
		object := map[string]any{}
		member(t, object, "toolCallId", "a", "b", 1, nil)
		member(t, object, "state", "call", "result", "partial-call", "output-available", "output-error", "input-available", 5, nil)
		member(t, object, "type", "tool-call", "tool-result", "tool-x", "text", "tool-invocation", nil)
		if rapid.Bool().Draw(t, "nested?") {
			inner := map[string]any{}
			member(t, inner, "toolCallId", "c", "d", nil)
			member(t, inner, "state", "call", "result", nil)
			object["toolInvocation"] = inner
		}
		return object
	})
	rapid.Check(t, func(t *rapid.T) {
		content := object(map[string]any{
			"parts": rapid.SliceOfN(call, 0, 4).Draw(t, "parts"), "toolInvocations": rapid.SliceOfN(call, 0, 2).Draw(t, "old"),
		})
		calls, results := recall.ToolPairs(content)
		set := func(function string) []string {
			return column[string](t, m, `SELECT DISTINCT v #>> '{}' FROM jsonb_array_elements(recall.`+function+`($1::jsonb)) AS v
				WHERE jsonb_typeof(v) = 'string' ORDER BY 1`, string(content))
		}
		require.Equal(t, set("tool_call_ids"), unique(calls))
		require.Equal(t, set("tool_result_ids"), unique(results))
	})
}

func unique(texts []string) []string {
	texts = append([]string(nil), texts...)
	slices.Sort(texts)
	return slices.Compact(texts)
}

func TestWorkingMemoryBeforeATurn(t *testing.T) {
	t.Parallel()
	m, _ := counted(t)
	m.save(t, said("u", "I am Sam"))
	_, err := m.UpdateWorkingMemory(ctx, recall.WorkingMemoryUpdate{WorkingMemoryOf: recall.WorkingMemoryOf{ThreadID: thread}, Text: of("- Name: Sam")})
	require.NoError(t, err)
	turn := turnOf(recall.Config{WorkingMemory: &recall.WorkingMemoryConfig{Enabled: true}}, "Hello")
	got, err := m.InstructionForTurn(ctx, turn)
	require.NoError(t, err)
	require.Equal(t, []string{"working-memory"}, ids(got.Messages))
	assert.Contains(t, got.Messages[0].Text(), "- Name: Sam")
	assert.Equal(t, "system", got.Messages[0].Role)

	config := lastAnd(5, 0)
	config.WorkingMemory = turn.Config.WorkingMemory
	in := recall.ContextRequest{ThreadID: thread, ResourceID: resource, Config: config}
	seen := m.whatModelsSee(t, in)
	assert.Equal(t, []string{"working-memory", "u"}, ids(seen.Messages))
	assert.Equal(t, []recall.Reason{recall.ReasonWorkingMemory}, seen.Messages[0].Explain.Reasons)
	in.MaxTokens = seen.Tokens - 1
	assert.Equal(t, []string{"u"}, ids(m.whatModelsSee(t, in).Messages), "the newest message comes first")
	in.ThreadID = "new"
	in.MaxTokens = 0
	assert.Equal(t, []string{"working-memory"}, ids(m.whatModelsSee(t, in).Messages))

	turn.Config.WorkingMemory = &recall.WorkingMemoryConfig{}
	got, err = m.InstructionForTurn(ctx, turn)
	require.NoError(t, err)
	assert.Empty(t, got.Messages)
}

package recall_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/embed/embedtest"
)

// counting is the embedder in the program, with what it was asked for.
type counting struct {
	embed.Static
	mu        sync.Mutex
	documents [][]string // of each call
	questions int
	err       error
}

func (c *counting) Embed(ctx context.Context, texts []string, kind embed.Kind) ([]embed.Vector, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if kind == embed.Query {
		c.questions++
	} else {
		c.documents = append(c.documents, texts)
	}
	if c.err != nil {
		return nil, c.err
	}
	return c.Static.Embed(ctx, texts, kind)
}

// calls counts the calls for documents since it was last asked.
func (c *counting) calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.documents)
	c.documents = nil
	return n
}

func counted(t testing.TB) (memory, *counting) {
	t.Helper()
	embedder := &counting{}
	pool := dbtest.New(t)
	m := memory{recall.New(pool, recall.DefaultLimits(), recall.WithEmbedder(embedder)), pool}
	require.NoError(t, m.CheckEmbedder(ctx))
	return m, embedder
}

// vectorsOf gives the rows of vectors, by message.
func (m memory) vectorsOf(t must, where string) []string {
	t.Helper()
	return column[string](t, m, `SELECT e.message_id FROM recall.embeddings_1 AS e WHERE `+where+` ORDER BY e.message_id, e.chunk`)
}

var conversationTopics = []string{"tea", "trains", "mountains", "invoices", "guitars", "football", "databases", "gardens", "whales", "bread"}

// talk gives n messages of which no two say the same.
func talk(prefix string, n int) []recall.NewMessage {
	messages := series(prefix, n, recall.NewMessage{})
	for i := range messages {
		messages[i].Content = text(fmt.Sprintf("Let us talk about %s, number %d", conversationTopics[i%len(conversationTopics)], i))
	}
	return messages
}

func TestATextIsEmbeddedOnce(t *testing.T) {
	t.Parallel()
	m, embedder := counted(t)
	history := talk("m", 20)
	m.save(t, history...)
	assert.Equal(t, 1, embedder.calls(), "one call for a batch")
	assert.Len(t, m.vectorsOf(t, "embedding IS NOT NULL"), 20)

	m.save(t, history...)
	assert.Zero(t, embedder.calls(), "history saved again")

	next := message(recall.NewMessage{ID: "next", Content: text("And now for the weather")})
	m.save(t, append(history, next)...)
	require.Equal(t, [][]string{{"And now for the weather"}}, embedder.documents, "one new message")
	embedder.calls()

	for i := range history {
		history[i].Type = "v2"
	}
	m.save(t, history...)
	assert.Zero(t, embedder.calls(), "another type")

	_, err := m.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "m1", Content: json.RawMessage(`{"metadata":{"read":true}}`)}}, "")
	require.NoError(t, err)
	assert.Zero(t, embedder.calls(), "a patch of metadata")

	_, err = m.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "m2", Content: text("Quantum physics instead")}}, "")
	require.NoError(t, err)
	require.Equal(t, [][]string{{"Quantum physics instead"}}, embedder.documents, "an edit")
	embedder.calls()

	_, err = m.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "m3", Content: json.RawMessage(`{"metadata":{"name":"Ana"}}`)}}, "")
	require.NoError(t, err)
	require.Len(t, embedder.documents, 1, "the speaker is part of the text")
	assert.True(t, strings.HasPrefix(embedder.documents[0][0], "Ana: "))
	assert.Len(t, m.vectorsOf(t, "true"), 21)
}

func TestAnEditedTextIsFoundByTheNewOneAlone(t *testing.T) {
	t.Parallel()
	m, _ := counted(t)
	m.save(t, talk("m", 10)...)
	m.save(t, said("edited", "The whale watching trip begins at noon"))
	find := func(question string, mode recall.Mode) *recall.Hit {
		for _, hit := range m.hits(t, recall.Request{ThreadID: thread, Search: &recall.Search{Question: question, TopK: 50, Mode: mode, Before: of(0), After: of(0)}}) {
			if hit.ID == "edited" {
				return hit.Explain.Hit
			}
		}
		return nil
	}
	before := find("whale watching trip", recall.Semantic)
	require.NotNil(t, before)
	for name, edit := range map[string]func() error{
		"an update": func() error {
			_, err := m.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "edited", Content: text("Interest rates were raised by the bank")}}, "")
			return err
		},
		"a save": func() error {
			_, err := m.SaveMessages(ctx, []recall.NewMessage{said("edited", "Interest rates were raised by our bank")}, false)
			return err
		},
	} {
		require.NoError(t, edit(), name)
		old, now := find("whale watching trip", recall.Semantic), find("interest rates of the bank", recall.Semantic)
		assert.Less(t, *old.Similarity, *before.Similarity/2, name)
		assert.Equal(t, 1, now.Rank, name)
		assert.Positive(t, find("interest", recall.Lexical).Words, name)
		assert.Nil(t, find("noon", recall.Lexical), name)
		assert.Len(t, m.vectorsOf(t, "message_id = 'edited'"), 1, name)
	}
	// What is no longer said by anyone has no vector.
	_, err := m.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "edited", Role: "tool"}}, "")
	require.NoError(t, err)
	assert.Empty(t, m.vectorsOf(t, "message_id = 'edited'"))
	_, err = m.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "edited", Role: "user", Content: text(" \n ")}}, "")
	require.NoError(t, err)
	assert.Empty(t, m.vectorsOf(t, "message_id = 'edited'"))
}

func TestALongTextIsFoundByAnyPartOfIt(t *testing.T) {
	t.Parallel()
	m, embedder := counted(t)
	m.save(t, talk("m", 10)...)
	long := strings.Repeat("The committee discussed the quarterly budget of the department at length. ", 60) +
		"Penguins swim in cold water. " + strings.Repeat("The committee discussed the quarterly budget of the department at length. ", 60)
	m.save(t, said("long", long))
	embedder.calls()
	rows := m.vectorsOf(t, "message_id = 'long'")
	assert.Greater(t, len(rows), 4, "chunks")
	found := m.hits(t, recall.Request{ThreadID: thread, Search: meaning("the quarterly budget of the department", 20)})
	assert.Equal(t, "long", found[0].ID)
	assert.Len(t, found, 11, "one hit of several chunks")

	_, err := m.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "long", Content: text("Short")}}, "")
	require.NoError(t, err)
	assert.Len(t, m.vectorsOf(t, "message_id = 'long'"), 1, "no chunk of the old text is left")
}

func TestACloneIsFoundWithoutEmbeddingIt(t *testing.T) {
	t.Parallel()
	m, embedder := counted(t)
	m.save(t, talk("m", 100)...)
	m.save(t, said("long", strings.Repeat("A very long story about whales. ", 200)), said("wordless", "…"))
	embedder.calls()
	rows := len(m.vectorsOf(t, "thread_id = 'thread'"))

	clone, err := m.CloneThread(ctx, recall.ThreadClone{SourceID: thread, ResourceID: "bob"})
	require.NoError(t, err)
	assert.Zero(t, embedder.calls())
	assert.Len(t, m.vectorsOf(t, "thread_id = '"+clone.Thread.ID+"' AND resource_id = 'bob'"), rows)
	find := func(in recall.Request, k int) []string {
		in.Search = meaning("Let us talk about whales", k)
		if in.ThreadID != "" {
			in.Search.Scope = recall.ScopeThread
		}
		var contents []string
		for _, hit := range m.hits(t, in) {
			contents = append(contents, fmt.Sprintf("%s %.6f", hit.Content, *hit.Explain.Hit.Similarity))
		}
		return contents
	}
	assert.Len(t, find(recall.Request{ResourceID: "bob"}, 50), 50)
	assert.Equal(t, find(recall.Request{ThreadID: thread}, 50), find(recall.Request{ResourceID: "bob"}, 50), "the same, at the same similarities")

	// Saved again the copies have their vectors already.
	var again []recall.NewMessage
	for _, copied := range clone.Messages {
		again = append(again, recall.NewMessage{
			ID: copied.ID, ThreadID: copied.ThreadID, ResourceID: "bob", Role: copied.Role, Type: "again", Content: copied.Content,
		})
	}
	m.save(t, again...)
	assert.Zero(t, embedder.calls())

	part, err := m.CloneThread(ctx, recall.ThreadClone{SourceID: thread, MessageLimit: of(5)})
	require.NoError(t, err)
	assert.Zero(t, embedder.calls())
	// "wordless" is among the five.
	assert.Len(t, find(recall.Request{ThreadID: part.Thread.ID, Search: nil}, 50), len(m.vectorsOf(t, "thread_id = '"+part.Thread.ID+"' AND chunk = 0 AND embedding IS NOT NULL")))

	_, err = m.UpdateMessages(ctx, []recall.MessageUpdate{{ID: clone.Messages[0].ID, Content: text("Nothing of the kind")}}, "")
	require.NoError(t, err)
	assert.Equal(t, 1, embedder.calls())
	assert.Len(t, m.vectorsOf(t, "message_id = 'm1'"), 1, "the source keeps its own")
}

func TestVectorsFollowTheirThread(t *testing.T) {
	t.Parallel()
	m, embedder := counted(t)
	m.save(t, talk("m", 10)...)
	embedder.calls()
	search := meaning("Let us talk about whales", 3)
	want := m.hitIDs(t, recall.Request{ResourceID: resource, Search: search})
	require.Len(t, want, 3)
	_, err := m.TransferThread(ctx, thread, "", "bob")
	require.NoError(t, err)
	assert.Zero(t, embedder.calls())
	assert.Equal(t, want, m.hitIDs(t, recall.Request{ResourceID: "bob", Search: search}))
	assert.Empty(t, m.hitIDs(t, recall.Request{ResourceID: resource, Search: search}), "the old owner finds nothing")
	assert.Empty(t, m.vectorsOf(t, "resource_id <> 'bob'"))
}

func TestWhatIsDeletedLeavesNoVector(t *testing.T) {
	t.Parallel()
	m, _ := counted(t)
	m.save(t, talk("m", 10)...)
	m.save(t, message(recall.NewMessage{ID: "other", ThreadID: "other"}))
	_, err := m.DeleteMessages(ctx, []string{"m1", "m2"}, "")
	require.NoError(t, err)
	assert.Len(t, m.vectorsOf(t, "true"), 9)
	assert.NotContains(t, m.hitIDs(t, recall.Request{ThreadID: thread, Search: meaning("talk about tea", 50)}), "m1")
	_, err = m.DeleteThreadMessages(ctx, thread, "")
	require.NoError(t, err)
	assert.Equal(t, []string{"other"}, m.vectorsOf(t, "true"))
	require.NoError(t, m.DeleteThread(ctx, "other", ""))
	assert.Empty(t, m.vectorsOf(t, "true"))
	m.save(t, said("m1", "back again"))
	assert.Equal(t, []string{"m1"}, m.vectorsOf(t, "true"))
}

func TestASaveThatIsTakenBackLeavesNoVector(t *testing.T) {
	t.Parallel()
	m, embedder := counted(t)
	m.save(t, message(recall.NewMessage{ID: "taken", ThreadID: "other"}))
	_, err := m.SaveMessages(ctx, append(talk("m", 3), said("taken", "in another thread")), true)
	requireCode(t, err, recall.CodeConflict, "messages.3.id")
	assert.Equal(t, []string{"taken"}, m.vectorsOf(t, "true"))
	embedder.err = &embed.Error{Reason: embed.ErrUnavailable}
	_, err = m.SaveMessages(ctx, talk("m", 3), true)
	if err != nil { // all or nothing
		assert.Empty(t, m.stored(t, "other")[1:])
		assert.Equal(t, []string{"taken"}, m.vectorsOf(t, "true"))
	}
}

func TestNothingButWhatUserAndAssistantSayIsEmbedded(t *testing.T) {
	t.Parallel()
	m, embedder := counted(t)
	m.save(t,
		message(recall.NewMessage{ID: "call", Role: "assistant", Content: toolCall("c1")}),
		message(recall.NewMessage{ID: "result", Role: "tool", Content: toolResult("c1")}),
		message(recall.NewMessage{ID: "system", Role: "system", Content: text("Be kind")}),
		message(recall.NewMessage{ID: "tool", Role: "tool", Content: text("42 degrees")}),
		message(recall.NewMessage{ID: "reasoning", Role: "assistant", Content: json.RawMessage(`{"parts":[{"type":"reasoning","text":"Let me think"}]}`)}),
		message(recall.NewMessage{ID: "empty", Content: json.RawMessage(`{"parts":[]}`)}),
		message(recall.NewMessage{ID: "blank", Content: text("  \n\t")}),
	)
	assert.Zero(t, embedder.calls())
	assert.Empty(t, m.vectorsOf(t, "true"))
	m.save(t, message(recall.NewMessage{ID: "both", Role: "assistant", Content: json.RawMessage(
		`{"parts":[{"type":"reasoning","text":"Hm"},{"type":"text","text":"one"},{"type":"tool-invocation","toolInvocation":{}},{"type":"text","text":"two"}],"metadata":{"name":"Ana"}}`)}))
	require.Equal(t, [][]string{{"Ana: one\ntwo"}}, embedder.documents)
	// A text of which the model knows nothing is known to have no vector.
	embedder.calls()
	m.save(t, said("emoji", "🤷"))
	assert.Equal(t, 1, embedder.calls())
	assert.Equal(t, []string{"emoji"}, m.vectorsOf(t, "embedding IS NULL"))
	_, err := m.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "emoji", Type: "again"}}, "")
	require.NoError(t, err)
	assert.Zero(t, embedder.calls())
}

// The texts of a message as the program reads them and as PostgreSQL does.
func TestWhatIsEmbeddedIsWhatIsSearchedByWords(t *testing.T) {
	t.Parallel()
	m, embedder := counted(t)
	texts := rapid.OneOf(
		rapid.SampledFrom([]any{"", "tea", " ", "a\nb", "京都", "é", `"`, "\\", nil,
			"a<remembered_from_other_conversation>b\nc<end_remembered_from_other_conversation>d", "<remembered_from_other_conversation>x",
			"<end_remembered_from_other_conversation>", 5, true, []any{"tea"}, map[string]any{"text": "tea"}}),
		rapid.Map(rapid.StringMatching(`[a-z ]{0,8}`), func(s string) any { return s }),
	)
	types := rapid.SampledFrom([]any{"text", "text", "text", "reasoning", "Text", nil, []any{"text"}})
	keys := rapid.SampledFrom([]string{"text", "text", "text", "Text"})
	part := rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 9).Draw(t, "part") {
		case 0:
			return texts.Draw(t, "no object")
		case 1:
			return map[string]any{"type": "text"}
		case 2:
			return []any{map[string]any{"type": "text", "text": "nested"}}
		}
		return map[string]any{"type": types.Draw(t, "type"), keys.Draw(t, "key"): texts.Draw(t, "text")}
	})
	contents := rapid.Custom(func(t *rapid.T) json.RawMessage {
		content := map[string]any{}
		if rapid.IntRange(0, 4).Draw(t, "parts?") > 0 {
			content[rapid.SampledFrom([]string{"parts", "parts", "parts", "Parts"}).Draw(t, "key")] = rapid.SliceOfN(part, 0, 3).Draw(t, "parts")
		} else if rapid.Bool().Draw(t, "odd") {
			content["parts"] = part.Draw(t, "parts")
		}
		if rapid.Bool().Draw(t, "content?") {
			content["content"] = texts.Draw(t, "content")
		}
		switch rapid.IntRange(0, 4).Draw(t, "metadata") {
		case 0:
			content["metadata"] = map[string]any{"name": texts.Draw(t, "name")}
		case 1:
			content["metadata"] = map[string]any{"Name": "Eve"}
		case 2:
			content["metadata"] = texts.Draw(t, "metadata")
		}
		return object(content)
	})
	rapid.Check(t, func(t *rapid.T) {
		own := prefix()
		var drafts []recall.NewMessage
		for i, content := range rapid.SliceOfN(contents, 1, 8).Draw(t, "contents") {
			drafts = append(drafts, recall.NewMessage{
				ID: own + strconv.Itoa(i), ThreadID: own, ResourceID: own, Content: content,
				Role: rapid.SampledFrom([]string{"user", "assistant", "tool"}).Draw(t, "role"),
			})
		}
		embedder.calls()
		m.save(t, drafts...)
		var embedded []string
		for _, call := range embedder.documents {
			embedded = append(embedded, call...)
		}
		want := column[string](t, m, `
			SELECT CASE WHEN jsonb_typeof(m.content -> 'metadata' -> 'name') = 'string' AND m.content -> 'metadata' ->> 'name' <> ''
				THEN (m.content -> 'metadata' ->> 'name') || ': ' ELSE '' END || s.said
			FROM recall.messages AS m
			CROSS JOIN LATERAL (
				SELECT string_agg(u.said, E'\n' ORDER BY u.n) AS said
				FROM jsonb_array_elements_text(recall.message_texts(m.content)) WITH ORDINALITY AS u (said, n)
			) AS s
			WHERE m.thread_id = $1 AND m.role <> 'tool' AND s.said ~ '\S'
			ORDER BY m.seq`, own)
		require.Equal(t, want, embedded, "%s", drafts)
	})
}

func TestWithoutItsEmbedderHybridAnswersByWords(t *testing.T) {
	t.Parallel()
	m, embedder := counted(t)
	m.save(t, talk("m", 10)...)
	embedder.err = &embed.Error{Reason: embed.ErrUnavailable, Detail: "status 503"}
	ask := func(mode recall.Mode) (recall.Result, error) {
		return m.Recall(ctx, recall.Request{ThreadID: thread, PerPage: of(0), Explain: true, Search: &recall.Search{
			Question: "whales?", Mode: mode, TopK: 1, Before: of(0), After: of(0),
		}})
	}
	result, err := ask(recall.Hybrid)
	require.NoError(t, err)
	assert.True(t, result.Degraded)
	require.Equal(t, []string{"m9"}, ids(result.Messages))
	assert.Equal(t, []recall.Reason{recall.ReasonLexical}, result.Messages[0].Explain.Reasons)
	assert.Empty(t, result.Search.Plan)

	_, err = ask(recall.Semantic)
	requireCode(t, err, recall.CodeUnavailable)
	require.ErrorIs(t, err, embed.ErrUnavailable)

	result, err = ask(recall.Lexical)
	require.NoError(t, err)
	assert.False(t, result.Degraded, "it needs no embedder")
	assert.Equal(t, []string{"m9"}, ids(result.Messages))

	// What is no failure of the embedder is none of degraded.
	embedder.err = errors.New("a fault of ours")
	_, err = ask(recall.Hybrid)
	require.Error(t, err)

	embedder.err = nil
	result, err = ask(recall.Hybrid)
	require.NoError(t, err)
	assert.False(t, result.Degraded, "failures are not remembered")
	assert.Equal(t, []recall.Reason{recall.ReasonSemantic, recall.ReasonLexical}, result.Messages[0].Explain.Reasons)
	asked := embedder.questions
	_, err = ask(recall.Hybrid)
	require.NoError(t, err)
	assert.Equal(t, asked, embedder.questions, "the answer is")
}

func TestWithoutAnEmbedderWordsAloneAreFound(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, talk("m", 10)...)
	assert.Empty(t, m.vectorsOf(t, "true"))
	for _, mode := range []recall.Mode{"", recall.Hybrid, recall.Semantic} {
		_, err := m.Recall(ctx, recall.Request{ThreadID: thread, Search: &recall.Search{Question: "whales", Mode: mode}})
		requireCode(t, err, recall.CodeInvalid, "vectorSearchString")
	}
	assert.Equal(t, "m9", m.hitIDs(t, recall.Request{ThreadID: thread, Search: byWords("whales")})[0])
}

func TestTheEmbedderMustBeThatOfTheLiveIndex(t *testing.T) {
	t.Parallel()
	m, _ := counted(t)
	other := recall.New(m.pool, recall.DefaultLimits(), recall.WithEmbedder(embedtest.NewFixed(256, nil)))
	require.ErrorContains(t, other.CheckEmbedder(ctx), `"fixed"`)
	require.NoError(t, newMemory(t).CheckEmbedder(ctx), "none needs none")
	m.useIndex(t, 3, false)
	require.Error(t, m.CheckEmbedder(ctx))
	require.ErrorContains(t, recall.New(m.pool, recall.DefaultLimits(), recall.WithEmbedder(embedtest.NewFixed(2, nil))).CheckEmbedder(ctx), "3 dimensions")
	_, err := m.pool.Exec(ctx, `UPDATE recall.embedding_indexes SET state = 'retired'`)
	require.NoError(t, err)
	require.Error(t, m.CheckEmbedder(ctx))
}

// Two indexes of one model are both filled; one of another model is left alone.
func TestVectorsGoIntoEveryIndexOfTheModel(t *testing.T) {
	t.Parallel()
	m, embedder := counted(t)
	m.save(t, said("early", "Before there were two"))
	_, err := m.pool.Exec(ctx, `
		INSERT INTO recall.embedding_indexes (name, model, dimensions, length_prior, created_at)
		VALUES ('second', 'potion-base-8M', 256, true, now()), ('third', 'another', 3, false, now())`)
	require.NoError(t, err)
	tables := column[string](t, m, `SELECT recall.create_embedding_table(i) FROM recall.embedding_indexes AS i WHERE i.state = 'building' ORDER BY i.id`)
	embedder.calls()
	m.save(t, said("late", "Now that there are two"))
	assert.Equal(t, 1, embedder.calls(), "for both of them")
	in := func(table string) []string {
		return column[string](t, m, `SELECT message_id FROM recall.`+table+` ORDER BY 1`)
	}
	assert.Equal(t, []string{"early", "late"}, in("embeddings_1"))
	assert.Equal(t, []string{"late"}, in(tables[0]))
	assert.Empty(t, in(tables[1]))
	assert.Equal(t, []string{"late"}, m.hitIDs(t, recall.Request{ThreadID: thread, Search: func() *recall.Search {
		named := meaning("two", 5)
		named.IndexName = "second"
		return named
	}()}), "an index by its name")
	clone, err := m.CloneThread(ctx, recall.ThreadClone{SourceID: thread})
	require.NoError(t, err)
	assert.ElementsMatch(t, append([]string{"late"}, ids(clone.Messages)...), in(tables[0]), "also what its source lacks there")
	_, err = m.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "late", Role: "tool"}}, "")
	require.NoError(t, err)
	assert.NotContains(t, in(tables[0]), "late")
	_, err = m.DeleteThreadMessages(ctx, clone.Thread.ID, "")
	require.NoError(t, err)
	assert.Empty(t, in(tables[0]))
}

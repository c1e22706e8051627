package eval

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
)

func TestEvidenceIsCountedWithAndWithoutContext(t *testing.T) {
	t.Parallel()
	c := Conversation{ID: "c"}
	for i, id := range []string{"a1", "a2", "a3", "a4", "a5", "b1", "b2"} {
		part := id[:1]
		c.Turns = append(c.Turns, Turn{ID: id, Part: part, Place: i, Text: "12345678"})
	}
	p := placesOf(&c)
	assert.Equal(t, []string{"a3", "a4", "a5"}, p.around("a5"), "not into the next part")

	q := Question{Evidence: []string{"a1", "b2"}}
	m := p.judge(q, []string{"a3", "b2"}, []int{1, 2, 5}, 1)
	assert.Equal(t, sight{recall: []float64{0, .5, .5}, any: false, tokens: 2}, m.hits)
	assert.Equal(t, sight{recall: []float64{.5, 1, 1}, any: true, tokens: 10}, m.withContext)

	unknown := p.judge(Question{Evidence: []string{"a1", "nowhere"}}, []string{"a1"}, []int{5}, 5)
	assert.Equal(t, []float64{.5}, unknown.hits.recall, "evidence that is not there is never found")
	assert.Equal(t, []float64{0}, p.judge(q, nil, []int{5}, 5).withContext.recall)
}

func TestScoresAreMeansOfAllAndOfEachCategory(t *testing.T) {
	t.Parallel()
	marks := []mark{
		{category: "x", hits: sight{recall: []float64{1}, any: true, tokens: 4}},
		{category: "y", hits: sight{recall: []float64{.5}, any: true, tokens: 8}},
		{category: "x", hits: sight{recall: []float64{0}, tokens: 0}},
		{category: "", hits: sight{recall: []float64{.5}, tokens: 4}},
	}
	var got []Scores
	for _, s := range summarise(marks, []int{5}) {
		got = append(got, Scores{Category: s.Category, Questions: s.Questions, Hits: s.Hits})
	}
	found := func(recall, some, tokens float64) Found {
		return Found{Recall: map[string]float64{"5": recall}, Any: some, Tokens: tokens}
	}
	assert.Equal(t, []Scores{
		{Category: "", Questions: 4, Hits: found(.5, .5, 4)},
		{Category: "none", Questions: 1, Hits: found(.5, 0, 4)},
		{Category: "x", Questions: 2, Hits: found(.5, .5, 2)},
		{Category: "y", Questions: 1, Hits: found(.5, 1, 8)},
	}, got)
	assert.Len(t, summarise(marks[1:2], []int{5}), 1, "one category is all")
}

func TestASetIsLoadedAndAsked(t *testing.T) {
	t.Parallel()
	memory := recall.New(dbtest.New(t), recall.DefaultLimits(), recall.WithEmbedder(embed.Static{}))
	set := readFile(t, "samples.json")
	last := map[string]int{}
	progress := func(phase string, done, total int) {
		assert.LessOrEqual(t, done, total)
		last[phase] = done
	}
	require.NoError(t, Load(t.Context(), memory, set, progress))
	modes := []recall.Mode{recall.Hybrid, recall.Semantic, recall.Lexical}
	report, err := Ask(t.Context(), memory, set, Options{Modes: modes, K: 3, Progress: progress})
	require.NoError(t, err)

	assert.Equal(t, map[string]int{"load": 18, "hybrid": 6, "semantic": 6, "lexical": 6}, last)
	assert.Equal(t, []string{"3", "5", "10", "20", "50"}, report.Cutoffs())
	assert.Equal(t, []int{2, 18, 6, 2}, []int{report.Conversations, report.Messages, report.Questions, report.LeftOut})
	for i, mode := range report.Modes {
		assert.Equal(t, modes[i], mode.Mode)
		require.Len(t, mode.Scores, 4, "all, and the categories 1, 2 and 4")
		all := mode.Scores[0]
		assert.Equal(t, 6, all.Questions)
		assert.GreaterOrEqual(t, all.Hits.Recall["3"], .5, "%s", mode.Mode)
		assert.GreaterOrEqual(t, all.Hits.Recall["10"], .9, "%s", mode.Mode)
		assert.GreaterOrEqual(t, all.WithContext.Recall["3"], all.Hits.Recall["3"])
		assert.Greater(t, all.WithContext.Tokens, all.Hits.Tokens)
	}
	assert.InDelta(t, 1, report.Modes[1].Scores[0].Hits.Recall["50"], 1e-9, "semantic: topK beyond the scope is all of it")

	page, err := memory.ListMessages(t.Context(), recall.Request{ThreadID: "bakery", ResourceID: "bakery"})
	require.NoError(t, err)
	require.Len(t, page.Messages, 10)
	assert.Equal(t, "bakery:D1:1", page.Messages[0].ID)
	assert.JSONEq(t, `{"format":2,"parts":[{"type":"text","text":"Good morning! How did the bakery opening go?"}],"metadata":{"name":"Nora"}}`,
		string(page.Messages[0].Content))
}

func TestARefusalOfTheMemoryIsTold(t *testing.T) {
	t.Parallel()
	memory := recall.New(nil, recall.DefaultLimits())
	progress := func(string, int, int) {}
	set := Set{
		Conversations: []Conversation{{ID: "c", Turns: []Turn{{ID: "m"}}}},
		Questions:     []Question{{Conversation: "c", Text: "q", Evidence: []string{"m"}}},
	}
	require.ErrorContains(t, Load(t.Context(), memory, set, progress), `save the conversation "c"`)
	_, err := Ask(t.Context(), memory, set, Options{Modes: []recall.Mode{recall.Hybrid}, K: 10, Progress: progress})
	assert.ErrorContains(t, err, "needs an embedder")
}

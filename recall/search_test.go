package recall_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pgvector/pgvector-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db"
	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/embed/embedtest"
)

// searching gives a memory whose live index is that of the embedder.
func searching(t testing.TB, fixed *embedtest.Fixed) (m memory, table string) {
	t.Helper()
	pool := dbtest.New(t)
	m = memory{recall.New(pool, recall.DefaultLimits(), recall.WithEmbedder(fixed)), pool}
	return m, m.useIndex(t, fixed.Dimensions(), fixed.LengthPrior())
}

// meaning asks for the k messages nearest to the question.
func meaning(question string, k int) *recall.Search {
	return &recall.Search{Question: question, TopK: k, Mode: recall.Semantic, Before: of(0), After: of(0)}
}

// byWords asks for the messages that have the words of the question.
func byWords(question string) *recall.Search {
	return &recall.Search{Question: question, TopK: 50, Mode: recall.Lexical, Before: of(0), After: of(0)}
}

// hits gives the hits of a recall, best first.
func (m memory) hits(t must, in recall.Request) []recall.Message {
	t.Helper()
	in.PerPage, in.Explain = of(0), true
	var found []recall.Message
	for _, message := range m.recall(t, in).Messages {
		if message.Explain.Hit != nil {
			found = append(found, message)
		}
	}
	slices.SortFunc(found, func(a, b recall.Message) int { return a.Explain.Hit.Rank - b.Explain.Hit.Rank })
	for i, message := range found {
		require.Equal(t, i+1, message.Explain.Hit.Rank)
	}
	return found
}

func (m memory) hitIDs(t must, in recall.Request) []string {
	t.Helper()
	return ids(m.hits(t, in))
}

// said gives a message of the thread that says text.
func said(id, words string) recall.NewMessage {
	return message(recall.NewMessage{ID: id, Content: text(words)})
}

// The vectors of a plane: similarity is the cosine of the angle between two.
func direction(cosine float64) embed.Vector {
	return embed.Vector{float32(cosine), float32(math.Sqrt(1 - cosine*cosine))}
}

func TestThresholdKeepsWhatIsAsSimilarAtLeast(t *testing.T) {
	t.Parallel()
	fixed := embedtest.NewFixed(2, map[string]embed.Vector{
		"question": direction(1), "same": direction(1), "near": direction(.6), "aside": direction(0), "opposite": direction(-1),
	})
	m, _ := searching(t, fixed)
	m.save(t, said("1", "opposite"), said("2", "aside"), said("3", "near"), said("4", "same"), said("5", "without a vector"))
	all := []string{"4", "3", "2", "1"}
	for _, mode := range []recall.Mode{recall.Semantic, recall.Hybrid} {
		for _, c := range []struct {
			threshold *float64
			topK      int
			want      []string
		}{
			{nil, 4, all}, {nil, 3, all[:3]}, {nil, 50, all},
			{of(.59), 4, all[:2]}, {of(.61), 4, all[:1]}, {of(-.01), 4, all[:3]}, {of(-1.), 2, all[:2]}, {of(1.01), 4, nil},
		} {
			search := meaning("question", c.topK)
			search.Mode, search.Threshold = mode, c.threshold
			found := m.hits(t, recall.Request{ThreadID: thread, Search: search})
			assert.ElementsMatch(t, c.want, ids(found), "%s %+v", mode, c)
			if mode == recall.Semantic {
				assert.Equal(t, append([]string{}, c.want...), ids(found))
			}
			for _, hit := range found {
				want := map[string]float64{"1": -1, "2": 0, "3": .6, "4": 1}[hit.ID]
				assert.InDelta(t, want, *hit.Explain.Hit.Similarity, 1e-6)
			}
		}
	}
}

func TestThresholdHoldsInModeLexicalToo(t *testing.T) {
	t.Parallel()
	fixed := embedtest.NewFixed(2, map[string]embed.Vector{
		"green tea": direction(1), "tea": direction(.9), "iced tea": direction(.2), "coffee": direction(.95),
	})
	m, _ := searching(t, fixed)
	// Far apart, so that no words spread from one to another.
	for i, words := range []string{"tea", "hm", "hm", "iced tea", "hm", "hm", "coffee"} {
		m.save(t, said(strconv.Itoa(i), words))
	}
	search := byWords("green tea")
	assert.ElementsMatch(t, []string{"0", "1", "2", "3", "4"}, m.hitIDs(t, recall.Request{ThreadID: thread, Search: search}),
		"those with the word and their neighbours")
	search.Threshold = of(.5)
	assert.Equal(t, []string{"0"}, m.hitIDs(t, recall.Request{ThreadID: thread, Search: search}),
		"coffee is similar and has none of the words")
}

func TestAnEmptyThreadFindsTheOtherThreadsOfItsUser(t *testing.T) {
	t.Parallel()
	m, _ := searching(t, embedtest.NewFixed(2, map[string]embed.Vector{"question": direction(1), "hello": direction(.5)}))
	m.create(t, recall.NewThread{ID: "empty"})
	m.save(t, message(recall.NewMessage{ID: "mine", ThreadID: "other"}))
	m.save(t, message(recall.NewMessage{ID: "his", ThreadID: "foreign", ResourceID: "bob"}))
	for _, mode := range []recall.Mode{recall.Hybrid, recall.Semantic} {
		search := meaning("question", 5)
		search.Mode = mode
		for _, in := range []recall.Request{
			{ThreadID: "empty"}, {ThreadID: "empty", ResourceID: resource}, {ResourceID: resource},
		} {
			in.Search = search
			found := m.hits(t, in)
			require.Equal(t, []string{"mine"}, ids(found))
			assert.Equal(t, "other", found[0].ThreadID)
			assert.Equal(t, resource, found[0].ResourceID)
		}
		search.Scope = recall.ScopeThread
		assert.Empty(t, m.hitIDs(t, recall.Request{ThreadID: "empty", Search: search}), "scope thread")
		assert.Equal(t, []string{"his"}, m.hitIDs(t, recall.Request{ThreadID: "foreign", Search: search}))
		_, err := m.Recall(ctx, recall.Request{ThreadID: "empty", ResourceID: "bob", Search: meaning("question", 5)})
		requireCode(t, err, recall.CodeForbidden)
		_, err = m.Recall(ctx, recall.Request{ThreadID: "absent", Search: meaning("question", 5)})
		requireCode(t, err, recall.CodeNotFound)
		assert.Empty(t, m.hitIDs(t, recall.Request{ResourceID: "nobody", Search: everywhere(search)}))
	}
}

// everywhere is the search in all threads.
func everywhere(search *recall.Search) *recall.Search {
	wide := *search
	wide.Scope = recall.ScopeResource
	return &wide
}

func TestFiltersActBeforeTopK(t *testing.T) {
	t.Parallel()
	vectors := map[string]embed.Vector{"tea": direction(1)}
	for i := range 30 {
		vectors["tea "+strconv.Itoa(i)] = direction(1 - float64(i)/60)
	}
	m, _ := searching(t, embedtest.NewFixed(2, vectors))
	var saved []recall.NewMessage
	for i := range 30 { // 0 is nearest
		next := said(strconv.Itoa(i), "tea "+strconv.Itoa(i))
		next.CreatedAt, next.Role = second(i), []string{"user", "assistant"}[i/15]
		next.Content = object(map[string]any{
			"format": 2, "parts": []any{map[string]any{"type": "text", "text": "tea " + strconv.Itoa(i)}},
			"metadata": map[string]any{"k": i / 10, "n": i},
		})
		saved = append(saved, next)
	}
	m.save(t, saved...)
	for _, mode := range []recall.Mode{recall.Semantic, recall.Hybrid, recall.Lexical} {
		for name, c := range map[string]struct {
			filter recall.Filter
			extra  map[string]any
			want   string
		}{
			"metadata":           {recall.Filter{Metadata: map[string]any{"k": 2}}, nil, "20 21 22"},
			"where":              {recall.Filter{Where: map[string]any{"n": map[string]any{"$gte": 12}}}, nil, "12 13 14"},
			"roles":              {recall.Filter{Roles: []string{"assistant"}}, nil, "15 16 17"},
			"dates":              {recall.Filter{DateRange: recall.DateRange{Start: of(second(25)), End: of(second(26))}}, nil, "25 26"},
			"open dates":         {recall.Filter{DateRange: recall.DateRange{Start: of(second(25)), StartExclusive: true}}, nil, "26 27 28"},
			"of the hits":        {recall.Filter{}, map[string]any{"k": 1}, "10 11 12"},
			"of hits and page":   {recall.Filter{Metadata: map[string]any{"k": 1}}, map[string]any{"n": 19}, "19"},
			"all":                {recall.Filter{Metadata: map[string]any{"k": 2}, Roles: []string{"assistant"}, DateRange: recall.DateRange{Start: of(second(27))}}, nil, "27 28 29"},
			"nothing":            {recall.Filter{Metadata: map[string]any{"k": "2"}}, nil, ""},
			"contradicting ones": {recall.Filter{Metadata: map[string]any{"k": 1}}, map[string]any{"k": 2}, ""},
		} {
			search := meaning("tea", 3)
			search.Mode, search.Filter = mode, c.extra
			found := m.hitIDs(t, recall.Request{ThreadID: thread, Filter: c.filter, Search: search})
			if mode == recall.Semantic {
				assert.Equal(t, c.want, strings.Join(found, " "), name)
				continue
			}
			assert.Len(t, found, len(strings.Fields(c.want)), "%s %s", mode, name)
			passing := m.hitIDs(t, recall.Request{ThreadID: thread, Filter: c.filter, Search: func() *recall.Search { all := *search; all.TopK = 30; return &all }()})
			assert.Subset(t, passing, strings.Fields(c.want), "%s %s", mode, name)
			assert.Equal(t, passing[:min(3, len(passing))], append([]string{}, found...), "the best of what passes")
		}
	}
	page := m.recall(t, recall.Request{ThreadID: thread, PerPage: of(2), Search: &recall.Search{
		Question: "tea", TopK: 1, Mode: recall.Semantic, Filter: map[string]any{"k": 0}, Before: of(0), After: of(0),
	}})
	assert.Equal(t, []string{"0", "28", "29"}, ids(page.Messages), "the search's filter is the hits' alone")
	assert.EqualValues(t, 30, *page.Total)
}

func TestHitsComeWithWhatIsAroundThemInTheirOwnThreads(t *testing.T) {
	t.Parallel()
	m, _ := searching(t, embedtest.NewFixed(2, map[string]embed.Vector{"question": direction(1), "answer": direction(.9), "second": direction(.8)}))
	m.create(t, recall.NewThread{ID: "empty"})
	first := series("a", 7, recall.NewMessage{ThreadID: "a"})
	first[3].Content = text("answer")
	second := series("b", 7, recall.NewMessage{ThreadID: "b"})
	second[0].Content = text("second")
	m.save(t, append(first, second...)...)

	search := &recall.Search{Question: "question", Mode: recall.Semantic, TopK: 2}
	result := m.recall(t, recall.Request{ThreadID: "empty", Search: search, Explain: true})
	// Oldest first; b1 is as old as a1.
	assert.Equal(t, []string{"b1", "b2", "a3", "a4", "a5"}, ids(result.Messages), "a message before and after each")
	assert.Zero(t, *result.Total)
	for _, message := range result.Messages {
		assert.Equal(t, message.ID[:1], message.ThreadID)
		assert.Equal(t, resource, message.ResourceID)
	}
	why := func(i int) recall.Explanation { return *result.Messages[i].Explain }
	assert.Equal(t, []recall.Reason{recall.ReasonSemantic}, why(0).Reasons)
	assert.Equal(t, recall.Explanation{Reasons: []recall.Reason{recall.ReasonContext}, ContextOf: "b1", Offset: 1}, why(1))
	assert.Equal(t, recall.Explanation{Reasons: []recall.Reason{recall.ReasonContext}, ContextOf: "a4", Offset: -1}, why(2))
	assert.Equal(t, 1, why(3).Hit.Rank)
	assert.InDelta(t, .9, why(3).Hit.Score, 1e-6)
	assert.InDelta(t, .9, *why(3).Hit.Similarity, 1e-6)
	assert.Zero(t, why(3).Hit.Words)
	assert.Equal(t, recall.Explanation{Reasons: []recall.Reason{recall.ReasonContext}, ContextOf: "a4", Offset: 1}, why(4))
	require.NotNil(t, result.Search)
	assert.Equal(t, recall.Semantic, result.Search.Mode)
	assert.Equal(t, "exact", result.Search.Plan)
	assert.EqualValues(t, 2, result.Search.Visited)

	search.Before, search.After = of(2), of(0)
	assert.Equal(t, []string{"b1", "a2", "a3", "a4"}, ids(m.recall(t, recall.Request{ThreadID: "empty", Search: search}).Messages))
	search.Before, search.After = of(0), of(200)
	assert.Equal(t, []string{"b1", "b2", "b3", "a4", "b4", "a5", "b5", "a6", "b6", "a7", "b7"},
		ids(m.recall(t, recall.Request{ThreadID: "empty", Search: search}).Messages))
	// Page, hit and context are merged, each message once.
	search.Before, search.After = of(1), of(1)
	result = m.recall(t, recall.Request{ThreadID: "a", PerPage: of(4), Search: search, Explain: true})
	assert.Equal(t, []string{"b1", "b2", "a3", "a4", "a5", "a6", "a7"}, ids(result.Messages))
	assert.Equal(t, []recall.Reason{recall.ReasonPage, recall.ReasonSemantic}, result.Messages[3].Explain.Reasons)
	assert.Equal(t, []recall.Reason{recall.ReasonPage, recall.ReasonContext}, result.Messages[4].Explain.Reasons)
	assert.EqualValues(t, 7, *result.Total)
	assert.True(t, result.HasMore)
	// What is included besides has two messages around it when there is a search.
	result = m.recall(t, recall.Request{ThreadID: "a", PerPage: of(0), Search: meaning("question", 1), Include: []recall.Include{{ID: "a1"}}})
	assert.Equal(t, []string{"a1", "a2", "a3", "a4"}, ids(result.Messages))
}

func TestExplainTellsWordsFromMeaning(t *testing.T) {
	t.Parallel()
	m, _ := searching(t, embedtest.NewFixed(2, map[string]embed.Vector{"green tea": direction(1), "matcha": direction(.9)}))
	m.save(t, said("1", "I drink tea"), said("2", "hm"), said("3", "hm"), said("4", "matcha"))
	result := m.recall(t, recall.Request{ThreadID: thread, PerPage: of(0), Explain: true, Search: &recall.Search{
		Question: "green tea", Before: of(0), After: of(0),
	}})
	assert.Equal(t, recall.Hybrid, result.Search.Mode)
	require.Equal(t, []string{"1", "2", "4"}, ids(result.Messages))
	words, meant := result.Messages[0].Explain, result.Messages[2].Explain
	assert.Equal(t, []recall.Reason{recall.ReasonLexical}, words.Reasons)
	assert.Nil(t, words.Hit.Similarity)
	assert.Positive(t, words.Hit.Words)
	assert.Equal(t, []recall.Reason{recall.ReasonSemantic}, meant.Reasons)
	assert.InDelta(t, .9, *meant.Hit.Similarity, 1e-6)
	assert.Zero(t, meant.Hit.Words)
}

func TestASearchThatFindsNothingGivesThePage(t *testing.T) {
	t.Parallel()
	m, _ := searching(t, embedtest.NewFixed(2, nil))
	m.save(t, series("m", 3, recall.NewMessage{})...)
	for _, mode := range []recall.Mode{recall.Semantic, recall.Hybrid, recall.Lexical} {
		for _, question := range []string{"zebra", "the of and", "?!", " ", `"zebra"`, `""`, `"`} {
			result := m.recall(t, recall.Request{ThreadID: thread, Search: &recall.Search{Question: question, Mode: mode}})
			assert.Equal(t, []string{"m1", "m2", "m3"}, ids(result.Messages), "%s %q", mode, question)
			assert.False(t, result.Degraded)
		}
		m.create(t, recall.NewThread{ID: "empty" + string(mode), ResourceID: "new"})
		result := m.recall(t, recall.Request{ThreadID: "empty" + string(mode), Search: &recall.Search{Question: "hello", Mode: mode}})
		assert.Empty(t, result.Messages, "an empty scope")
	}
}

func TestWhatASearchNamesWrongIsRefused(t *testing.T) {
	t.Parallel()
	m, _ := searching(t, embedtest.NewFixed(2, map[string]embed.Vector{"q": direction(1)}))
	m.save(t, series("m", 3, recall.NewMessage{})...)
	for _, mode := range []recall.Mode{recall.Semantic, recall.Hybrid, recall.Lexical} {
		_, err := m.Recall(ctx, recall.Request{ThreadID: thread, Search: &recall.Search{Question: "q", Mode: mode, IndexName: "absent"}})
		requireCode(t, err, recall.CodeInvalid, "threadConfig.semanticRecall.indexName")
	}
	// The index of the embedder in the program has 256 dimensions.
	_, err := m.Recall(ctx, recall.Request{ThreadID: thread, Search: &recall.Search{Question: "q", Mode: recall.Semantic, IndexName: "potion-base-8M"}})
	requireCode(t, err, recall.CodeInvalid, "threadConfig.semanticRecall.indexName")
}

// The words that lexical search goes by.

func TestChineseAndJapaneseAreFoundByWords(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	lines := map[string]string{
		"kyoto": "来週、京都へ行きます。", "tower": "昨日は東京タワーに登った", "deadline": "请确认项目截止日期是下周五。", "meeting": "会议改到明天下午三点",
		"osaka": "大阪でたこ焼きを食べた", "tokyo": "東京は雨です", "project": "这个项目很有意思", "seoul": "내일 서울에서 만나요", "kana": "カタカナとひらがな",
	}
	for id, line := range lines {
		// Threads of their own, so that no words spread.
		m.save(t, recall.NewMessage{ID: id, ThreadID: id, ResourceID: resource, Role: "user", Content: text(line)})
	}
	find := func(question string) []string {
		return m.hitIDs(t, recall.Request{ResourceID: resource, Search: byWords(question)})
	}
	assert.Equal(t, []string{"kyoto"}, find("京都"))
	assert.Equal(t, "tower", find("東京タワー")[0])
	assert.ElementsMatch(t, []string{"tower", "tokyo"}, find("東京タワー"))
	assert.Equal(t, "deadline", find("项目截止日期")[0])
	assert.ElementsMatch(t, []string{"deadline", "project"}, find("项目截止日期"))
	assert.Equal(t, []string{"seoul"}, find("서울에서"))
	assert.Equal(t, []string{"kana"}, find("ひらがな"))
	assert.Equal(t, []string{"tower"}, find(`"東京タワー"`))
	assert.Equal(t, []string{"deadline"}, find(`项目 "截止日期"`))
	assert.Equal(t, "kyoto", find("When do we go to 京都?")[0])
	assert.Empty(t, find("名古屋"))
}

func TestWordsAreFoundInAllTheirForms(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	for id, line := range map[string]string{
		"run": "She was running in the park", "phrase": "We met at the red house near the lake", "scattered": "The house is red",
		"quoted": `He said it's O'Brien's back\slash`, "mail": "Write to ana@example.com", "hyphen": "a well-known place",
	} {
		m.save(t, recall.NewMessage{ID: id, ThreadID: id, ResourceID: resource, Role: "user", Content: text(line), CreatedAt: epoch})
	}
	find := func(question string) []string {
		found := m.hitIDs(t, recall.Request{ResourceID: resource, Search: byWords(question)})
		slices.Sort(found)
		return found
	}
	assert.Equal(t, []string{"run"}, find("who runs?"), "stems")
	assert.Equal(t, []string{"phrase", "scattered"}, find("red houses"))
	assert.Equal(t, []string{"phrase"}, find(`"red house"`))
	assert.Equal(t, []string{"phrase"}, find(`"red house" running scattered "near the lake"`))
	assert.Empty(t, find(`"house red"`))
	assert.Equal(t, []string{"run"}, find(`"the" park`), "stop words in quotes ask for nothing")
	assert.Equal(t, []string{"run"}, find(`"the" "park" "of"`))
	assert.Empty(t, find(`the of and`))
	assert.Empty(t, find(`"the"`))
	for _, question := range []string{`O'Brien`, `back\slash`, `it's O'Brien's`, `"O'Brien"`, `"back\slash"`, `'O''Brien'`} {
		assert.Equal(t, []string{"quoted"}, find(question), question)
	}
	for _, question := range []string{`\`, `'`, `''`, `\'`, `& | ! ( ) <-> :* :A`, `!'`, `"'"`, `"\"`, `"&"`, `%s $1 %I`, "\u200b", `"`, `" "`} {
		assert.Empty(t, find(question), question)
	}
	assert.Equal(t, []string{"mail"}, find("ana@example.com"))
	assert.Equal(t, []string{"hyphen"}, find("well-known"))
	assert.Len(t, find("4 March"), 6, "the day")
}

func TestAQuestionOf30kBIsAnswered(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	var saved []recall.NewMessage
	for i := range 1000 {
		saved = append(saved, said(strconv.Itoa(i), fmt.Sprintf("number %d and number %d of parcel %d", i, i*7%1000, i*11)))
	}
	m.save(t, saved...)
	var english, chinese strings.Builder
	for i := 0; english.Len() < 30<<10; i++ {
		fmt.Fprintf(&english, "%d parcel%d ", i, i)
	}
	for i := rune(0); chinese.Len() < 30<<10; i++ {
		chinese.WriteRune('一' + i*7%20000)
	}
	for name, question := range map[string]string{
		"english": english.String(), "chinese": chinese.String(), "quoted": `"` + chinese.String() + `"`,
		"quotes": strings.Repeat(`"parcel" `, 3<<10), "a word": strings.Repeat("a", 30<<10), "blank": strings.Repeat(" ", 30<<10),
	} {
		began := time.Now()
		result := m.recall(t, recall.Request{ThreadID: thread, PerPage: of(0), Search: byWords(question)})
		took := time.Since(began)
		assert.Less(t, took, 5*time.Second, name)
		if name == "english" || name == "quotes" {
			assert.NotEmpty(t, result.Messages, name)
		}
		t.Logf("%s: %d messages in %s", name, len(result.Messages), took)
	}
}

func TestALongTextIsSavedAndFound(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	var words, ideographs strings.Builder
	for i := 0; words.Len() < 1<<20; i++ {
		fmt.Fprintf(&words, "w%d-%d ", i, i)
	}
	for i := rune(0); ideographs.Len() < 200<<10; i++ {
		ideographs.WriteRune('一' + i*7%20000)
	}
	began := time.Now()
	m.save(t, said("words", "aardvark "+words.String()))
	m.save(t, said("ideographs", "京都"+ideographs.String()))
	assert.Less(t, time.Since(began), 20*time.Second)
	assert.Contains(t, m.hitIDs(t, recall.Request{ThreadID: thread, Search: byWords("aardvark")}), "words")
	assert.Contains(t, m.hitIDs(t, recall.Request{ThreadID: thread, Search: byWords("京都")}), "ideographs")
}

// A huge user beside a small one.

// crowded is a memory with many vectors of few dimensions.
type crowded struct {
	memory
	table      string
	dimensions int
}

const (
	crowdedDimensions = 16
	crowdQuestion     = "question"
)

// besideAHugeOne gives the vectors of two users: many of "huge", which are near
// the question, the first axis, and a hundred of "small", which are not.
func besideAHugeOne(t *testing.T, huge int, smallInGraph bool) crowded {
	m, table := searching(t, embedtest.NewFixed(crowdedDimensions, map[string]embed.Vector{crowdQuestion: axis()}))
	c := crowded{m, table, crowdedDimensions}
	c.withoutGraph(t, func() {
		c.fill(t, "huge", huge, 4, true)
		c.fill(t, "small", 100, 0, smallInGraph)
	})
	return c
}

// withoutGraph makes the HNSW index anew after do, which is faster than row by row.
func (c crowded) withoutGraph(t must, do func()) {
	var definition string
	c.scan(t, `SELECT pg_get_indexdef(('recall.' || $1 || '_hnsw_idx')::regclass)`, []any{c.table}, &definition)
	_, err := c.pool.Exec(ctx, `DROP INDEX recall.`+c.table+`_hnsw_idx`)
	require.NoError(t, err)
	do()
	_, err = c.pool.Exec(ctx, definition)
	require.NoError(t, err)
	_, err = c.pool.Exec(ctx, `ANALYZE recall.messages, recall.threads, recall.`+c.table)
	require.NoError(t, err)
}

// fill saves n messages of a user in a thread, with random vectors of length 1,
// the nearer to the first axis the greater pull.
func (c crowded) fill(t must, user string, n int, pull float64, inGraph bool) {
	_, err := c.pool.Exec(ctx, `
		INSERT INTO recall.threads (id, resource_id, message_count, last_seq, created_at, updated_at)
		VALUES ($1, $1, 0, 0, now(), now())`, user)
	require.NoError(t, err)
	c.add(t, user, n, pull, inGraph)
}

// add saves n messages more.
func (c crowded) add(t must, user string, n int, pull float64, inGraph bool) {
	var first int
	c.scan(t, `
		UPDATE recall.threads SET message_count = message_count + $2, last_seq = last_seq + $2 WHERE id = $1
		RETURNING last_seq - $2 + 1`, []any{user, n}, &first)
	_, err := c.pool.Exec(ctx, `
		INSERT INTO recall.messages (id, thread_id, resource_id, seq, role, content, created_at, updated_at)
		SELECT $1 || i, $1, $1, i, 'user', jsonb_build_object('format', 2, 'parts', '[]'::jsonb, 'content', 'note', 'metadata', jsonb_build_object('n', i)),
			now() + i * interval '1 second', now()
		FROM generate_series($2, $3::integer) AS i`, user, first, first+n-1)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(uint64(n), 0))
	vectors := make([]string, n)
	for i := range vectors {
		vector := meant(random, c.dimensions)
		vector[0] += float32(pull)
		vectors[i] = pgvector.NewVector(vector).String()
	}
	_, err = c.pool.Exec(ctx, `
		INSERT INTO recall.`+c.table+` (message_id, chunk, thread_id, resource_id, text_hash, embedding, in_graph)
		SELECT $1 || $4 - 1 + i, 0, $1, $1, '', l2_normalize(v::vector), $3 FROM unnest($2::text[]) WITH ORDINALITY AS v (v, i)`, user, vectors, inGraph, first)
	require.NoError(t, err)
}

// meant draws a vector that varies in 16 ways, whatever its dimensions, as those
// of texts do, with a little noise.
func meant(random *rand.Rand, dimensions int) []float32 {
	const ways = 16
	vector := make([]float32, dimensions)
	if dimensions <= ways {
		for i := range vector {
			vector[i] = float32(random.NormFloat64())
		}
		return vector
	}
	mixture := rand.New(rand.NewPCG(1, 1)) // the same for all
	for range ways {
		weight := random.NormFloat64()
		for i := range vector {
			vector[i] += float32(weight * mixture.NormFloat64())
		}
	}
	for i := range vector {
		vector[i] += float32(random.NormFloat64() / 2)
	}
	return vector
}

// nearest gives the k messages of a user nearest to a vector, n between low and
// high, by looking at all of them.
func (c crowded) nearest(t must, user string, vector embed.Vector, k, low, high int) []string {
	return column[string](t, c.memory, `
		SELECT e.message_id FROM recall.`+c.table+` AS e
		JOIN recall.messages AS m ON m.id = e.message_id
		WHERE e.resource_id = $1 AND m.seq BETWEEN $4 AND $5
		ORDER BY (e.embedding <#> $2::vector) + 0, m.created_at, m.seq
		LIMIT $3`, user, pgvector.NewVector(vector).String(), k, low, high)
}

func axis() embed.Vector {
	vector := make(embed.Vector, crowdedDimensions)
	vector[0] = 1
	return vector
}

func TestASmallUserBesideAHugeOneGetsExactlyTopK(t *testing.T) {
	t.Parallel()
	for _, inGraph := range []bool{false, true} {
		t.Run(fmt.Sprintf("in the graph %t", inGraph), func(t *testing.T) {
			c := besideAHugeOne(t, *hugeUser, inGraph)
			everyone := math.MaxInt32
			for _, scope := range []recall.Request{{ResourceID: "small"}, {ThreadID: "small"}} {
				for _, k := range []int{1, 5, 100} {
					scope.Search = meaning(crowdQuestion, k)
					assert.Equal(t, c.nearest(t, "small", axis(), k, 1, everyone), c.hitIDs(t, scope), "top %d", k)
					scope.Search.Mode = recall.Hybrid
					assert.Len(t, c.hitIDs(t, scope), k, "top %d", k)
				}
				scope.Search = meaning(crowdQuestion, 5)
				scope.Filter = recall.Filter{Where: map[string]any{"n": map[string]any{"$lte": 7}}}
				assert.Equal(t, c.nearest(t, "small", axis(), 5, 1, 7), c.hitIDs(t, scope), "of the 7 that pass the filter")
				scope.Search.TopK = 20
				assert.Len(t, c.hitIDs(t, scope), 7)
			}
			huge := recall.Request{ResourceID: "huge", Search: meaning(crowdQuestion, 100), Explain: true}
			found := c.hitIDs(t, huge)
			assert.Len(t, found, 100)
			assert.Equal(t, "hnsw", c.recall(t, huge).Search.Plan)
			huge.Filter = recall.Filter{Where: map[string]any{"n": map[string]any{"$lte": 7}}}
			huge.Search.TopK = 5
			assert.Equal(t, c.nearest(t, "huge", axis(), 5, 1, 7), c.hitIDs(t, huge))

			gone := c.nearest(t, "small", axis(), 40, 1, everyone)
			n, err := c.DeleteMessages(ctx, gone, "")
			require.NoError(t, err)
			require.EqualValues(t, 40, n)
			for _, k := range []int{5, 60, 100} {
				assert.Equal(t, c.nearest(t, "small", axis(), k, 1, everyone), c.hitIDs(t, recall.Request{ResourceID: "small", Search: meaning(crowdQuestion, k)}),
					"top %d after a deletion", k)
			}
			// Dead entries at the near end of the graph.
			gone = c.nearest(t, "huge", axis(), 500, 1, everyone)
			_, err = c.DeleteMessages(ctx, gone, "")
			require.NoError(t, err)
			found = c.hitIDs(t, recall.Request{ResourceID: "huge", Search: meaning(crowdQuestion, 100)})
			assert.Len(t, found, 100)
			assert.NotContains(t, found, gone[0])
		})
	}
}

var (
	hugeUser   = flag.Int("huge-user", 8_000, "the vectors of the user beside whom another one is small")
	graphSize  = flag.Int("graph-size", 8_000, "the vectors in the graph whose answers are compared with exact ones")
	graphWidth = flag.Int("graph-width", 64, "their dimensions")
	graphAsked = flag.Int("graph-asked", 50, "how many questions are asked of it")
)

// graph fills an index of its own and gives it with questions.
func graph(t *testing.T, fill func(c crowded)) (c crowded, questions map[string]embed.Vector) {
	questions = map[string]embed.Vector{}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range *graphAsked {
		vector := embed.Vector(meant(random, *graphWidth))
		var squares float64
		for _, x := range vector {
			squares += float64(x * x)
		}
		for j := range vector {
			vector[j] /= float32(math.Sqrt(squares))
		}
		questions["question "+strconv.Itoa(i)] = vector
	}
	m, table := searching(t, embedtest.NewFixed(*graphWidth, questions))
	c = crowded{m, table, *graphWidth}
	c.withoutGraph(t, func() { fill(c) })
	return c, questions
}

// agreement is the share of the exact answers that the recalls give, and how long
// the median one took.
func (c crowded) agreement(t *testing.T, user string, questions map[string]embed.Vector, k int) (share float64, took time.Duration) {
	same, all := 0, 0
	var times []time.Duration
	for question, vector := range questions {
		want := c.nearest(t, user, vector, k, 1, math.MaxInt32)
		began := time.Now()
		found := c.hitIDs(t, recall.Request{ResourceID: user, Search: meaning(question, k)})
		times = append(times, time.Since(began))
		require.Len(t, found, k)
		for _, id := range want {
			all++
			if slices.Contains(found, id) {
				same++
			}
		}
	}
	slices.Sort(times)
	return float64(same) / float64(all), times[len(times)/2]
}

func TestTheGraphFindsWhatIsNearest(t *testing.T) {
	t.Parallel()
	c, questions := graph(t, func(c crowded) { c.fill(t, "huge", *graphSize, 0, true) })
	for question := range questions {
		plan := c.recall(t, recall.Request{ResourceID: "huge", PerPage: of(0), Search: meaning(question, 10)}).Search
		require.Equal(t, "hnsw", plan.Plan)
		require.Less(t, plan.Visited, int64(*graphSize/10))
		break
	}
	for _, k := range []int{10, 50} {
		share, took := c.agreement(t, "huge", questions, k)
		t.Logf("top %d of %d vectors of %d dimensions: %.3f of the exact answers, median %s", k, *graphSize, *graphWidth, share, took)
		assert.GreaterOrEqual(t, share, .97, "top %d", k)
	}
}

func TestWhatIsNotInTheGraphYetIsFoundToo(t *testing.T) {
	t.Parallel()
	c, questions := graph(t, func(c crowded) { c.fill(t, "huge", *graphSize, 0, true) })
	// Every tenth is not in the graph, and so are the nearest of each question.
	_, err := c.pool.Exec(ctx, `UPDATE recall.`+c.table+` SET in_graph = false WHERE hashtext(message_id) % 10 = 0`)
	require.NoError(t, err)
	for question, vector := range questions {
		nearest := c.nearest(t, "huge", vector, 5, 1, math.MaxInt32)
		_, err := c.pool.Exec(ctx, `UPDATE recall.`+c.table+` SET in_graph = false WHERE message_id = ANY ($1)`, nearest)
		require.NoError(t, err)
		found := c.hitIDs(t, recall.Request{ResourceID: "huge", Search: meaning(question, 10)})
		require.Len(t, found, 10)
		assert.Equal(t, nearest, found[:5])
	}
}

// The graph gives up when its memory is full. What it has found by then is not
// what is nearest in a scope that lies far from the question.
func TestAGraphThatGivesUpEarlyIsFollowedByAnExactSearch(t *testing.T) {
	t.Parallel()
	question := axis()
	fixed := embedtest.NewFixed(crowdedDimensions, map[string]embed.Vector{crowdQuestion: question})
	m, table := searching(t, fixed)
	c := crowded{m, table, crowdedDimensions}
	c.withoutGraph(t, func() {
		c.fill(t, "huge", 8000, 6, true)
		c.fill(t, "large", 5500, -2, true)
	})
	// A hundred are not in the graph: as many as are wanted, and not the nearest.
	_, err := c.pool.Exec(ctx, `UPDATE recall.`+table+` SET in_graph = false WHERE message_id IN (
		SELECT e.message_id FROM recall.`+table+` AS e WHERE e.resource_id = 'large' ORDER BY (e.embedding <#> $1::vector) + 0 DESC LIMIT 100)`,
		pgvector.NewVector(question).String())
	require.NoError(t, err)
	pool, err := db.Open(context.Background(), db.Config{URL: c.pool.Config().ConnString() + "&work_mem=64kB", MaxConns: 2})
	require.NoError(t, err)
	defer pool.Close()
	c.Memory = recall.New(pool, recall.DefaultLimits(), recall.WithEmbedder(fixed))
	for _, k := range []int{5, 50} {
		want := c.nearest(t, "large", question, k, 1, math.MaxInt32)
		found := c.hitIDs(t, recall.Request{ResourceID: "large", Search: meaning(crowdQuestion, k)})
		common := 0
		for _, id := range found {
			if slices.Contains(want, id) {
				common++
			}
		}
		assert.Len(t, found, k)
		assert.GreaterOrEqual(t, common, k*9/10, "top %d", k)
	}
}

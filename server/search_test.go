package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/embed/embedtest"
)

// say saves a thread's messages, a minute apart; user and assistant take turns. The
// ids are the thread's with a number from 1.
func say(t *testing.T, s *httptest.Server, resource, thread string, texts ...string) {
	t.Helper()
	messages := make([]string, len(texts))
	for i, text := range texts {
		role := []string{"user", "assistant"}[i%2]
		messages[i] = fmt.Sprintf(`{"id":"%[1]s%[2]d","threadId":%[3]q,"resourceId":%[4]q,"role":%[5]q,"createdAt":"2026-03-01T10:%02[6]d:00Z","content":%[7]s}`,
			thread, i+1, thread, resource, role, i, quote(text))
	}
	must(t, s, http.MethodPost, "/api/memory/save-messages", `{"messages":[`+strings.Join(messages, ",")+`],"createThread":true}`)
}

// kept gives a server with what two users have said.
func kept(t *testing.T) *httptest.Server {
	t.Helper()
	s := attached(t)
	must(t, s, http.MethodPost, "/api/memory/threads", `{"threadId":"garden","resourceId":"sam","title":"The garden"}`)
	say(t, s, "sam", "garden",
		"The tomatoes have yellow leaves.", "Water them less, and in the morning.", "Thanks, that makes sense.",
		"You are welcome.", "My sister is running a marathon in Boston.", "Good luck to her!", "When should I prune the roses?",
		"In late winter, before new buds appear.")
	say(t, s, "sam", "work", "The quarterly report is due on Friday.", "I will remind you on Thursday.", "Please book a dentist appointment too.")
	say(t, s, "alex", "other", "My tomatoes have yellow leaves and my roses are dead.", "I am sorry about the roses.")
	return s
}

func hitIDs(body map[string]any) []string {
	type hit struct {
		id   string
		rank float64
	}
	var hits []hit
	for _, message := range body["messages"].([]any) {
		m := message.(map[string]any)
		if rank, ok := m["explain"].(map[string]any)["rank"].(float64); ok {
			hits = append(hits, hit{m["id"].(string), rank})
		}
	}
	slices.SortFunc(hits, func(a, b hit) int { return int(a.rank - b.rank) })
	ids := []string{}
	for _, h := range hits {
		ids = append(ids, h.id)
	}
	return ids
}

// ask recalls by a question alone and gives the hits, best first.
func ask(t *testing.T, s *httptest.Server, from, question, semanticRecall string) []string {
	t.Helper()
	return hitIDs(must(t, s, http.MethodPost, "/api/memory/recall",
		`{`+from+`,"perPage":0,"explain":true,"vectorSearchString":`+quote(question)+`,"threadConfig":{"semanticRecall":`+semanticRecall+`}}`))
}

func TestAQuestionFindsItsAnswersInEveryMode(t *testing.T) {
	t.Parallel()
	s := kept(t)
	for _, mode := range []string{"hybrid", "semantic", "lexical"} {
		for question, want := range map[string]string{
			"tomatoes with yellow leaves": "garden1",
			"pruning roses":               "garden7",
			"marathon runner":             "garden5",
			"quarterly reports":           "work1",
		} {
			got := ask(t, s, `"resourceId":"sam"`, question, `{"topK":3,"mode":"`+mode+`"}`)
			// By words alone only messages with them, or beside such, are found.
			if len(got) != 3 && mode != "lexical" || len(got) > 3 || !slices.Contains(got, want) {
				t.Errorf("%s finds %q for %q, want 3 with %s", mode, got, question, want)
			}
		}
	}
}

func TestHitsAreAddedToThePageWithTheirContext(t *testing.T) {
	t.Parallel()
	s := kept(t)
	answer := must(t, s, http.MethodPost, "/api/memory/recall",
		`{"threadId":"work","perPage":1,"explain":true,"vectorSearchString":"marathon in Boston","threadConfig":{"semanticRecall":{"topK":1,"messageRange":{"before":1,"after":0},"indexConfig":{"type":"hnsw"}}}}`)
	if got, want := messageIDs(answer), []string{"work3", "garden4", "garden5"}; !slices.Equal(got, want) {
		t.Errorf("messages %q, want %q", got, want)
	}
	if answer["total"] != 3.0 || answer["degraded"] != nil {
		t.Errorf("total %v, degraded %v", answer["total"], answer["degraded"])
	}
	explain := answer["explain"].(map[string]any)
	if explain["mode"] != "hybrid" || explain["plan"] != "exact" || explain["visited"] != 11.0 || explain["pending"] != 0.0 || explain["backlogSeconds"] != 0.0 {
		t.Errorf("explain is %v", explain)
	}
	context := answer["messages"].([]any)[1].(map[string]any)["explain"].(map[string]any)
	if context["contextOf"] != "garden5" || context["offset"] != -1.0 {
		t.Errorf("the context's explain is %v", context)
	}
	hit := answer["messages"].([]any)[2].(map[string]any)["explain"].(map[string]any)
	if !slices.Equal(hit["reason"].([]any), []any{"semantic", "lexical"}) || hit["rank"] != 1.0 || hit["similarity"].(float64) <= .2 || hit["words"].(float64) <= .2 {
		t.Errorf("the hit's explain is %v", hit)
	}
}

func TestScopeAndFilterRestrictHits(t *testing.T) {
	t.Parallel()
	s := kept(t)
	must(t, s, http.MethodPost, "/api/memory/threads", `{"threadId":"empty","resourceId":"sam"}`)
	must(t, s, http.MethodPatch, "/api/memory/messages", `{"messages":[{"id":"garden8","content":{"metadata":{"season":"winter"}}}]}`)
	for _, test := range []struct {
		from, semanticRecall string
		want                 []string
	}{
		{`"threadId":"empty"`, `{"topK":1}`, []string{"garden1"}},
		{`"threadId":"empty"`, `{"topK":1,"scope":"thread"}`, []string{}},
		{`"threadId":"empty"`, `false`, []string{}},
		{`"threadId":"work"`, `{"topK":9,"scope":"thread","mode":"semantic"}`, []string{"work1", "work2", "work3"}},
		{`"threadId":"empty","resourceId":"sam"`, `{"topK":5,"filter":{"season":"winter"}}`, []string{"garden8"}},
		{`"resourceId":"alex"`, `{"topK":1}`, []string{"other1"}},
		{`"resourceId":"nobody"`, `{"topK":1}`, []string{}},
		{`"resourceId":"sam","filter":{"roles":["assistant"],"dateRange":{"end":"2026-03-01T10:04:00Z"}}`, `{"topK":9,"mode":"semantic"}`, []string{"garden2", "garden4", "work2"}},
	} {
		got := ask(t, s, test.from, "tomatoes with yellow leaves", test.semanticRecall)
		if test.semanticRecall != `{"topK":1}` {
			slices.Sort(got)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s %s finds %q, want %q", test.from, test.semanticRecall, got, test.want)
		}
	}
}

func TestASearchConfigurationWithoutAQuestionDoesNothing(t *testing.T) {
	t.Parallel()
	s := kept(t)
	got := messageIDs(must(t, s, http.MethodPost, "/api/memory/recall", `{"threadId":"work","threadConfig":{"semanticRecall":{"topK":1,"scope":"thread"}}}`))
	if want := []string{"work1", "work2", "work3"}; !slices.Equal(got, want) {
		t.Errorf("messages %q, want %q", got, want)
	}
}

// best gives the first hit by words.
func best(t *testing.T, s *httptest.Server, resource, question string) string {
	t.Helper()
	ids := ask(t, s, `"resourceId":"`+resource+`"`, question, `{"topK":1,"mode":"lexical"}`)
	if len(ids) == 0 {
		return ""
	}
	return ids[0]
}

func TestWordsAreFoundInTheirLanguage(t *testing.T) {
	t.Parallel()
	s := attached(t)
	say(t, s, "yuki", "ja",
		"来週は京都へ旅行に行きます。", "楽しんでください。", "東京タワーの夜景はきれいでした。", "写真を見せてください。", "今日は雨が降っています。")
	say(t, s, "li", "zh", "我昨天去了北京。", "天气怎么样?", "项目截止日期是下周五。", "好的,我会提醒你。", "晚饭吃饺子。")
	say(t, s, "kim", "en", "She was swimming across the lakes.", "That is brave.", "We have boxes of old letters.", "Keep them.")
	for _, test := range []struct{ resource, question, want string }{
		{"yuki", "京都", "ja1"},
		{"yuki", "東京タワー", "ja3"},
		{"yuki", `"東京タワー"`, "ja3"},
		{"li", "项目截止日期", "zh3"},
		{"li", "北京", "zh1"},
		{"kim", "swim in a lake", "en1"},
		{"kim", "box with a letter", "en3"},
		{"yuki", `"大阪城"`, ""},
	} {
		if got := best(t, s, test.resource, test.question); got != test.want {
			t.Errorf("%q finds %q, want %q", test.question, got, test.want)
		}
	}
}

func TestAQuotedPartMustOccur(t *testing.T) {
	t.Parallel()
	s := attached(t)
	say(t, s, "u", "q", "The red car is fast.", "Yes.", "The car is red inside, very red, a red car of sorts.", "I see.", "A car. Red.")
	for question, want := range map[string][]string{
		`"red car"`:            {"q1", "q3"},
		`car "is red inside"`:  {"q3"},
		`fast "red car"`:       {"q1", "q3"},
		`"green car"`:          {},
		`"red car" "is fast"`:  {"q1"},
		`an unmatched " quote`: nil,
	} {
		got := ask(t, s, `"resourceId":"u"`, question, `{"topK":5,"mode":"lexical"}`)
		slices.Sort(got)
		if want != nil && !slices.Equal(got, want) {
			t.Errorf("%s finds %q, want %q", question, got, want)
		}
	}
}

func search(parameters ...string) string {
	values := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		values.Set(parameters[i], parameters[i+1])
	}
	return "/api/memory/search?" + values.Encode()
}

func TestSearchGivesEachHitItsContext(t *testing.T) {
	t.Parallel()
	s := kept(t)
	found := must(t, s, http.MethodGet, search("searchQuery", "pruning roses", "resourceId", "sam", "limit", "3", "agentId", "any",
		"memoryConfig", `{"semanticRecall":{"mode":"lexical","messageRange":{"after":1}}}`), "")
	results := found["results"].([]any)
	if len(results) != 3 || found["count"] != 3.0 || found["query"] != "pruning roses" || found["searchScope"] != "resource" || found["searchType"] != "text" {
		t.Fatalf("the search gives %v", found)
	}
	first := results[0].(map[string]any)
	for name, want := range map[string]any{
		"id": "garden7", "role": "user", "content": "When should I prune the roses?", "createdAt": "2026-03-01T10:06:00.000Z",
		"threadId": "garden", "threadTitle": "The garden", "rank": 1.0,
	} {
		if first[name] != want {
			t.Errorf("%s is %v, want %v", name, first[name], want)
		}
	}
	if first["score"].(float64) <= 0 {
		t.Errorf("score is %v", first["score"])
	}
	context := first["context"].(map[string]any)
	if before, after := messageIDs(map[string]any{"messages": context["before"]}), messageIDs(map[string]any{"messages": context["after"]}); !slices.Equal(before, []string{"garden5", "garden6"}) || !slices.Equal(after, []string{"garden8"}) {
		t.Errorf("context %q and %q", before, after)
	}
	turn := context["after"].([]any)[0].(map[string]any)
	if len(turn) != 4 || turn["role"] != "assistant" || turn["content"] != "In late winter, before new buds appear." || turn["createdAt"] != "2026-03-01T10:07:00.000Z" {
		t.Errorf("a turn of the context is %v", turn)
	}
}

func TestSearchHasItsDefaultsAndScopes(t *testing.T) {
	t.Parallel()
	s := kept(t)
	ids := func(target string) []string {
		t.Helper()
		return messageIDs(map[string]any{"messages": must(t, s, http.MethodGet, target, "")["results"]})
	}
	const question = "tomatoes with yellow leaves"
	if got := ids(search("searchQuery", question, "resourceId", "sam")); len(got) != 11 || got[0] != "garden1" {
		t.Errorf("all of sam's messages are fewer than 20, but the search gives %q", got)
	}
	if got := ids(search("searchQuery", question, "resourceId", "sam", "memoryConfig", `{"semanticRecall":{"topK":2}}`)); len(got) != 2 {
		t.Errorf("topK 2 gives %q", got)
	}
	if got := ids(search("searchQuery", question, "resourceId", "sam", "threadId", "work", "limit", "1")); !slices.Equal(got, []string{"garden1"}) {
		t.Errorf("from another thread: %q", got)
	}
	inThread := must(t, s, http.MethodGet, search("searchQuery", question, "resourceId", "sam", "threadId", "work", "limit", "1",
		"memoryConfig", `{"semanticRecall":{"scope":"thread"}}`), "")
	if first := inThread["results"].([]any)[0].(map[string]any); first["threadId"] != "work" || first["threadTitle"] != "work" || inThread["searchScope"] != "thread" || inThread["searchType"] != "semantic" {
		t.Errorf("in the thread: %v", inThread)
	}
	if byWords := must(t, s, http.MethodGet, search("searchQuery", question, "resourceId", "sam", "memoryConfig", `{"semanticRecall":false}`), ""); byWords["searchType"] != "text" || byWords["count"] == 0.0 {
		t.Errorf("with semantic recall off: %v", byWords)
	}
	nobody := call(t, s, http.MethodGet, search("searchQuery", question, "resourceId", "nobody"), "")
	if want := `{"results":[],"count":0,"query":"` + question + `","searchScope":"resource","searchType":"semantic"}`; string(nobody.body) != want {
		t.Errorf("of nobody: %s, want %s", nobody.body, want)
	}
	if got := call(t, s, http.MethodGet, search("searchQuery", question, "resourceId", "alex", "threadId", "work"), ""); got.status != http.StatusForbidden {
		t.Errorf("another's thread: %d %s", got.status, got.body)
	}
	if got := call(t, s, http.MethodGet, search("searchQuery", question, "resourceId", "sam", "threadId", "none"), ""); got.status != http.StatusNotFound {
		t.Errorf("no such thread: %d %s", got.status, got.body)
	}
	missing := call(t, s, http.MethodGet, "/api/memory/search", "")
	if got := missing.problem(t).fields(); !slices.Equal(got, []string{"resourceId", "searchQuery"}) || missing.status != http.StatusBadRequest {
		t.Errorf("without parameters: %d %s", missing.status, missing.body)
	}
}

func TestWithoutItsEmbedderASearchSaysSo(t *testing.T) {
	t.Parallel()
	embedder := embedtest.NewFixed(256, nil)
	s := embedding(t, embedder)
	say(t, s, "sam", "garden", "The tomatoes have yellow leaves.", "Water them less.")
	embedder.Fail(&embed.Error{Reason: embed.ErrUnavailable})
	hybrid := must(t, s, http.MethodPost, "/api/memory/recall", `{"threadId":"garden","perPage":0,"vectorSearchString":"tomatoes","explain":true}`)
	if got := hitIDs(hybrid); hybrid["degraded"] != true || got[0] != "garden1" {
		t.Errorf("hybrid finds %q, degraded %v", got, hybrid["degraded"])
	}
	// The live index is not for this embedder's vectors.
	if explain := hybrid["explain"].(map[string]any); explain["pending"] != 2.0 || explain["plan"] != nil {
		t.Errorf("explain is %v", explain)
	}
	results := must(t, s, http.MethodGet, search("searchQuery", "tomatoes", "resourceId", "sam"), "")
	if results["degraded"] != true || results["count"] == 0.0 {
		t.Errorf("the search gives %v", results)
	}
	semantic := call(t, s, http.MethodPost, "/api/memory/recall",
		`{"threadId":"garden","vectorSearchString":"tomatoes","threadConfig":{"semanticRecall":{"mode":"semantic"}}}`)
	if semantic.status != http.StatusServiceUnavailable || semantic.header.Get("Retry-After") == "" {
		t.Errorf("semantic: %d %s", semantic.status, semantic.body)
	}
	words := must(t, s, http.MethodPost, "/api/memory/recall",
		`{"threadId":"garden","vectorSearchString":"tomatoes","threadConfig":{"semanticRecall":{"mode":"lexical"}}}`)
	if words["degraded"] != nil {
		t.Error("a search by words is degraded")
	}
	must(t, s, http.MethodGet, "/api/memory/threads/garden/messages", "")
}

package recall_test

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pgrecall/pgrecall/recall"
)

// The recipe once more, computed from the messages themselves. PostgreSQL is
// asked for what its text search makes of a text, and for nothing else.

// scoredMessage is a message as the model knows it.
type scoredMessage struct {
	recall.NewMessage
	seq      int
	texts    []string
	speaker  string
	tagged   bool        // has metadata k = 1
	vectors  [][]float32 // of its chunks
	lexemes  int
	ranks    map[string]float64 // of the question's lexemes
	inPhrase bool
}

// spoken says whether the message can be found at all.
func (m *scoredMessage) spoken() bool {
	return (m.Role == "user" || m.Role == "assistant") && len(m.texts) > 0
}

var endsAsking = regexp.MustCompile(`[?？]\s*$`)

func (m *scoredMessage) asks() bool {
	return len(m.texts) > 0 && endsAsking.MatchString(m.texts[len(m.texts)-1])
}

// searchable is the text that words are looked for in.
func (m *scoredMessage) searchable() string { return strings.Join(m.pieces(), "\n") }

// pieces are its parts, from one of which into the next no phrase reaches.
func (m *scoredMessage) pieces() []string {
	if !m.spoken() {
		return nil
	}
	return append(slices.Clone(m.texts), m.speaker+" "+m.CreatedAt.UTC().Format("2 January"))
}

var cjkRun = regexp.MustCompile(`[\x{3041}-\x{30ff}\x{31f0}-\x{31ff}\x{3400}-\x{4dbf}\x{4e00}-\x{9fff}\x{ac00}-\x{d7a3}\x{f900}-\x{faff}]+`)

// bigrams gives the pairs of neighbours in the runs of text that have no spaces.
func bigrams(text string) []string {
	pairs := []string{}
	for _, run := range cjkRun.FindAllString(text, -1) {
		letters := []rune(run)
		if len(letters) == 1 {
			pairs = append(pairs, run)
		}
		for i := 1; i < len(letters); i++ {
			pairs = append(pairs, string(letters[i-1:i+1]))
		}
	}
	slices.Sort(pairs)
	return slices.Compact(pairs)
}

// asked is what a search is given.
type asked struct {
	threadID, resourceID string // one of them
	mode                 recall.Mode
	question             string
	vector               []float32 // nil: none
	topK                 int
	threshold            *float64
	roles                []string
	tagged               bool // only messages with metadata k = 1
	starts, ends         *time.Time
	prior                bool // the index's vectors have a length prior
}

type scored struct {
	message           *scoredMessage
	score, similarity float64 // similarity is NaN without a vector
	words             float64
}

func (a asked) holds(m *scoredMessage) bool {
	if a.threadID != "" {
		return m.ThreadID == a.threadID
	}
	return m.ResourceID == a.resourceID
}

func (a asked) passes(m *scoredMessage) bool {
	return (len(a.roles) == 0 || slices.Contains(a.roles, m.Role)) &&
		(!a.tagged || m.tagged) &&
		(a.starts == nil || !m.CreatedAt.Before(*a.starts)) &&
		(a.ends == nil || m.CreatedAt.Before(*a.ends)) &&
		(a.mode == recall.Semantic || m.inPhrase)
}

func (a asked) similarity(vector []float32) float64 {
	var sum float64
	for i := range vector {
		sum += float64(vector[i]) * float64(a.vector[i])
	}
	return sum
}

// nearest is the similarity of the message's nearest chunk.
func (a asked) nearest(m *scoredMessage) float64 {
	if a.vector == nil || len(m.vectors) == 0 {
		return math.NaN()
	}
	best := math.Inf(-1)
	for _, vector := range m.vectors {
		best = max(best, a.similarity(vector))
	}
	return best
}

// words gives the words of each message that has any, after spreading.
func (a asked) words(scope []*scoredMessage) map[*scoredMessage]float64 {
	frequency := map[string]float64{}
	for _, m := range scope {
		for lexeme := range m.ranks {
			frequency[lexeme]++
		}
	}
	idf := func(lexeme string) float64 {
		df := frequency[lexeme]
		return math.Log(1 + max(float64(len(scope))-df+.5, .5)/(df+.5))
	}
	var sum float64
	for lexeme := range frequency {
		sum += idf(lexeme)
	}
	own := map[*scoredMessage]float64{}
	at := map[string]*scoredMessage{}
	place := func(threadID string, seq int) string { return threadID + "/" + strconv.Itoa(seq) }
	for _, m := range scope {
		at[place(m.ThreadID, m.seq)] = m
		for lexeme, rank := range m.ranks {
			own[m] += idf(lexeme) * rank / sum / math.Pow(1+float64(m.lexemes)/40, .25)
		}
	}
	spread := map[*scoredMessage]float64{}
	for _, m := range scope {
		previous, next := at[place(m.ThreadID, m.seq-1)], at[place(m.ThreadID, m.seq+1)]
		words := own[m] + .2*own[next]
		if previous != nil && previous.asks() {
			words += .7 * own[previous]
		} else {
			words += .1 * own[previous]
		}
		if words > 0 {
			spread[m] = words
		}
	}
	return spread
}

// answer is the search.
func (a asked) answer(all []*scoredMessage) []scored {
	var scope []*scoredMessage
	var similarities []float64
	for _, m := range all {
		if !a.holds(m) {
			continue
		}
		scope = append(scope, m)
		for _, vector := range m.vectors {
			if a.vector != nil {
				similarities = append(similarities, a.similarity(vector))
			}
		}
	}
	mean, deviation := moments(similarities)
	words := map[*scoredMessage]float64{}
	if a.mode != recall.Semantic {
		words = a.words(scope)
	}
	hits := []scored{}
	for _, m := range scope {
		similarity := a.nearest(m)
		near := !math.IsNaN(similarity) && a.mode != recall.Lexical
		if !m.spoken() || !a.passes(m) || words[m] == 0 && !near ||
			a.threshold != nil && !(similarity >= *a.threshold) {
			continue
		}
		hits = append(hits, scored{m, a.score(m, words[m], similarity, mean, deviation), similarity, words[m]})
	}
	slices.SortFunc(hits, func(x, y scored) int {
		return cmp.Or(
			cmp.Compare(math.Round(y.score*1e9), math.Round(x.score*1e9)),
			x.message.CreatedAt.Compare(y.message.CreatedAt),
			cmp.Compare(x.message.ThreadID, y.message.ThreadID),
			cmp.Compare(x.message.seq, y.message.seq),
		)
	})
	return hits[:min(len(hits), a.topK)]
}

func (a asked) score(m *scoredMessage, words, similarity, mean, deviation float64) float64 {
	penalty := 0.
	if m.asks() {
		penalty = .05
	}
	switch {
	case a.mode == recall.Semantic:
		return similarity
	case a.mode == recall.Lexical || math.IsNaN(similarity):
		return words - penalty
	case a.prior:
		return words + similarity - penalty
	case deviation == 0:
		return words - penalty
	}
	n := float64(m.lexemes)
	return words + .1*max(0, .5+(similarity-mean)/deviation)*n/(n+8) - penalty
}

func moments(values []float64) (mean, deviation float64) {
	for _, value := range values {
		mean += value / float64(len(values))
	}
	for _, value := range values {
		deviation += (value - mean) * (value - mean) / float64(len(values))
	}
	return mean, math.Sqrt(deviation)
}

// The words that messages and questions are made of: they meet often, some are
// forms of one stem, some are stop words, some are awkward to quote.
var vocabulary = []string{
	"tea", "teas", "running", "runs", "Paris", "the", "of", "and", "not", "4 March", "5", "Ana", "it's", `back\slash`, `it\'s`, "O'Brien",
	"a & b | !c:*", "ana@example.com", "https://example.com/a?b=c", "well-known", "京都", "東京タワー", "项目截止日期", "茶", "서울에서", "é", "3.14", "-",
}

func phrases(low, high int) *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.SampledFrom(vocabulary), low, high), func(words []string) string { return strings.Join(words, " ") })
}

// Numbers whose products float32 holds exactly, so that ties are ties.
func vectors() *rapid.Generator[[]float32] {
	return rapid.SliceOfN(rapid.Map(rapid.IntRange(-4, 4), func(n int) float32 { return float32(n) / 8 }), 4, 4)
}

func drawScored(t *rapid.T, own string, i int, threads []string) *scoredMessage {
	place := rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2}).Draw(t, "thread")
	m := &scoredMessage{NewMessage: recall.NewMessage{
		ID: own + strconv.Itoa(i), ThreadID: threads[place], ResourceID: own + []string{"ana", "ana", "bob"}[place],
		Role:      rapid.SampledFrom([]string{"user", "user", "assistant", "assistant", "tool", "system"}).Draw(t, "role"),
		CreatedAt: epoch.Add(time.Duration(i/2) * 7 * time.Hour),
	}}
	for range rapid.SampledFrom([]int{1, 1, 1, 2, 0}).Draw(t, "texts") {
		m.texts = append(m.texts, phrases(0, 5).Draw(t, "text")+rapid.SampledFrom([]string{"", "", ".", "?", "？\n "}).Draw(t, "end"))
	}
	parts := []any{}
	for _, said := range m.texts {
		parts = append(parts, map[string]any{"type": "text", "text": said})
	}
	parts = append(parts, map[string]any{"type": "reasoning", "text": "tea?"})
	metadata := map[string]any{}
	if m.tagged = rapid.Bool().Draw(t, "tagged"); m.tagged {
		metadata["k"] = 1
	}
	switch rapid.IntRange(0, 3).Draw(t, "speaker") {
	case 0:
		m.speaker = "Ana"
		metadata["name"] = m.speaker
	case 1:
		metadata["name"] = 5 // is nobody's name
	}
	m.Content = object(map[string]any{"format": 2, "parts": parts, "metadata": metadata})
	if m.spoken() {
		m.vectors = rapid.SliceOfN(vectors(), 0, 3).Draw(t, "vectors")
	}
	return m
}

func drawAsked(t *rapid.T, own string, threads []string) asked {
	a := asked{
		mode:     rapid.SampledFrom([]recall.Mode{recall.Hybrid, recall.Hybrid, recall.Lexical, recall.Semantic}).Draw(t, "mode"),
		question: phrases(0, 5).Draw(t, "question"),
		topK:     rapid.SampledFrom([]int{1, 2, 3, 5, 50}).Draw(t, "topK"),
		tagged:   rapid.IntRange(0, 3).Draw(t, "tagged") == 0,
		roles:    []string{},
	}
	if rapid.IntRange(0, 3).Draw(t, "quoted") == 0 {
		a.question += ` "` + phrases(1, 2).Draw(t, "phrase") + `"`
	}
	if rapid.Bool().Draw(t, "in a thread") {
		a.threadID = rapid.SampledFrom(threads).Draw(t, "threadId")
	}
	a.resourceID = own + rapid.SampledFrom([]string{"ana", "ana", "bob"}).Draw(t, "resourceId")
	if rapid.IntRange(0, 4).Draw(t, "vector?") > 0 {
		a.vector = vectors().Draw(t, "vector")
	}
	if a.mode != recall.Lexical {
		a.threshold = optional(t, "threshold", rapid.SampledFrom([]float64{-1, 0, .1, .25}))
	}
	if rapid.IntRange(0, 3).Draw(t, "roles?") == 0 {
		a.roles = []string{rapid.SampledFrom([]string{"user", "assistant", "tool"}).Draw(t, "role")}
	}
	if rapid.IntRange(0, 3).Draw(t, "dates?") == 0 {
		times := rapid.Map(rapid.IntRange(0, 14), func(n int) time.Time { return epoch.Add(time.Duration(n) * 7 * time.Hour) })
		a.starts, a.ends = optional(t, "starts", times), optional(t, "ends", times)
	}
	return a
}

// read asks PostgreSQL for the lexemes of messages and question.
func (a asked) read(t must, m memory, messages []*scoredMessage) {
	var quoted []string
	for i, part := range strings.Split(a.question, `"`) {
		if i%2 == 1 {
			quoted = append(quoted, part)
		}
	}
	var said, pairs []string
	for _, message := range messages {
		message.ranks, message.inPhrase = map[string]float64{}, true
		said, pairs = append(said, message.searchable()), append(pairs, strings.Join(bigrams(message.searchable()), " "))
		for _, phrase := range quoted {
			message.inPhrase = message.inPhrase && m.hasPhrase(t, message.pieces(), phrase)
		}
	}
	rows, err := m.pool.Query(ctx, `
		SELECT d.n, length(d.lexemes), coalesce(q.lexeme, ''), coalesce(ts_rank('{1,1,1,1}', d.lexemes, q.query), 0)::float8
		FROM (
			SELECT s.n, to_tsvector('english', s.said) || array_to_tsvector(string_to_array(s.pairs, ' ')) AS lexemes
			FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS s (said, pairs, n)
		) AS d
		LEFT JOIN LATERAL (
			SELECT l.lexeme, ('''' || replace(replace(l.lexeme, '\', '\\'), '''', '''''') || '''')::tsquery AS query
			FROM unnest(to_tsvector('english', $3::text) || array_to_tsvector($4::text[])) AS l
		) AS q ON d.lexemes @@ q.query`, said, pairs, a.question, bigrams(a.question))
	require.NoError(t, err)
	var n int
	var lexemes int
	var lexeme string
	var rank float64
	_, err = pgx.ForEachRow(rows, []any{&n, &lexemes, &lexeme, &rank}, func() error {
		messages[n-1].lexemes = lexemes
		if lexeme != "" {
			messages[n-1].ranks[lexeme] = rank
		}
		return nil
	})
	require.NoError(t, err)
}

// hasPhrase says whether a piece has the words of phrase one after the other; where
// that is Chinese, Japanese or Korean, whether they have its bigrams.
func (m memory) hasPhrase(t must, pieces []string, phrase string) bool {
	if pairs := bigrams(phrase); len(pairs) > 0 {
		said := bigrams(strings.Join(pieces, "\n"))
		return !slices.ContainsFunc(pairs, func(pair string) bool { return !slices.Contains(said, pair) })
	}
	var has bool
	m.scan(t, `SELECT numnode(phraseto_tsquery('english', $2)) = 0 OR EXISTS (
			SELECT FROM unnest($1::text[]) AS p (piece) WHERE to_tsvector('english', p.piece) @@ phraseto_tsquery('english', $2)
		)`, []any{append([]string{}, pieces...), phrase}, &has)
	return has
}

func (m memory) positions(t must, a asked) []string {
	var vector *pgvector.Vector
	if a.vector != nil {
		v := pgvector.NewVector(a.vector)
		vector = &v
	}
	var matching *string
	if a.tagged {
		matching = of(`$.k == 1`)
	}
	rows, err := m.pool.Query(ctx, `
		SELECT p.message_id, p.score, coalesce(p.similarity, 'NaN'), p.words
		FROM recall.search_positions(
			$1, $2, $3, $4, $5::vector, (SELECT i.model FROM recall.embedding_indexes AS i WHERE i.state = 'live'), '', $6, $7, $8, $9::jsonpath,
			coalesce($10::timestamptz, '-infinity'), coalesce($11::timestamptz, 'infinity')
		) WITH ORDINALITY AS p
		ORDER BY p.ordinality`,
		a.threadID, a.resourceID, string(a.mode), a.question, vector, a.topK, a.threshold, a.roles, matching, a.starts, a.ends)
	require.NoError(t, err)
	defer rows.Close()
	found := []string{}
	for rows.Next() {
		var id string
		var score, similarity, words float64
		require.NoError(t, rows.Scan(&id, &score, &similarity, &words))
		found = append(found, hitLine(id, score, similarity, words))
	}
	require.NoError(t, rows.Err())
	return found
}

// hitLine writes a hit to six decimals, in which 0 has no sign.
func hitLine(id string, numbers ...float64) string {
	for _, number := range numbers {
		id += fmt.Sprintf(" %.6f", math.Round(number*1e6)/1e6+0)
	}
	return id
}

func TestSearchPositionsAreThoseOfTheRecipe(t *testing.T) {
	t.Parallel()
	for _, prior := range []bool{true, false} {
		t.Run(fmt.Sprintf("length prior %t", prior), func(t *testing.T) {
			t.Parallel()
			m := newMemory(t)
			table := m.useIndex(t, 4, prior)
			rapid.Check(t, func(t *rapid.T) {
				own := prefix()
				threads := []string{own + "b", own + "a", own + "c"}
				var all []*scoredMessage
				last := map[string]int{}
				for i := range rapid.IntRange(0, 30).Draw(t, "messages") {
					message := drawScored(t, own, i, threads)
					last[message.ThreadID]++
					message.seq = last[message.ThreadID]
					all = append(all, message)
				}
				m.store(t, table, all)
				for range 4 {
					a := drawAsked(t, own, threads)
					a.prior = prior
					a.read(t, m, all)
					want := []string{}
					for _, hit := range a.answer(all) {
						want = append(want, hitLine(hit.message.ID, hit.score, hit.similarity, hit.words))
					}
					require.True(t, sameHits(want, m.positions(t, a)), "%+v\nwant %q\ngot  %q", a, want, m.positions(t, a))
				}
			})
		})
	}
}

// sameHits compares hit lines, whose numbers may differ by 1e-6.
func sameHits(want, got []string) bool {
	return slices.EqualFunc(want, got, func(a, b string) bool {
		x, y := strings.Fields(a), strings.Fields(b)
		for i := 1; i < len(x); i++ {
			p, _ := strconv.ParseFloat(x[i], 64)
			q, _ := strconv.ParseFloat(y[i], 64)
			if x[i] != y[i] && !(math.Abs(p-q) < 2e-6) {
				return false
			}
		}
		return x[0] == y[0]
	})
}

// store saves messages with their vectors.
func (m memory) store(t must, table string, messages []*scoredMessage) {
	var saved []recall.NewMessage
	var ids []string
	var chunks []int16
	var numbers []*string
	for _, message := range messages {
		saved = append(saved, message.NewMessage)
		for i, vector := range message.vectors {
			ids, chunks, numbers = append(ids, message.ID), append(chunks, int16(i)), append(numbers, of(pgvector.NewVector(vector).String()))
		}
		if message.spoken() && len(message.vectors) == 0 {
			ids, chunks, numbers = append(ids, message.ID), append(chunks, 0), append(numbers, nil)
		}
	}
	m.save(t, saved...)
	_, err := m.pool.Exec(ctx, `
		INSERT INTO recall.`+table+` (message_id, chunk, thread_id, resource_id, text_hash, embedding, in_graph)
		SELECT m.id, n.chunk, m.thread_id, m.resource_id, '', n.vector::vector, n.chunk = 1
		FROM unnest($1::text[], $2::smallint[], $3::text[]) AS n (id, chunk, vector)
		JOIN recall.messages AS m USING (id)`, ids, chunks, numbers)
	require.NoError(t, err)
}

// useIndex makes an index of the given dimensions for the model "fixed" the live
// one, and gives its table.
func (m memory) useIndex(t must, dimensions int, prior bool) (table string) {
	t.Helper()
	_, err := m.pool.Exec(ctx, `UPDATE recall.embedding_indexes SET state = 'retired' WHERE state = 'live'`)
	require.NoError(t, err)
	_, err = m.pool.Exec(ctx, `
		INSERT INTO recall.embedding_indexes (name, model, dimensions, length_prior, state, created_at, live_at)
		VALUES ('fixed', 'fixed', $1, $2, 'live', now(), now())`, dimensions, prior)
	require.NoError(t, err)
	m.scan(t, `SELECT recall.create_embedding_table(i) FROM recall.embedding_indexes AS i WHERE i.state = 'live'`, nil, &table)
	return table
}

package eval

import (
	"cmp"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/pgrecall/pgrecall/recall"
)

// Tokenizer is how tokens are counted: the characters of the texts by 4.
const Tokenizer = "characters/4"

// width is how many turns on either side of a hit count as seen with its context.
const width = 2

// Report says how much was found.
type Report struct {
	Conversations int          `json:"conversations"`
	Messages      int          `json:"messages"`
	Questions     int          `json:"questions"`
	LeftOut       int          `json:"leftOut"`
	K             int          `json:"k"`
	Context       int          `json:"context"`
	Tokenizer     string       `json:"tokenizer"`
	Modes         []ModeReport `json:"modes"`
}

// ModeReport is what one mode found: first of all questions, then of each category.
type ModeReport struct {
	Mode   recall.Mode `json:"mode"`
	Scores []Scores    `json:"scores"`
}

// Scores are means over questions.
type Scores struct {
	// Category is empty for all questions together.
	Category  string `json:"category"`
	Questions int    `json:"questions"`
	Hits      Found  `json:"hits"`
	// WithContext counts the turns around each hit as seen.
	WithContext Found `json:"withContext"`
}

// Found says how much of the evidence was seen, and at what cost.
type Found struct {
	// Recall is the share of the evidence among the first so many hits.
	Recall map[string]float64 `json:"recall"`
	// Any is the share of questions that have some evidence among the first K hits.
	Any float64 `json:"any"`
	// Tokens is how long the first K hits are, by [Tokenizer].
	Tokens float64 `json:"tokens"`
}

func newReport(set Set, options Options) Report {
	return Report{
		Conversations: len(set.Conversations), Messages: set.messages(), Questions: len(set.Questions), LeftOut: set.LeftOut,
		K: options.K, Context: width, Tokenizer: Tokenizer,
	}
}

// cutoffs are the numbers of hits at which recall is counted.
func (r *Report) cutoffs() []int {
	cutoffs := []int{5, 10, 20, 50, r.K}
	slices.Sort(cutoffs)
	return slices.Compact(cutoffs)
}

// Cutoffs names the keys of [Found.Recall], ascending.
func (r *Report) Cutoffs() []string {
	var names []string
	for _, k := range r.cutoffs() {
		names = append(names, strconv.Itoa(k))
	}
	return names
}

// place is where a turn stands.
type place struct {
	part   string
	number int
}

// places knows where the turns of a conversation stand, and how long they are.
type places struct {
	of         map[string]place
	at         map[place]string
	characters map[string]int
}

func placesOf(c *Conversation) *places {
	p := &places{of: map[string]place{}, at: map[place]string{}, characters: map[string]int{}}
	for _, t := range c.Turns {
		where := place{t.Part, t.Place}
		p.of[t.ID], p.at[where] = where, t.ID
		p.characters[t.ID] = utf8.RuneCountInString(t.Text)
	}
	return p
}

// around gives the ids of a turn and of those around it.
func (p *places) around(id string) []string {
	where := p.of[id]
	var ids []string
	for n := where.number - width; n <= where.number+width; n++ {
		if near, ok := p.at[place{where.part, n}]; ok {
			ids = append(ids, near)
		}
	}
	return ids
}

// mark is the judgement of the hits of one question.
type mark struct {
	category          string
	hits, withContext sight
}

// sight is what was seen of one question's evidence.
type sight struct {
	recall []float64 // at each cutoff
	any    bool
	tokens float64
}

func (p *places) judge(q Question, hits []string, cutoffs []int, k int) mark {
	alone := func(id string) []string { return []string{id} }
	return mark{category: q.Category, hits: p.see(q, hits, cutoffs, k, alone), withContext: p.see(q, hits, cutoffs, k, p.around)}
}

// see counts what of the evidence is among the first hits, each of which shows
// some turns.
func (p *places) see(q Question, hits []string, cutoffs []int, k int, shows func(string) []string) sight {
	var s sight
	wanted := make(map[string]bool, len(q.Evidence))
	for _, id := range q.Evidence {
		wanted[id] = true
	}
	seen := make(map[string]bool)
	found, characters, taken := 0, 0, 0
	for _, cutoff := range cutoffs {
		for taken < min(cutoff, len(hits)) {
			for _, id := range shows(hits[taken]) {
				if seen[id] {
					continue
				}
				seen[id] = true
				characters += p.characters[id]
				if wanted[id] {
					found++
				}
			}
			taken++
		}
		s.recall = append(s.recall, float64(found)/float64(len(wanted)))
		if cutoff == k {
			s.any, s.tokens = found > 0, float64(characters)/4
		}
	}
	return s
}

// summarise gives the scores of all questions, and of each category where there
// are several.
func summarise(marks []mark, cutoffs []int) []Scores {
	scores := []Scores{mean("", marks, cutoffs)}
	byCategory := make(map[string][]mark)
	for _, m := range marks {
		byCategory[m.category] = append(byCategory[m.category], m)
	}
	if len(byCategory) == 1 {
		return scores
	}
	for category, of := range byCategory {
		scores = append(scores, mean(cmp.Or(category, "none"), of, cutoffs))
	}
	slices.SortFunc(scores, func(a, b Scores) int { return cmp.Compare(a.Category, b.Category) })
	return scores
}

func mean(category string, marks []mark, cutoffs []int) Scores {
	scores := Scores{Category: category, Questions: len(marks)}
	for _, side := range []struct {
		of   func(mark) sight
		into *Found
	}{
		{func(m mark) sight { return m.hits }, &scores.Hits},
		{func(m mark) sight { return m.withContext }, &scores.WithContext},
	} {
		recalls := make([]float64, len(cutoffs))
		for _, m := range marks {
			s := side.of(m)
			for i, share := range s.recall {
				recalls[i] += share / float64(len(marks))
			}
			if s.any {
				side.into.Any += 1 / float64(len(marks))
			}
			side.into.Tokens += s.tokens / float64(len(marks))
		}
		side.into.Recall = make(map[string]float64, len(cutoffs))
		for i, k := range cutoffs {
			side.into.Recall[strconv.Itoa(k)] = recalls[i]
		}
	}
	return scores
}

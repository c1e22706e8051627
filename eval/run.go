package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pgrecall/pgrecall/recall"
)

// Progress hears how far a phase of a run is.
type Progress func(phase string, done, total int)

// batch is how many messages are saved at once.
const batch = 500

// Load saves every conversation: one thread of a resource, both named like it.
func Load(ctx context.Context, memory *recall.Memory, set Set, progress Progress) error {
	done, total := 0, set.messages()
	for _, c := range set.Conversations {
		for turns := range slices.Chunk(c.Turns, batch) {
			messages := make([]recall.NewMessage, len(turns))
			for i, t := range turns {
				messages[i] = recall.NewMessage{
					ID: c.messageID(t.ID), ThreadID: c.ID, ResourceID: c.ID, Role: t.Role, CreatedAt: t.At, Content: t.content(),
				}
			}
			if _, err := memory.SaveMessages(ctx, messages, true); err != nil {
				return fmt.Errorf("save the conversation %q: %w", c.ID, err)
			}
			done += len(turns)
			progress("load", done, total)
		}
	}
	return nil
}

// messageID makes a turn's id one among all conversations.
func (c *Conversation) messageID(id string) string { return c.ID + ":" + id }

func (t Turn) content() json.RawMessage {
	content := map[string]any{
		"format": 2,
		"parts":  []any{map[string]any{"type": "text", "text": t.Text}},
	}
	if t.Name != "" {
		content["metadata"] = map[string]any{"name": t.Name}
	}
	text, err := json.Marshal(content)
	if err != nil {
		panic(err) // strings only
	}
	return text
}

// Options say how to ask.
type Options struct {
	Modes []recall.Mode
	// K is how many hits count for any@k and tokens.
	K        int
	Progress Progress
}

// Ask asks every question in every mode of the conversations that [Load] has saved.
func Ask(ctx context.Context, memory *recall.Memory, set Set, options Options) (Report, error) {
	report := newReport(set, options)
	places := make(map[string]*places, len(set.Conversations))
	for i := range set.Conversations {
		places[set.Conversations[i].ID] = placesOf(&set.Conversations[i])
	}
	depth := slices.Max(report.cutoffs())
	for _, mode := range options.Modes {
		var marks []mark
		for i, q := range set.Questions {
			hits, err := find(ctx, memory, q, mode, depth)
			if err != nil {
				return Report{}, fmt.Errorf("ask %q in mode %s: %w", q.Text, mode, err)
			}
			marks = append(marks, places[q.Conversation].judge(q, hits, report.cutoffs(), options.K))
			options.Progress(string(mode), i+1, len(set.Questions))
		}
		report.Modes = append(report.Modes, ModeReport{Mode: mode, Scores: summarise(marks, report.cutoffs())})
	}
	return report, nil
}

// find gives the ids of the turns that a question finds, best first.
func find(ctx context.Context, memory *recall.Memory, q Question, mode recall.Mode, depth int) ([]string, error) {
	none := 0
	result, err := memory.Recall(ctx, recall.Request{
		ResourceID: q.Conversation, PerPage: &none, SkipTotal: true, Explain: true,
		Search: &recall.Search{Question: q.Text, TopK: depth, Before: &none, After: &none, Mode: mode},
	})
	if err != nil {
		return nil, err
	}
	hits := slices.DeleteFunc(result.Messages, func(m recall.Message) bool { return m.Explain.Hit == nil })
	slices.SortFunc(hits, func(a, b recall.Message) int { return a.Explain.Hit.Rank - b.Explain.Hit.Rank })
	ids := make([]string, len(hits))
	for i, m := range hits {
		ids[i] = strings.TrimPrefix(m.ID, q.Conversation+":")
	}
	return ids, nil
}

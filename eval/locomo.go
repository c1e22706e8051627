package eval

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// sample is an element of a LoCoMo file. The conversation has the members
// speaker_a, speaker_b, session_<n> and session_<n>_date_time.
type sample struct {
	ID           string                     `json:"sample_id"`
	Conversation map[string]json.RawMessage `json:"conversation"`
	Questions    []struct {
		Question string   `json:"question"`
		Evidence []string `json:"evidence"`
		Category int      `json:"category"`
	} `json:"qa"`
}

type sampleTurn struct {
	Speaker string `json:"speaker"`
	ID      string `json:"dia_id"`
	Text    string `json:"text"`
	Caption string `json:"blip_caption"`
}

// adversarial is the category of questions that have no answer.
const adversarial = 5

// sessionTime is how a session's time is written.
const sessionTime = "3:04 pm on 2 January, 2006"

var (
	sessionName = regexp.MustCompile(`^session_(\d+)$`)
	// turnName names a turn by its session and its number in it. An element of
	// evidence may hold several.
	turnName = regexp.MustCompile(`D(\d+):(\d+)`)
)

func readSamples(r io.Reader) (Set, error) {
	var samples []sample
	if err := json.NewDecoder(r).Decode(&samples); err != nil {
		return Set{}, err
	}
	var set Set
	for _, s := range samples {
		c, err := s.conversation()
		if err != nil {
			return Set{}, fmt.Errorf("sample %q: %w", s.ID, err)
		}
		set.Conversations = append(set.Conversations, c)
		for _, q := range s.Questions {
			var evidence []string
			for _, text := range q.Evidence {
				evidence = append(evidence, turnName.FindAllString(text, -1)...)
			}
			slices.Sort(evidence)
			if q.Category == adversarial {
				evidence = nil
			}
			set.ask(Question{
				Conversation: s.ID, Text: q.Question, Evidence: slices.Compact(evidence), Category: strconv.Itoa(q.Category),
			})
		}
	}
	return set, nil
}

func (s *sample) conversation() (Conversation, error) {
	c := Conversation{ID: s.ID}
	var first string
	if raw := s.Conversation["speaker_a"]; raw != nil {
		if err := json.Unmarshal(raw, &first); err != nil {
			return c, fmt.Errorf("speaker_a: %w", err)
		}
	}
	for _, n := range s.sessions() {
		name := "session_" + strconv.Itoa(n)
		var turns []sampleTurn
		if err := json.Unmarshal(s.Conversation[name], &turns); err != nil {
			return c, fmt.Errorf("%s: %w", name, err)
		}
		if len(turns) == 0 {
			continue
		}
		at, err := s.time(name)
		if err != nil {
			return c, err
		}
		for i, t := range turns {
			turn, err := t.turn(first, at.Add(time.Duration(i)*time.Second))
			if err != nil {
				return c, fmt.Errorf("%s: %w", name, err)
			}
			c.Turns = append(c.Turns, turn)
		}
	}
	return c, nil
}

// sessions gives the numbers of the sessions, in order.
func (s *sample) sessions() []int {
	var numbers []int
	for name := range s.Conversation {
		if match := sessionName.FindStringSubmatch(name); match != nil {
			if n, err := strconv.Atoi(match[1]); err == nil {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	return numbers
}

func (s *sample) time(session string) (time.Time, error) {
	name := session + "_date_time"
	var text string
	if err := json.Unmarshal(s.Conversation[name], &text); err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", name, err)
	}
	at, err := time.Parse(sessionTime, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", name, err)
	}
	return at, nil
}

func (t sampleTurn) turn(first string, at time.Time) (Turn, error) {
	match := turnName.FindStringSubmatch(t.ID)
	if len(match) == 0 || match[0] != t.ID {
		return Turn{}, fmt.Errorf("dia_id %q: want D<session>:<number>", t.ID)
	}
	place, err := strconv.Atoi(match[2])
	if err != nil {
		return Turn{}, fmt.Errorf("dia_id %q: %w", t.ID, err)
	}
	turn := Turn{ID: t.ID, Part: match[1], Place: place, Role: "assistant", Name: t.Speaker, Text: t.Text, At: at}
	if t.Speaker == first {
		turn.Role = "user"
	}
	if t.Caption != "" {
		turn.Text += " " + t.Caption
	}
	return turn, nil
}

// Package eval measures how well questions find the messages that answer them.
//
// A [Set] of conversations goes through a [recall.Memory] as any application's
// would, and each of its questions is asked in each mode. What counts is the
// evidence: the turns that are known to hold the answer.
package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Set is what is asked, and of which conversations.
type Set struct {
	Conversations []Conversation
	Questions     []Question
	// LeftOut counts the questions that are not asked: those without evidence and
	// those that have no answer.
	LeftOut int
}

// Conversation is one thread of a resource of its own.
type Conversation struct {
	ID    string
	Turns []Turn
}

// Turn is a message. Turns are neighbours where they have the same part and their
// places differ by little.
type Turn struct {
	ID    string
	Part  string
	Place int
	Role  string
	Name  string
	Text  string
	At    time.Time
}

// Question is asked of one conversation.
type Question struct {
	Conversation string
	Text         string
	// Evidence holds the ids of the turns with the answer.
	Evidence []string
	Category string
}

// messages counts the turns of all conversations.
func (s *Set) messages() int {
	total := 0
	for _, c := range s.Conversations {
		total += len(c.Turns)
	}
	return total
}

// Read reads a set: an array of LoCoMo samples, or lines of JSON.
func Read(r io.Reader) (Set, error) {
	buffered := bufio.NewReader(r)
	var set Set
	var err error
	if first, peekErr := firstByte(buffered); peekErr != nil {
		return Set{}, fmt.Errorf("nothing to read: %w", peekErr)
	} else if first == '[' {
		set, err = readSamples(buffered)
	} else {
		set, err = readLines(buffered)
	}
	if err == nil {
		err = set.check()
	}
	return set, err
}

// firstByte gives the first byte that is not blank, and leaves it to be read.
func firstByte(r *bufio.Reader) (byte, error) {
	for {
		b, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		if !bytes.ContainsRune([]byte(" \t\r\n"), rune(b)) {
			return b, r.UnreadByte()
		}
	}
}

// check refuses a set that cannot be loaded or has nothing to ask.
func (s *Set) check() error {
	turns := make(map[string]bool, len(s.Conversations))
	for _, c := range s.Conversations {
		if c.ID == "" {
			return fmt.Errorf("a conversation has no name")
		}
		if turns[c.ID] {
			return fmt.Errorf("the conversation %q is given twice", c.ID)
		}
		turns[c.ID] = true
		seen := make(map[string]bool, len(c.Turns))
		for _, t := range c.Turns {
			if t.ID == "" || seen[t.ID] {
				return fmt.Errorf("conversation %q: the message id %q is empty or given twice", c.ID, t.ID)
			}
			seen[t.ID] = true
		}
	}
	for _, q := range s.Questions {
		if !turns[q.Conversation] {
			return fmt.Errorf("the question %q is about the conversation %q, which is not there", q.Text, q.Conversation)
		}
	}
	if len(s.Questions) == 0 {
		return fmt.Errorf("there is no question with evidence")
	}
	return nil
}

// ask adds a question, if it can be judged.
func (s *Set) ask(q Question) {
	if len(q.Evidence) == 0 || q.Text == "" {
		s.LeftOut++
		return
	}
	s.Questions = append(s.Questions, q)
}

// line is a line of a JSONL file: messages of a conversation, or a question.
type line struct {
	Conversation string `json:"conversation"`
	Messages     []struct {
		ID        string    `json:"id"`
		Role      string    `json:"role"`
		Name      string    `json:"name"`
		Text      string    `json:"text"`
		CreatedAt time.Time `json:"createdAt"`
	} `json:"messages"`
	Question string   `json:"question"`
	Evidence []string `json:"evidence"`
	Category string   `json:"category"`
}

// readLines reads lines of JSON. The messages of a conversation may be spread over
// several of them; neighbours are counted in the order given.
func readLines(r io.Reader) (Set, error) {
	var set Set
	places := make(map[string]int)
	decoder := json.NewDecoder(r)
	decoder.DisallowUnknownFields()
	for n := 1; ; n++ {
		var l line
		if err := decoder.Decode(&l); err == io.EOF {
			return set, nil
		} else if err != nil {
			return Set{}, fmt.Errorf("object %d: %w", n, err)
		}
		if (l.Messages != nil) == (l.Question != "") {
			return Set{}, fmt.Errorf("object %d: want messages or a question", n)
		}
		if l.Question != "" {
			set.ask(Question{Conversation: l.Conversation, Text: l.Question, Evidence: l.Evidence, Category: l.Category})
			continue
		}
		place, known := places[l.Conversation]
		if !known {
			place = len(set.Conversations)
			places[l.Conversation] = place
			set.Conversations = append(set.Conversations, Conversation{ID: l.Conversation})
		}
		c := &set.Conversations[place]
		for _, m := range l.Messages {
			c.Turns = append(c.Turns, Turn{
				ID: m.ID, Place: len(c.Turns), Role: m.Role, Name: m.Name, Text: m.Text, At: m.CreatedAt,
			})
		}
	}
}

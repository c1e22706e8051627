package recall

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// ContextRequest asks for what a model is to see of a conversation.
type ContextRequest struct {
	ThreadID string
	// ResourceID owns the thread, which need not be there yet.
	ResourceID string
	// Query is what is searched for; empty means what the thread's last user message
	// says.
	Query string
	// Config says what is wanted; see [Memory.AgentConfig].
	Config Config
	// MaxTokens bounds the answer, counted with [Tokenizer]; 0 for no bound.
	MaxTokens int
	// SplitToolPairs lets a tool result stand without its call.
	SplitToolPairs bool
}

// Context is what a model is to see.
type Context struct {
	// Messages are in the order in which they are to be read, each with its reasons
	// and marked as recalled: working memory, what is remembered from other threads,
	// the thread.
	Messages []Message
	Tokens   int
	// Dropped are the ids of messages that there was no room for, in order.
	Dropped []string
	// Degraded says that the embedder was out of reach, and that the hits were
	// found by words alone.
	Degraded bool
}

// Context puts together what a model is to see: a user's working memory, the newest
// messages of a thread, and what answers the query with the messages around it,
// each once. Within MaxTokens the newest message comes first, then working memory,
// then the newer and the better found in turn, and last what is around hits; a
// message is never cut, and tool calls stay with their results.
// CodeUnprocessable when not even the first of these fits.
func (m *Memory) Context(ctx context.Context, in ContextRequest) (Context, error) {
	if err := m.checkContext(in); err != nil {
		return Context{}, err
	}
	found, err := m.contextMessages(ctx, in)
	if err != nil {
		return Context{}, err
	}
	turn := Turn{ThreadID: in.ThreadID, ResourceID: in.ResourceID, Config: in.Config}
	instruction, err := m.InstructionForTurn(ctx, turn)
	if err != nil {
		return Context{}, err
	}
	for i := range instruction.Messages {
		instruction.Messages[i].Explain = &Explanation{Reasons: []Reason{ReasonWorkingMemory}}
	}
	messages := slices.Concat(instruction.Messages, found.Messages)
	out, err := newPack(turn, messages, in.SplitToolPairs).fill(in.MaxTokens)
	out.Degraded = found.Degraded
	return out, err
}

const maxContextTokens = 100_000_000

func (m *Memory) checkContext(in ContextRequest) error {
	c := m.check()
	c.requiredID("threadId", in.ThreadID)
	c.id("resourceId", in.ResourceID)
	c.text("query", in.Query, c.limits.QuestionBytes)
	c.between("maxTokens", in.MaxTokens, 0, maxContextTokens)
	return c.err()
}

// contextMessages finds the messages, each with its reasons.
func (m *Memory) contextMessages(ctx context.Context, in ContextRequest) (Result, error) {
	request := Request{
		ThreadID: in.ThreadID, ResourceID: in.ResourceID, LastMessages: in.Config.LastMessages,
		KeepToolPairs: !in.SplitToolPairs, SkipTotal: true, Explain: true,
	}
	query := in.Query
	if query == "" && in.Config.SearchFor("any") != nil {
		said, err := m.lastSaid(ctx, in.ThreadID, in.ResourceID)
		if err != nil {
			return Result{}, err
		}
		query = said
	}
	request.Search = in.Config.SearchFor(query)
	return m.recallMaybe(ctx, request)
}

// lastSaid gives what the last user message of a thread says; empty for none.
func (m *Memory) lastSaid(ctx context.Context, threadID, resourceID string) (string, error) {
	one := 1
	result, err := m.recallMaybe(ctx, Request{
		ThreadID: threadID, ResourceID: resourceID, PerPage: &one, SkipTotal: true, Filter: Filter{Roles: []string{"user"}},
	})
	if err != nil || len(result.Messages) == 0 {
		return "", err
	}
	said := result.Messages[0]
	return questionOf([]NewMessage{{Role: said.Role, Content: said.Content}}), nil
}

// pack chooses among messages what there is room for.
type pack struct {
	turn     Turn
	messages []Message // in order
	tokens   map[string]int
	units    []unit
	taken    map[string]bool // by the id of a message
}

// unit is what is taken or left as one: a message, or a tool call with its results.
type unit struct {
	messages []Message // in order
	standing standing
	history  bool // of the page: without a newer one it is not taken
}

// standing says how soon a unit is taken: the less the sooner.
type standing struct{ grade, place int }

// The grades of a standing.
const (
	gradeNewest  = iota // the newest message
	gradeWorking        // working memory
	gradeBest           // history by its age, and hits by their rank
	gradeAround         // what is around hits
)

func (s standing) compare(other standing) int {
	return cmp.Or(cmp.Compare(s.grade, other.grade), cmp.Compare(s.place, other.place))
}

// newPack takes messages in their order.
func newPack(turn Turn, messages []Message, split bool) *pack {
	p := &pack{turn: turn, messages: messages, tokens: make(map[string]int), taken: make(map[string]bool)}
	for _, group := range groupTools(messages, split) {
		p.units = append(p.units, unit{messages: group})
	}
	age := 0
	for i := len(p.units) - 1; i >= 0; i-- {
		u := &p.units[i]
		u.standing = standing{grade: gradeAround + 1}
		for _, message := range slices.Backward(u.messages) {
			if slices.Contains(message.Explain.Reasons, ReasonPage) {
				age++
				u.history = true
			}
			if s := standingOf(message, age); s.compare(u.standing) < 0 {
				u.standing = s
			}
		}
	}
	return p
}

// standingOf gives the standing of a message; age counts those of the page from the
// newest, which is 1.
func standingOf(message Message, age int) standing {
	why := message.Explain
	best := standing{gradeAround, max(why.Offset, -why.Offset)}
	if why.Hit != nil {
		best = standing{gradeBest, 2*why.Hit.Rank + 1}
	}
	switch {
	case slices.Contains(why.Reasons, ReasonWorkingMemory):
		return standing{gradeWorking, 0}
	case !slices.Contains(why.Reasons, ReasonPage):
		return best
	case age == 1:
		return standing{gradeNewest, 0}
	case best.grade == gradeBest && best.place < 2*age:
		return best
	default:
		return standing{gradeBest, 2 * age}
	}
}

// groupTools puts messages together that share tool calls, in the order of the
// first of each.
func groupTools(messages []Message, split bool) [][]Message {
	var groups [][]Message
	groupOf := make(map[string]int) // by thread and tool call
	for _, message := range messages {
		calls, results := toolPairs(message.Content)
		at := -1
		for _, id := range slices.Concat(calls, results) {
			if i, known := groupOf[message.ThreadID+"\x00"+id]; known && !split {
				at = i
			}
		}
		if at < 0 {
			at = len(groups)
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], message)
		for _, id := range slices.Concat(calls, results) {
			groupOf[message.ThreadID+"\x00"+id] = at
		}
	}
	return groups
}

// fill takes what there is room for; all of it where maxTokens is 0.
func (p *pack) fill(maxTokens int) (Context, error) {
	order := make([]int, len(p.units))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return p.units[i].standing.compare(p.units[j].standing) })
	var out Context
	broken := false // the history has a gap: what is older would be out of place
	for n, i := range order {
		u := &p.units[i]
		if broken && u.history {
			continue
		}
		p.take(*u, true)
		messages, tokens, err := p.build()
		if err != nil {
			return Context{}, err
		}
		if maxTokens == 0 || tokens <= maxTokens {
			out.Messages, out.Tokens = messages, tokens
			continue
		}
		if n == 0 {
			return Context{}, tooFewTokens(tokens)
		}
		p.take(*u, false)
		broken = broken || u.history
	}
	for _, message := range p.messages {
		if !p.taken[message.ID] {
			out.Dropped = append(out.Dropped, message.ID)
		}
	}
	return out, nil
}

func (p *pack) take(u unit, take bool) {
	for _, message := range u.messages {
		p.taken[message.ID] = take
	}
}

// build puts together what is taken, and counts its tokens.
func (p *pack) build() (messages []Message, tokens int, err error) {
	var first, own, others []Message
	for _, message := range p.messages {
		message.Recalled = true
		switch {
		case !p.taken[message.ID]:
		case message.ThreadID != p.turn.ThreadID:
			others = append(others, message)
		case slices.Contains(message.Explain.Reasons, ReasonWorkingMemory):
			first = append(first, message)
		default:
			own = append(own, message)
		}
	}
	if len(others) > 0 {
		remembered := rememberedMessage(others, p.turn)
		remembered.Explain = &Explanation{Reasons: reasonsOf(others)}
		delete(p.tokens, remembered.ID) // it has changed
		first = append(first, remembered)
	}
	messages = slices.Concat(first, own)
	for _, message := range messages {
		if _, known := p.tokens[message.ID]; !known {
			if p.tokens[message.ID], err = tokensOf(message); err != nil {
				return nil, 0, err
			}
		}
		tokens += p.tokens[message.ID]
	}
	return messages, tokens, nil
}

// reasonsOf gives the reasons of messages together, each once.
func reasonsOf(messages []Message) []Reason {
	var all []Reason
	for _, message := range messages {
		for _, reason := range message.Explain.Reasons {
			if !slices.Contains(all, reason) {
				all = append(all, reason)
			}
		}
	}
	return all
}

// tooFewTokens refuses a bound that not even one message fits.
func tooFewTokens(least int) *Error {
	return &Error{Code: CodeUnprocessable, Message: "The newest message does not fit", Issues: []Issue{{
		Field: "maxTokens", Message: fmt.Sprintf("is too few: the newest message takes %d tokens", least),
	}}}
}

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
	tokens   []int     // that each message takes; 0 where they are not counted yet
	unitOf   []int     // the unit that each message is of, which is taken or left as one
	taken    map[int]bool
	claims   []claim // the first first
}

// claim is a reason to take a unit. It may have several.
type claim struct {
	unit    int
	grade   grade
	place   int  // within its grade
	history bool // as one of the newest messages: only where all that are newer are taken
}

// grade says how soon a unit is taken.
type grade int

const (
	gradeNewest  grade = iota // the newest message
	gradeWorking              // working memory
	gradeBest                 // history by its age, and hits by their rank
	gradeAround               // what is around hits
)

func (c claim) compare(other claim) int {
	return cmp.Or(cmp.Compare(c.grade, other.grade), cmp.Compare(c.place, other.place))
}

// newPack takes messages in their order.
func newPack(turn Turn, messages []Message, split bool) *pack {
	p := &pack{turn: turn, messages: messages, tokens: make([]int, len(messages)), taken: make(map[int]bool)}
	p.unitOf = toolUnits(messages, split)
	age := 0
	for i, message := range slices.Backward(messages) {
		if slices.Contains(message.Explain.Reasons, ReasonPage) {
			age++
		}
		p.claims = append(p.claims, claimsOf(message.Explain, p.unitOf[i], age)...)
	}
	slices.Reverse(p.claims) // of several that are equal the oldest is the first
	slices.SortStableFunc(p.claims, claim.compare)
	return p
}

// claimsOf gives the claims that a message has for its unit; age counts those of the
// page from the newest, which is 1.
func claimsOf(why *Explanation, unit, age int) []claim {
	var claims []claim
	if slices.Contains(why.Reasons, ReasonWorkingMemory) {
		return []claim{{unit: unit, grade: gradeWorking}}
	}
	if slices.Contains(why.Reasons, ReasonPage) {
		history := claim{unit: unit, grade: gradeBest, place: 2 * age, history: true}
		if age == 1 {
			history.grade = gradeNewest
		}
		claims = append(claims, history)
	}
	if why.Hit != nil {
		claims = append(claims, claim{unit: unit, grade: gradeBest, place: 2*why.Hit.Rank + 1})
	}
	if len(claims) == 0 {
		claims = append(claims, claim{unit: unit, grade: gradeAround, place: max(why.Offset, -why.Offset)})
	}
	return claims
}

// toolUnits gives the unit of each message: its own, or one with all that share tool
// calls with it.
func toolUnits(messages []Message, split bool) []int {
	units := make([]int, len(messages))
	unitOf := make(map[string]int) // by thread and tool call
	for i, message := range messages {
		units[i] = i
		if split {
			continue
		}
		calls, results := toolPairs(message.Content)
		for _, id := range slices.Concat(calls, results) {
			id = message.ThreadID + "\x00" + id
			if with, known := unitOf[id]; known {
				join(units, with, i)
			}
			unitOf[id] = i
		}
	}
	return units
}

// join makes one unit of those of two messages.
func join(units []int, a, b int) {
	from, to := units[b], units[a]
	for i, unit := range units {
		if unit == from {
			units[i] = to
		}
	}
}

// fill takes what there is room for; all of it where maxTokens is 0.
func (p *pack) fill(maxTokens int) (Context, error) {
	var out Context
	left := make(map[int]bool)
	broken := false // the history has a gap: what is older would be out of place
	for n, c := range p.claims {
		if p.taken[c.unit] || broken && c.history {
			continue
		}
		if left[c.unit] {
			broken = broken || c.history
			continue
		}
		p.taken[c.unit] = true
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
		p.taken[c.unit], left[c.unit] = false, true
		broken = broken || c.history
	}
	for i, message := range p.messages {
		if !p.taken[p.unitOf[i]] {
			out.Dropped = append(out.Dropped, message.ID)
		}
	}
	return out, nil
}

// build puts together what is taken, and counts its tokens.
func (p *pack) build() (messages []Message, tokens int, err error) {
	var first, own, others []Message
	for i, message := range p.messages {
		if !p.taken[p.unitOf[i]] {
			continue
		}
		message.Recalled = true
		if message.ThreadID != p.turn.ThreadID {
			others = append(others, message)
			continue
		}
		if p.tokens[i] == 0 {
			if p.tokens[i], err = tokensOf(message); err != nil {
				return nil, 0, err
			}
		}
		tokens += p.tokens[i]
		if slices.Contains(message.Explain.Reasons, ReasonWorkingMemory) {
			first = append(first, message)
		} else {
			own = append(own, message)
		}
	}
	if len(others) > 0 {
		remembered := rememberedMessage(others, p.turn)
		remembered.Explain = &Explanation{Reasons: reasonsOf(others)}
		first = append(first, remembered)
		more, err := tokensOf(remembered)
		if err != nil {
			return nil, 0, err
		}
		tokens += more
	}
	return slices.Concat(first, own), tokens, nil
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

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
	out, err := newPack(turn, messages, in.SplitToolPairs).fill(ctx, in.MaxTokens)
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
	counts   []counts  // of each message
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
	p := &pack{turn: turn, messages: messages, counts: make([]counts, len(messages)), taken: make(map[int]bool)}
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

// counts are the tokens that a message takes: as it is or, of another thread, as a line
// of what is remembered.
type counts struct {
	done    bool
	message int
	// heading says which day the line is of; empty where there is no line.
	heading       string
	headingTokens int
	// line is with the newline at its end, and lastOfDay with that of the next heading:
	// a tokenizer may take both for one token, but nothing together with what follows.
	line, lastOfDay int
}

func countsOf(message Message, ofTurn bool) (counts, error) {
	c := counts{done: true}
	var err error
	if ofTurn {
		c.message, err = tokensOf(message)
		return c, err
	}
	line := rememberedLine(message)
	if line == "" {
		return c, nil
	}
	c.heading = rememberedHeading(message)
	if c.headingTokens, err = tokensIn(c.heading); err != nil {
		return c, err
	}
	if c.line, err = tokensIn(line); err != nil {
		return c, err
	}
	c.lastOfDay, err = tokensIn(line + "\n")
	return c, err
}

// fill takes what there is room for; all of it where maxTokens is 0.
func (p *pack) fill(ctx context.Context, maxTokens int) (Context, error) {
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
		if maxTokens == 0 {
			continue
		}
		tokens, err := p.count()
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return Context{}, err
		}
		if tokens <= maxTokens {
			continue
		}
		if n == 0 {
			return Context{}, tooFewTokens(tokens)
		}
		p.taken[c.unit], left[c.unit] = false, true
		broken = broken || c.history
	}
	tokens, err := p.count()
	out := Context{Messages: p.build(), Tokens: tokens}
	for i, message := range p.messages {
		if !p.taken[p.unitOf[i]] {
			out.Dropped = append(out.Dropped, message.ID)
		}
	}
	return out, err
}

// count counts the tokens of what build gives, without building it.
func (p *pack) count() (int, error) {
	total := 0
	var last *counts // of the last line that is remembered
	remembered := false
	for i, message := range p.messages {
		if !p.taken[p.unitOf[i]] {
			continue
		}
		c := &p.counts[i]
		ofTurn := message.ThreadID == p.turn.ThreadID
		if !c.done {
			var err error
			if *c, err = countsOf(message, ofTurn); err != nil {
				return 0, err
			}
		}
		total += c.message
		remembered = remembered || !ofTurn
		if c.heading == "" {
			continue
		}
		switch {
		case last == nil:
			total += c.headingTokens
		case last.heading != c.heading:
			total += last.lastOfDay + c.headingTokens
		default:
			total += last.line
		}
		last = c
	}
	if !remembered {
		return total, nil
	}
	begins := rememberedBegins
	if last != nil {
		begins += "\n" // of the first heading
		total += last.line
	}
	frame, err := tokensIn(begins, recalledEnds)
	return total + frame + messageTokens, err
}

// build puts together what is taken.
func (p *pack) build() []Message {
	var first, own, others []Message
	for i, message := range p.messages {
		message.Recalled = true
		switch {
		case !p.taken[p.unitOf[i]]:
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
		first = append(first, remembered)
	}
	return slices.Concat(first, own)
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

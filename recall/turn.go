package recall

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Turn is one turn of an agent: what it is about to send to its model, or what came
// of it.
type Turn struct {
	Messages []NewMessage
	// ThreadID is required; the thread need not be there yet. ResourceID is its
	// owner.
	ThreadID   string
	ResourceID string
	// Config says what to recall; see [Memory.AgentConfig].
	Config Config
	// AgentID is who the turn is saved for; see [ForAgent].
	AgentID string
}

// Recalled is what is put before a turn's messages.
type Recalled struct {
	// Messages are marked as recalled: saved with the turn they are left out.
	Messages []Message
	// Degraded says that the embedder was out of reach, and that the hits were
	// found by words alone.
	Degraded bool
}

// The ids of what is put before a turn and is no message of a thread.
const (
	recalledID    = "recalled"
	instructionID = "working-memory"
)

// RecallForTurn finds what answers the turn's last user message: of its own thread
// as the messages they are, with their context, oldest first, and of other threads
// of its user as one system message before them. What the turn has already is left
// out. It is Mastra's SemanticRecall processor, on input.
func (m *Memory) RecallForTurn(ctx context.Context, turn Turn) (Recalled, error) {
	if err := m.checkTurn(turn); err != nil {
		return Recalled{}, err
	}
	search := turn.Config.SearchFor(questionOf(turn.Messages))
	if search == nil {
		return Recalled{}, nil
	}
	none := 0
	result, err := m.recallMaybe(ctx, Request{
		ThreadID: turn.ThreadID, ResourceID: turn.ResourceID, PerPage: &none, Search: search, KeepToolPairs: true,
	})
	if err != nil {
		return Recalled{}, err
	}
	own, others := turn.split(result.Messages)
	messages := own
	if len(others) > 0 {
		messages = append([]Message{rememberedMessage(others, turn)}, own...)
	}
	return Recalled{Messages: messages, Degraded: result.Degraded}, nil
}

// HistoryForTurn gives the newest messages of the turn's thread, oldest first, as
// many as the configuration says, with the calls of all tool results among them.
// What the turn has already, and system messages, are left out. It is Mastra's
// MessageHistory processor, on input.
func (m *Memory) HistoryForTurn(ctx context.Context, turn Turn) (Recalled, error) {
	if err := m.checkTurn(turn); err != nil {
		return Recalled{}, err
	}
	result, err := m.Recall(ctx, Request{
		ThreadID: turn.ThreadID, ResourceID: turn.ResourceID, LastMessages: turn.Config.LastMessages,
		KeepToolPairs: true, SkipTotal: true,
	})
	if codeOf(err) == CodeNotFound { // a first turn
		return Recalled{}, nil
	}
	if err != nil {
		return Recalled{}, err
	}
	own, _ := turn.split(result.Messages)
	own = slices.DeleteFunc(own, func(message Message) bool { return message.Role == "system" })
	return Recalled{Messages: own}, nil
}

// InstructionForTurn gives one system message: how the model is to use the working
// memory, and what is in it. None where that is not enabled. It is Mastra's
// WorkingMemory processor, on input.
func (m *Memory) InstructionForTurn(ctx context.Context, turn Turn) (Recalled, error) {
	if err := m.checkTurn(turn); err != nil {
		return Recalled{}, err
	}
	config := turn.Config.WorkingMemory
	if config == nil || !config.Enabled {
		return Recalled{}, nil
	}
	row, err := m.workingMemory(ctx, WorkingMemoryOf{ThreadID: turn.ThreadID, ResourceID: turn.ResourceID, Config: *config})
	if err != nil {
		return Recalled{}, err
	}
	turn.ResourceID = cmp.Or(row.OwnerID, m.caller.owner(turn.ResourceID)) // the turn need not name it
	memory := workingMemoryOf(row)
	return Recalled{Messages: []Message{systemMessage(instructionID, config.Instruction(memory.Text), memory.UpdatedAt, turn)}}, nil
}

// SaveTurn stores what a turn has brought, and gives it as stored: without system
// messages, what was recalled, tool calls that have not come through whole, and the
// tool calls and tags that working memory is updated by. Messages must have ids, so
// that a turn can be saved again. A thread that is not there is created. It is
// Mastra's processors on output: SemanticRecall's and MessageHistory's.
func (m *Memory) SaveTurn(ctx context.Context, turn Turn) ([]Message, error) {
	if err := m.checkTurn(turn); err != nil {
		return nil, err
	}
	c := m.check()
	c.requiredID("resourceId", turn.ResourceID)
	var kept []NewMessage
	for i, message := range turn.Messages {
		c.requiredID(itemField("messages", i, "id"), message.ID)
		if message.ThreadID != "" && message.ThreadID != turn.ThreadID {
			c.fail(itemField("messages", i, "threadId"), "is not the turn's thread")
		}
		content, keep := persistedContent(message.Content)
		if message.Role == "system" || message.Recalled || !keep {
			continue
		}
		message.Content, message.ThreadID, message.ResourceID = content, turn.ThreadID, turn.ResourceID
		kept = append(kept, message)
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	return m.SaveMessages(ctx, kept, true, ForAgent(turn.AgentID))
}

func (m *Memory) checkTurn(turn Turn) error {
	c := m.check()
	c.requiredID("threadId", turn.ThreadID)
	c.id("resourceId", turn.ResourceID)
	if len(turn.Messages) > c.limits.Messages {
		c.fail("messages", "has more than %d messages", c.limits.Messages)
	}
	return c.err()
}

// recallMaybe recalls in a thread that may not be there yet: then in the others of
// its user.
func (m *Memory) recallMaybe(ctx context.Context, in Request) (Result, error) {
	in.ResourceID = m.caller.owner(in.ResourceID)
	result, err := m.Recall(ctx, in)
	if codeOf(err) != CodeNotFound {
		return result, err
	}
	if in.ResourceID == "" || in.Search == nil || in.Search.Scope == ScopeThread {
		return Result{}, nil
	}
	in.ThreadID = ""
	return m.Recall(ctx, in)
}

// split parts the messages that the turn does not have yet into those of its thread
// and others.
func (t Turn) split(messages []Message) (own, others []Message) {
	has := make(map[string]bool, len(t.Messages))
	for _, message := range t.Messages {
		has[message.ID] = true
	}
	for _, message := range messages {
		switch {
		case has[message.ID]:
		case message.ThreadID == t.ThreadID:
			message.Recalled = true
			own = append(own, message)
		default:
			others = append(others, message)
		}
	}
	return own, others
}

// questionOf gives what the last message of a user says; empty where none says
// anything.
func questionOf(messages []NewMessage) string {
	for _, message := range slices.Backward(messages) {
		if message.Role != "user" {
			continue
		}
		said := Message{Content: formatContent(message.Content)}.Text()
		if said = strings.TrimSpace(withoutRecalled(said)); said != "" {
			return said
		}
	}
	return ""
}

// rememberedMessage puts messages of other threads, oldest first, into one system
// message: a line each, under the days they are from. The layout is Mastra's.
func rememberedMessage(messages []Message, turn Turn) Message {
	var text strings.Builder
	text.WriteString(rememberedBegins)
	heading := ""
	for _, message := range messages {
		line := rememberedLine(message)
		if line == "" {
			continue
		}
		if today := rememberedHeading(message); today != heading {
			heading = today
			text.WriteString("\n" + heading)
		}
		text.WriteString(line)
	}
	text.WriteString(recalledEnds)
	turn.ResourceID = messages[0].ResourceID // the turn need not name it
	return systemMessage(recalledID, text.String(), messages[len(messages)-1].CreatedAt, turn)
}

const rememberedBegins = "Remembered from other conversations with this user:\n" + recalledBegins + "\n"

// rememberedHeading is what stands above the messages of a day.
func rememberedHeading(message Message) string {
	return "the following messages are from " + message.CreatedAt.UTC().Format("2006, Jan, 2") + "\n"
}

// rememberedLine is the line of a message; empty where it says nothing.
func rememberedLine(message Message) string {
	said := strings.TrimSpace(withoutRecalled(message.Text()))
	if said == "" {
		return ""
	}
	at := message.CreatedAt.UTC().Format("3:04 PM")
	return fmt.Sprintf("Message from previous conversation at %s: %s: %s\n", at, speaker(message.Role), said)
}

func speaker(role string) string { return strings.ToUpper(role[:1]) + role[1:] }

// systemMessage is a message for the model that no thread has. What has no time is
// of the first one there is.
func systemMessage(id, text string, at time.Time, turn Turn) Message {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // of a string
	}
	if at.IsZero() {
		at = time.Unix(0, 0).UTC()
	}
	return Message{
		ID: id, ThreadID: turn.ThreadID, ResourceID: turn.ResourceID, Role: "system", Content: formatContent(quoted),
		CreatedAt: at, Recalled: true,
	}
}

// The tags between which working memory is put before models, and between which those
// without tools give it back.
const (
	workingMemoryBegins = "<working_memory>"
	workingMemoryEnds   = "</working_memory>"
)

// persistedContent gives what of a message's content is kept, and whether anything
// is: not the tool calls and tags that working memory is updated by, nor tool calls
// that are still being written.
func persistedContent(content json.RawMessage) (json.RawMessage, bool) {
	if text, ok := jsonText(content); ok {
		text, changed := withoutWorkingMemory(text)
		if !changed {
			return content, true
		}
		return jsonOf(text), text != ""
	}
	read := members(content)
	if read == nil {
		return content, true
	}
	if text, ok := jsonText(read["content"]); ok {
		if text, changed := withoutWorkingMemory(text); changed {
			content = withMember(content, "content", jsonOf(text))
		}
	}
	var parts []json.RawMessage
	if json.Unmarshal(read["parts"], &parts) != nil || len(parts) == 0 {
		return content, true
	}
	kept := make([]json.RawMessage, 0, len(parts))
	changed := false
	for _, part := range parts {
		persisted := persistedPart(part)
		changed = changed || !bytes.Equal(persisted, part)
		if persisted != nil {
			kept = append(kept, persisted)
		}
	}
	if changed {
		content = withMember(content, "parts", jsonOf(kept))
	}
	return content, len(kept) > 0
}

// persistedPart gives a part as it is kept; nil for not at all.
func persistedPart(part json.RawMessage) json.RawMessage {
	read := members(part)
	kind, _ := jsonText(read["type"])
	switch kind {
	case "text":
		text, ok := jsonText(read["text"])
		if text, changed := withoutWorkingMemory(text); ok && changed {
			if text == "" {
				return nil
			}
			return withMember(part, "text", jsonOf(text))
		}
	case "tool-invocation":
		call := members(read["toolInvocation"])
		name, _ := jsonText(call["toolName"])
		state, _ := jsonText(call["state"])
		if name == WorkingMemoryToolName || state == "partial-call" {
			return nil
		}
	case "tool-" + WorkingMemoryToolName:
		return nil
	}
	return part
}

// withoutWorkingMemory leaves the blocks of working memory out of a text, and says
// whether there were any.
func withoutWorkingMemory(text string) (string, bool) {
	var kept strings.Builder
	changed := false
	for rest := text; ; {
		before, after, found := strings.Cut(rest, workingMemoryBegins)
		_, behind, closed := strings.Cut(after, workingMemoryEnds)
		if !found || !closed {
			kept.WriteString(rest)
			break
		}
		kept.WriteString(before)
		rest, changed = behind, true
	}
	if !changed {
		return text, false
	}
	return strings.TrimSpace(kept.String()), true
}

func jsonOf(value any) json.RawMessage {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // of strings and what was JSON before
	}
	return bytes.TrimSpace(b.Bytes())
}

// withMember gives an object with another value for one of its members. The others
// stay as they were written, in an order of their own.
func withMember(object json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	changed := members(object)
	changed[name] = value
	return jsonOf(changed)
}

package recall

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgrecall/pgrecall/dbgen"
)

// Message is one turn of a thread, in Mastra's DB format.
type Message struct {
	ID         string
	ThreadID   string
	ResourceID string
	Role       string
	// Type is what the caller gave ("v2", "text", ...); empty when none was.
	Type string
	// Content is a JSON object {format: 2, parts: [...], ...}.
	Content json.RawMessage
	// CreatedAt has millisecond precision.
	CreatedAt time.Time
	// Explain says why a recall returned the message; nil unless asked for.
	Explain *Explanation
	// Recalled marks what is put before a turn of an agent, and no part of it.
	Recalled bool
}

// NewMessage is a message to save.
type NewMessage struct {
	// ID is generated (UUIDv7) when empty. One that exists in the same thread is
	// updated in place; one that lives in another thread is a conflict.
	ID         string
	ThreadID   string
	ResourceID string
	Role       string
	Type       string
	// CreatedAt is the database's time when zero, and cut to milliseconds.
	CreatedAt time.Time
	// Content is a JSON object, or a JSON string, which is stored as a
	// format 2 object with one text part.
	Content json.RawMessage
	// Recalled says that it came from the memory: it is not stored again.
	Recalled bool
}

// MessageUpdate changes one message; empty fields stay as they are.
type MessageUpdate struct {
	ID   string
	Role string
	Type string
	// Content is merged key by key into the stored content, and its metadata
	// key by key into the stored metadata.
	Content json.RawMessage
}

// SaveMessages stores messages, all or none, and gives them as stored, in the
// order given; an id given twice counts once, its last form at its first place.
// What came from the memory is left out.
// Threads that do not exist are created with createThreads, and CodeNotFound
// without. CodeConflict when an id lives in another thread, CodeForbidden when a
// thread belongs to another resource.
func (m *Memory) SaveMessages(
	ctx context.Context, messages []NewMessage, createThreads bool, options ...SaveOption,
) ([]Message, error) {
	var of saveOptions
	for _, option := range options {
		option(&of)
	}
	if err := m.checkNewMessages(messages); err != nil {
		return nil, err
	}
	stored, fields, err := distinct(messages)
	if err != nil {
		return nil, err
	}
	if len(stored) == 0 {
		return stored, nil
	}
	titles, err := m.titlesOf(ctx, stored, of)
	if err != nil {
		return nil, err
	}
	if createThreads {
		if err := m.reachable(ownersOf(stored)...); err != nil {
			return nil, err
		}
	}
	err = m.write(ctx, func(tx pgx.Tx) error {
		if err := m.lockThreads(ctx, tx, stored, createThreads, of); err != nil {
			return err
		}
		if err := m.storeMessages(ctx, tx, stored, fields); err != nil {
			return err
		}
		return m.promiseTitles(ctx, tx, titles)
	})
	if err != nil {
		return nil, err
	}
	return stored, nil
}

func ownersOf(messages []Message) []string {
	owners := make([]string, len(messages))
	for i, message := range messages {
		owners[i] = message.ResourceID
	}
	return owners
}

// timeOfTheDatabase stands in a statement for "now". It is outside the years that a
// message can be of.
var timeOfTheDatabase = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)

// distinct gives the messages to store, each id once, and the field in the request
// that each comes from. One id for messages of two threads is a conflict.
func distinct(messages []NewMessage) (stored []Message, fields []string, err error) {
	stored = make([]Message, 0, len(messages))
	places := make(map[string]int, len(messages))
	for i, in := range messages {
		if in.Recalled {
			continue
		}
		if in.ID == "" {
			in.ID = newID()
		}
		message := Message{
			ID: in.ID, ThreadID: in.ThreadID, ResourceID: in.ResourceID, Role: in.Role, Type: in.Type,
			Content: formatContent(in.Content), CreatedAt: in.CreatedAt.UTC().Truncate(time.Millisecond),
		}
		if in.CreatedAt.IsZero() {
			message.CreatedAt = timeOfTheDatabase
		}
		field := itemField("messages", i, "")
		if place, again := places[in.ID]; again {
			if stored[place].ThreadID != in.ThreadID {
				return nil, nil, idInAnotherThread(field)
			}
			stored[place], fields[place] = message, field
			continue
		}
		places[in.ID] = len(stored)
		stored, fields = append(stored, message), append(fields, field)
	}
	return stored, fields, nil
}

func idInAnotherThread(field string) *Error {
	return &Error{
		Code:    CodeConflict,
		Message: "A message with this id exists already in another thread",
		Issues:  []Issue{{Field: joinField(field, "id"), Message: "is the id of a message in another thread"}},
	}
}

// checkNewMessages checks owners first and with the reference's words, then each
// field.
func (m *Memory) checkNewMessages(messages []NewMessage) error {
	c := m.check()
	if len(messages) > c.limits.Messages {
		c.fail("messages", "has more than %d messages", c.limits.Messages)
		return c.err()
	}
	ownerless := 0
	owners := make(map[string]string)
	for _, message := range messages {
		if message.ThreadID == "" || message.ResourceID == "" {
			ownerless++
			continue
		}
		if owner, seen := owners[message.ThreadID]; seen && owner != message.ResourceID {
			return errorf(CodeInvalid, "All messages for the same threadId must use the same resourceId.")
		}
		owners[message.ThreadID] = message.ResourceID
	}
	if ownerless > 0 {
		return errorf(CodeInvalid,
			"All messages must have threadId and resourceId fields. Found %d invalid message(s).", ownerless)
	}
	for i, message := range messages {
		c.newMessage(itemField("messages", i, ""), message)
	}
	return c.err()
}

func (c *checker) newMessage(field string, message NewMessage) {
	c.id(joinField(field, "id"), message.ID)
	c.id(joinField(field, "threadId"), message.ThreadID)
	c.id(joinField(field, "resourceId"), message.ResourceID)
	c.requiredID(joinField(field, "role"), message.Role)
	c.id(joinField(field, "type"), message.Type)
	if !message.CreatedAt.IsZero() {
		c.time(joinField(field, "createdAt"), &message.CreatedAt)
	}
	c.content(joinField(field, "content"), message.Content)
}

func (c *checker) content(field string, content json.RawMessage) {
	if len(content) == 0 {
		c.fail(field, "is required")
		return
	}
	if !c.json(field, content, c.limits.ContentBytes) {
		return
	}
	if kind := jsonKind(content); kind != '{' && kind != '"' {
		c.fail(field, "must be an object or a string")
	}
}

// formatContent gives content as stored: a plain string becomes a format 2
// object with one text part, and keeps its text under "content" too, as the
// reference does.
func formatContent(content json.RawMessage) json.RawMessage {
	if jsonKind(content) != '"' {
		return content
	}
	return slices.Concat(
		[]byte(`{"format":2,"parts":[{"type":"text","text":`), content, []byte(`}],"content":`), content, []byte(`}`),
	)
}

// lockThreads locks the threads of messages and checks their owners.
func (m *Memory) lockThreads(ctx context.Context, tx pgx.Tx, messages []Message, create bool, of saveOptions) error {
	owners := make(map[string]string)
	for _, message := range messages {
		owners[message.ThreadID] = message.ResourceID
	}
	var locked []dbgen.ThreadLockManyRow
	var err error
	if ids := slices.Sorted(maps.Keys(owners)); create {
		locked, err = m.lockOrCreateEach(ctx, tx, ids, owners, of)
	} else if locked, err = m.lockMany(ctx, tx, ids...); err == nil && len(locked) < len(ids) {
		err = threadNotFound()
	}
	if err != nil {
		return err
	}
	for _, thread := range locked {
		if owners[thread.ID] != thread.ResourceID {
			return wrongResource()
		}
	}
	return nil
}

// lockOrCreateEach locks threads, those that do not exist by creating them. One after
// the other, by id: who creates one before it has locked those below would have
// others wait for it that it waits for.
func (m *Memory) lockOrCreateEach(
	ctx context.Context, tx pgx.Tx, ids []string, owners map[string]string, of saveOptions,
) ([]dbgen.ThreadLockManyRow, error) {
	agentID := of.agentID
	if c := m.check(); agentID != "" {
		if c.id("agentId", agentID); c.err() != nil {
			agentID = "" // one that no agent can have is none's
		}
	}
	locked := make([]dbgen.ThreadLockManyRow, 0, len(ids))
	for _, id := range ids {
		thread, err := m.lockOrCreate(ctx, tx, dbgen.ThreadCreateMissingParams{ID: id, ResourceID: owners[id], AgentID: agentID})
		if err != nil {
			return nil, err
		}
		locked = append(locked, thread)
	}
	return locked, nil
}

// lockOrCreate locks a thread, and creates it where it does not exist, again and again
// should others delete it meanwhile.
func (m *Memory) lockOrCreate(ctx context.Context, tx pgx.Tx, in dbgen.ThreadCreateMissingParams) (none dbgen.ThreadLockManyRow, err error) {
	for range lockAttempts {
		if err := m.queries.ThreadCreateMissing(ctx, tx, in); err != nil {
			return none, err
		}
		locked, err := m.lockMany(ctx, tx, in.ID)
		if err != nil {
			return none, err
		}
		if len(locked) > 0 {
			return locked[0], nil
		}
		if !m.caller.Bound() {
			continue // others have deleted it: there is none that it does not reach
		}
		if err := m.takenOrVanished(ctx, tx, in.ID, in.ResourceID); !errors.Is(err, errThreadVanished) {
			return none, err
		}
	}
	return none, errThreadVanished
}

// lockMany locks those of threads that the caller reaches.
func (m *Memory) lockMany(ctx context.Context, tx pgx.Tx, ids ...string) ([]dbgen.ThreadLockManyRow, error) {
	return m.queries.ThreadLockMany(ctx, tx, dbgen.ThreadLockManyParams{Ids: ids, Reach: m.reach()})
}

// lockManyOfMessages locks the threads of those of messages that the caller reaches.
func (m *Memory) lockManyOfMessages(ctx context.Context, tx pgx.Tx, messageIDs []string) error {
	_, err := m.queries.ThreadLockManyOfMessages(ctx, tx, dbgen.ThreadLockManyOfMessagesParams{MessageIds: messageIDs, Reach: m.reach()})
	return err
}

// lockAttempts bounds how often a thread is created that others delete.
const lockAttempts = 20

// storeMessages writes messages, whose threads are locked, and fills in their
// createdAt as stored. fields names each in the request.
func (m *Memory) storeMessages(ctx context.Context, tx pgx.Tx, messages []Message, fields []string) error {
	var params dbgen.MessageSaveManyParams
	for _, message := range messages {
		params.Ids = append(params.Ids, message.ID)
		params.ThreadIds = append(params.ThreadIds, message.ThreadID)
		params.Roles = append(params.Roles, message.Role)
		params.Types = append(params.Types, message.Type)
		params.Contents = append(params.Contents, message.Content)
		params.CreatedAts = append(params.CreatedAts, message.CreatedAt)
	}
	rows, err := m.queries.MessageSaveMany(ctx, tx, params)
	if err != nil {
		return err
	}
	var changed []written
	for i, row := range rows {
		if !row.Stored {
			return idInAnotherThread(fields[i])
		}
		messages[i].CreatedAt = row.CreatedAt.UTC()
		if row.Changed {
			changed = append(changed, written{
				id: messages[i].ID, threadID: messages[i].ThreadID, resourceID: messages[i].ResourceID,
				text: embeddedText(messages[i].Role, messages[i].Content), fresh: row.Fresh,
			})
		}
	}
	return m.embedWritten(ctx, tx, changed)
}

// UpdateMessages changes messages, all or none, and gives them as they are then.
// CodeNotFound when one does not exist. resourceID, when not empty, must own
// them; another's messages are as good as absent.
func (m *Memory) UpdateMessages(ctx context.Context, updates []MessageUpdate, resourceID string) ([]Message, error) {
	if err := m.checkUpdates(updates, resourceID); err != nil {
		return nil, err
	}
	messages := make([]Message, 0, len(updates))
	if len(updates) == 0 {
		return messages, nil
	}
	var params dbgen.MessageUpdateManyParams
	for _, update := range updates {
		content := formatContent(update.Content)
		if content == nil {
			content = json.RawMessage(`{}`)
		}
		params.Ids = append(params.Ids, update.ID)
		params.Roles = append(params.Roles, update.Role)
		params.Types = append(params.Types, update.Type)
		params.Contents = append(params.Contents, content)
	}
	params.ResourceID, params.Reach = resourceID, m.reach()
	err := m.write(ctx, func(tx pgx.Tx) error {
		if err := m.lockManyOfMessages(ctx, tx, params.Ids); err != nil {
			return err
		}
		rows, err := m.queries.MessageUpdateMany(ctx, tx, params)
		if err != nil {
			return err
		}
		if len(rows) < len(updates) {
			return errorf(CodeNotFound, "Message not found")
		}
		messages = messages[:0]
		var changed []written
		for i, row := range rows {
			if len(row.Content) > mergedSlack*m.limits.ContentBytes {
				return tooLarge(itemField("messages", i, "content"))
			}
			messages = append(messages, Message{
				ID: row.ID, ThreadID: row.ThreadID, ResourceID: row.ResourceID, Role: row.Role, Type: row.Type,
				Content: row.Content, CreatedAt: row.CreatedAt.UTC(),
			})
			if updates[i].changesText() {
				changed = append(changed, written{
					id: row.ID, threadID: row.ThreadID, resourceID: row.ResourceID, text: embeddedText(row.Role, row.Content),
				})
			}
		}
		return m.embedWritten(ctx, tx, changed)
	})
	if err != nil {
		return nil, err
	}
	return messages, nil
}

// changesText says whether an update may change what is embedded of its message.
func (u MessageUpdate) changesText() bool {
	content := members(formatContent(u.Content))
	metadata := members(content["metadata"])
	return u.Role != "" || content["parts"] != nil || content["content"] != nil ||
		metadata["name"] != nil || content["metadata"] != nil && metadata == nil
}

func (m *Memory) checkUpdates(updates []MessageUpdate, resourceID string) error {
	c := m.check()
	c.id("resourceId", resourceID)
	if len(updates) > c.limits.Messages {
		c.fail("messages", "has more than %d messages", c.limits.Messages)
		return c.err()
	}
	seen := make(map[string]bool, len(updates))
	for i, update := range updates {
		field := itemField("messages", i, "")
		c.requiredID(joinField(field, "id"), update.ID)
		c.id(joinField(field, "role"), update.Role)
		c.id(joinField(field, "type"), update.Type)
		if len(update.Content) > 0 {
			c.content(joinField(field, "content"), update.Content)
		}
		if seen[update.ID] {
			c.fail(joinField(field, "id"), "stands here twice")
		}
		seen[update.ID] = true
	}
	return c.err()
}

// DeleteMessages removes messages and says how many there were. Unknown ids, and
// where resourceID is given those of other owners, count nothing.
func (m *Memory) DeleteMessages(ctx context.Context, ids []string, resourceID string) (int64, error) {
	c := m.check()
	c.id("resourceId", resourceID)
	if len(ids) > c.limits.Messages {
		c.fail("messageIds", "has more than %d ids", c.limits.Messages)
		return 0, c.err()
	}
	for i, id := range ids {
		c.requiredID(itemField("messageIds", i, ""), id)
	}
	if err := c.err(); err != nil {
		return 0, err
	}
	ids = append([]string{}, ids...)
	var n int64
	err := m.write(ctx, func(tx pgx.Tx) (err error) {
		if err := m.lockManyOfMessages(ctx, tx, ids); err != nil {
			return err
		}
		n, err = m.queries.MessageDeleteMany(ctx, tx, dbgen.MessageDeleteManyParams{Ids: ids, ResourceID: resourceID, Reach: m.reach()})
		return err
	})
	return n, err
}

// DeleteThreadMessages empties a thread and says how many messages it had.
func (m *Memory) DeleteThreadMessages(ctx context.Context, threadID, resourceID string) (int64, error) {
	if err := m.checkThreadID(threadID, resourceID); err != nil {
		return 0, err
	}
	var n int64
	err := m.write(ctx, func(tx pgx.Tx) (err error) {
		locked, err := m.lockMany(ctx, tx, threadID)
		if err != nil {
			return err
		}
		if _, err := m.owned(ctx, tx, threadID, resourceID); err != nil {
			return err
		}
		if len(locked) == 0 { // it was created after the lock looked for it
			return errThreadVanished
		}
		n, err = m.queries.MessageDeleteByThread(ctx, tx, threadID)
		return err
	})
	return n, err
}

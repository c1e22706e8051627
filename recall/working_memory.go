package recall

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pgrecall/pgrecall/dbgen"
	"github.com/pgrecall/pgrecall/recall/strictjson"
)

// KeptVersions is how many versions of a working memory are kept, the current one
// included.
const KeptVersions = 100

// WorkingMemoryOf names a working memory: that of a thread, or of its owner.
type WorkingMemoryOf struct {
	// ThreadID is required. With ScopeResource any thread of the owner will do.
	ThreadID string
	// ResourceID, when given, must own the thread: CodeForbidden else.
	ResourceID string
	// Config says which of the two (Scope), and what a text has to be (Schema).
	// Whether it is Enabled makes no difference.
	Config WorkingMemoryConfig
}

// WorkingMemory is a version of a working memory.
type WorkingMemory struct {
	// Version counts the changes, from 1; 0 where there is none yet.
	Version int64
	// Text is Markdown or, where a schema is configured, JSON.
	Text string
	// UpdatedAt is when the version came to be; zero where there is none yet.
	UpdatedAt time.Time
	// ThreadExists is false where a thread is asked for that is not there yet.
	ThreadExists bool
}

// WorkingMemoryUpdate changes a working memory by one of Text and Merge.
type WorkingMemoryUpdate struct {
	WorkingMemoryOf
	// Text stands in place of what is there. Where a schema is configured it is a
	// JSON document that the schema admits. An empty text clears the memory.
	Text *string
	// Merge is a JSON merge patch (RFC 7396), an object in which a null removes its
	// key. It needs a schema, which must admit the outcome. Text that is no JSON
	// object, from before there was a schema, counts as {}.
	Merge json.RawMessage
	// Versions are those that the change is meant for, 0 being that of none; without
	// them the last writer wins.
	Versions []int64
}

// WorkingMemory gives a working memory as it is. A thread that does not exist yet has
// none, but the resource may have one.
func (m *Memory) WorkingMemory(ctx context.Context, of WorkingMemoryOf) (WorkingMemory, error) {
	row, err := m.workingMemory(ctx, of)
	return workingMemoryOf(row), err
}

func workingMemoryOf(row dbgen.WorkingMemoryGetRow) WorkingMemory {
	memory := WorkingMemory{Version: row.Version, Text: row.Content, ThreadExists: row.OwnerID != ""}
	if row.Version > 0 {
		memory.UpdatedAt = row.UpdatedAt.UTC()
	}
	return memory
}

func (m *Memory) workingMemory(ctx context.Context, of WorkingMemoryOf) (dbgen.WorkingMemoryGetRow, error) {
	if err := m.checkThreadID(of.ThreadID, of.ResourceID); err != nil {
		return dbgen.WorkingMemoryGetRow{}, err
	}
	row, err := m.queries.WorkingMemoryGet(ctx, m.db, dbgen.WorkingMemoryGetParams{
		ThreadID: of.ThreadID, OfThread: of.ofThread(), ResourceID: m.caller.owner(of.ResourceID), Reach: m.reach(),
	})
	switch {
	case err != nil:
		return dbgen.WorkingMemoryGetRow{}, databaseError(err)
	case of.ResourceID != "" && row.OwnerID != "" && row.OwnerID != of.ResourceID:
		return dbgen.WorkingMemoryGetRow{}, wrongResource()
	}
	return row, nil
}

func (of WorkingMemoryOf) ofThread() bool { return of.Config.Scope == ScopeThread }

// WorkingMemoryVersions gives versions of a working memory, the newest first: those
// before one (0: all that are kept), up to perPage. CodeNotFound without the thread.
func (m *Memory) WorkingMemoryVersions(ctx context.Context, of WorkingMemoryOf, before int64, perPage int) ([]WorkingMemory, error) {
	c := m.check()
	c.between("perPage", perPage, 1, c.limits.PerPage)
	if err := c.err(); err != nil {
		return nil, err
	}
	current, err := m.workingMemory(ctx, of)
	if err == nil && current.OwnerID == "" {
		err = threadNotFound()
	}
	if err != nil {
		return nil, err
	}
	if before == 0 {
		before = math.MaxInt64
	}
	rows, err := m.queries.WorkingMemoryVersionList(ctx, m.db, dbgen.WorkingMemoryVersionListParams{
		WorkingMemoryID: current.ID, Before: before, MaxRows: int64(perPage), Reach: m.reach(),
	})
	versions := make([]WorkingMemory, len(rows))
	for i, row := range rows {
		versions[i] = WorkingMemory{Version: row.Version, Text: row.Content, UpdatedAt: row.CreatedAt.UTC(), ThreadExists: true}
	}
	return versions, databaseError(err)
}

// UpdateWorkingMemory changes a working memory and gives it as it is then. What is
// there already makes no new version. CodeNotFound without the thread,
// CodeVersionMismatch where it has none of Versions, CodeUnprocessable where the schema does
// not admit the outcome; nothing is changed then.
func (m *Memory) UpdateWorkingMemory(ctx context.Context, in WorkingMemoryUpdate) (WorkingMemory, error) {
	schema, err := m.checkWorkingMemoryUpdate(in)
	if err != nil {
		return WorkingMemory{}, err
	}
	return m.changeWorkingMemory(ctx, in.WorkingMemoryOf, in.Versions, func(_ pgx.Tx, _ string, current string) (string, error) {
		if in.Text != nil {
			return m.replacement(*in.Text, schema)
		}
		return m.merged(current, in.Merge, schema)
	})
}

// RestoreWorkingMemory gives a working memory the text of an earlier version, as a
// new one. CodeNotFound where that version was not, or is forgotten;
// CodeUnprocessable where it is from before a schema that does not admit it.
func (m *Memory) RestoreWorkingMemory(ctx context.Context, of WorkingMemoryOf, version int64, versions []int64) (WorkingMemory, error) {
	c := m.check()
	c.requiredID("threadId", of.ThreadID)
	c.id("resourceId", of.ResourceID)
	schema := c.memorySchema(of.Config)
	if err := c.err(); err != nil {
		return WorkingMemory{}, err
	}
	return m.changeWorkingMemory(ctx, of, versions, func(tx pgx.Tx, id string, _ string) (string, error) {
		old, err := m.queries.WorkingMemoryVersionGet(ctx, tx, dbgen.WorkingMemoryVersionGetParams{WorkingMemoryID: id, Version: version})
		if isNoRows(err) {
			return "", errorf(CodeNotFound, "Version not found")
		}
		if err != nil {
			return "", err
		}
		return m.replacement(old.Content, schema)
	})
}

// checkWorkingMemoryUpdate checks what does not depend on the text that is there, and
// gives the schema; nil where there is none.
func (m *Memory) checkWorkingMemoryUpdate(in WorkingMemoryUpdate) (*jsonschema.Schema, error) {
	c := m.check()
	c.requiredID("threadId", in.ThreadID)
	c.id("resourceId", in.ResourceID)
	switch {
	case (in.Text == nil) == (in.Merge == nil):
		c.fail("workingMemory", "is required, or merge in its place")
	case in.Text != nil:
		c.text("workingMemory", *in.Text, c.limits.WorkingMemoryBytes)
	case len(in.Config.Schema) == 0:
		c.fail("merge", "needs a schema in the agent's workingMemory")
	default:
		c.object("merge", in.Merge, c.limits.WorkingMemoryBytes)
	}
	schema := c.memorySchema(in.Config)
	return schema, c.err()
}

// memorySchema gives the schema of a configuration; nil where it has none. One that is
// stored has been checked, so that a bad one is the call's.
func (c *checker) memorySchema(config WorkingMemoryConfig) *jsonschema.Schema {
	if len(config.Schema) == 0 {
		return nil
	}
	return c.schema("memoryConfig.workingMemory.schema", config.Schema)
}

// replacement gives a text as it is stored: a document without the space around its
// values.
func (m *Memory) replacement(text string, schema *jsonschema.Schema) (string, error) {
	if schema == nil || text == "" {
		return text, nil
	}
	if err := m.admitted(text, schema); err != nil {
		return "", err
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, []byte(text))
	return compact.String(), err
}

func (m *Memory) merged(current string, patch json.RawMessage, schema *jsonschema.Schema) (string, error) {
	document := []byte(current)
	if strictjson.Check(document, m.limits.JSONDepth) != nil || jsonKind(document) != '{' {
		document = nil
	}
	text := string(mergePatch(document, patch))
	if len(text) > m.limits.WorkingMemoryBytes {
		return "", tooLarge("merge")
	}
	return m.replacement(text, schema)
}

// admitted fails with CodeUnprocessable where the schema does not admit the text.
func (m *Memory) admitted(text string, schema *jsonschema.Schema) error {
	c := m.check()
	c.document("workingMemory", text, schema)
	if len(c.issues) == 0 {
		return nil
	}
	return &Error{Code: CodeUnprocessable, Message: "The working memory does not match its schema", Issues: c.issues}
}

// changeWorkingMemory runs next on the current text under the lock of the working
// memory, and stores what it gives.
func (m *Memory) changeWorkingMemory(
	ctx context.Context, of WorkingMemoryOf, versions []int64, next func(tx pgx.Tx, id string, current string) (string, error),
) (WorkingMemory, error) {
	var memory WorkingMemory
	err := m.write(ctx, func(tx pgx.Tx) error {
		id, current, err := m.lockWorkingMemory(ctx, tx, of)
		if err != nil {
			return err
		}
		if err := checkVersion("The working memory", current.Version, versions); err != nil {
			return err
		}
		text, err := next(tx, id, current.Text)
		if err != nil {
			return err
		}
		memory = current
		if current.Version > 0 && current.Text == text {
			return nil
		}
		added, err := m.queries.WorkingMemoryVersionAdd(ctx, tx, dbgen.WorkingMemoryVersionAddParams{
			ID: id, Content: text, KeptVersions: KeptVersions,
		})
		memory.Version, memory.Text, memory.UpdatedAt = added.Version, text, added.CreatedAt.UTC()
		return err
	})
	return memory, err
}

// lockWorkingMemory locks a working memory until the transaction ends, and gives what
// it is. The thread is held first, so that it keeps its owner.
func (m *Memory) lockWorkingMemory(ctx context.Context, tx pgx.Tx, of WorkingMemoryOf) (id string, current WorkingMemory, err error) {
	thread, err := m.queries.ThreadHold(ctx, tx, dbgen.ThreadHoldParams{ID: of.ThreadID, Reach: m.reach()})
	switch {
	case isNoRows(err):
		return "", current, threadNotFound()
	case err != nil:
		return "", current, err
	case of.ResourceID != "" && of.ResourceID != thread.ResourceID:
		return "", current, wrongResource()
	}
	params := dbgen.WorkingMemoryLockParams{ResourceID: thread.ResourceID}
	if of.ofThread() {
		params.ThreadID = &thread.ID
	}
	lock, err := m.queries.WorkingMemoryLock(ctx, tx, params)
	if err != nil {
		return "", current, err
	}
	current = WorkingMemory{Version: lock.Version, ThreadExists: true}
	if lock.Version == 0 {
		return lock.ID, current, nil
	}
	// A statement of its own: that of the lock saw what was committed before the wait.
	row, err := m.queries.WorkingMemoryVersionGet(ctx, tx, dbgen.WorkingMemoryVersionGetParams{
		WorkingMemoryID: lock.ID, Version: lock.Version,
	})
	current.Text, current.UpdatedAt = row.Content, row.CreatedAt.UTC()
	return lock.ID, current, err
}

// copyWorkingMemory gives a clone the working memory that its source had at the last
// message copied and, where asked to, its owner that of the source's owner.
func (m *Memory) copyWorkingMemory(ctx context.Context, tx pgx.Tx, in ThreadClone, clone ClonedThread) error {
	scopes := []Scope{ScopeThread}
	if in.ResourceMemory {
		scopes = append(scopes, ScopeResource)
	}
	for _, scope := range scopes {
		source, err := m.queries.WorkingMemoryGet(ctx, tx, dbgen.WorkingMemoryGetParams{
			ThreadID: in.SourceID, OfThread: scope == ScopeThread, Reach: m.reach(),
		})
		if err != nil {
			return err
		}
		if source.ID == "" || scope == ScopeResource && source.OwnerID == clone.Thread.ResourceID {
			continue
		}
		params := dbgen.WorkingMemoryCopyParams{
			ID: source.ID, SourceThreadID: in.SourceID, LastMessageID: clone.lastSourceID(),
			ResourceID: clone.Thread.ResourceID, KeptVersions: KeptVersions,
		}
		if scope == ScopeThread {
			params.ThreadID = &clone.Thread.ID
		}
		if err := m.queries.WorkingMemoryCopy(ctx, tx, params); err != nil {
			return err
		}
	}
	return nil
}

// lastSourceID is the newest message that was copied; empty where none was.
func (c ClonedThread) lastSourceID() string {
	if len(c.SourceIDs) == 0 {
		return ""
	}
	return c.SourceIDs[len(c.SourceIDs)-1]
}

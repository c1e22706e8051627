package recall

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/pgrecall/pgrecall/dbgen"
)

// Thread is one conversation of a resource.
type Thread struct {
	ID         string
	ResourceID string
	Title      string
	// Metadata is a JSON object; nil when none was ever given.
	Metadata  json.RawMessage
	CreatedAt time.Time
	UpdatedAt time.Time
	// Version counts the changes of title, metadata and owner, from 1. Messages come
	// and go without it.
	Version int64
}

// NewThread describes a thread to create.
type NewThread struct {
	// ID is generated (UUIDv7) when empty.
	ID string
	// ResourceID is required.
	ResourceID string
	// Title and Metadata are set where not nil; on a thread that exists already
	// nil keeps what is there.
	Title    *string
	Metadata json.RawMessage
	// AgentID names the agent by whose configuration a new thread is kept; empty for
	// none. A thread that exists already keeps its own.
	AgentID string
}

// ThreadUpdate changes a thread; nil fields stay as they are.
type ThreadUpdate struct {
	ID string
	// ResourceID, when given, must be the owner.
	ResourceID string
	Title      *string
	// Metadata is merged key by key into the thread's; a null removes its key.
	Metadata json.RawMessage
	// Versions, where there are any, must have the thread's among them:
	// CodeVersionMismatch else.
	Versions []int64
}

// ThreadListing selects a page of threads.
type ThreadListing struct {
	// ResourceID restricts to the threads of one resource; empty means all.
	ResourceID string
	// Metadata pairs must all match, exact in value and type, as in [Filter].
	Metadata map[string]any
	// Page is zero-based.
	Page int
	// PerPage is the page's size; [All] means every thread.
	PerPage int
	// OrderBy defaults to created_at.
	OrderBy ThreadOrder
	// Direction defaults to [Descending].
	Direction Direction
}

// ThreadOrder names the time by which threads are listed.
type ThreadOrder string

// The times by which threads can be listed.
const (
	ByCreatedAt ThreadOrder = "createdAt"
	ByUpdatedAt ThreadOrder = "updatedAt"
)

// ThreadPage is a page of threads.
type ThreadPage struct {
	Threads []Thread
	Total   int64
	Page    int
	PerPage int // All when everything was asked for
	HasMore bool
}

// CreateThread creates a thread, or updates title and metadata of the owner's
// thread of that id. CodeConflict when the id belongs to another resource.
func (m *Memory) CreateThread(ctx context.Context, in NewThread) (Thread, error) {
	c := m.check()
	c.id("threadId", in.ID)
	c.requiredID("resourceId", in.ResourceID)
	c.threadFields(in.Title, in.Metadata)
	c.id("agentId", in.AgentID)
	if err := c.err(); err != nil {
		return Thread{}, err
	}
	if err := m.reachable(in.ResourceID); err != nil {
		return Thread{}, err
	}
	if in.ID == "" {
		in.ID = newID()
	}
	var row dbgen.Thread
	err := m.write(ctx, func(tx pgx.Tx) (err error) {
		row, err = m.queries.ThreadCreate(ctx, tx, dbgen.ThreadCreateParams{
			ID: in.ID, ResourceID: in.ResourceID, AgentID: in.AgentID, Title: in.Title, Metadata: in.Metadata,
		})
		if !isNoRows(err) {
			return err
		}
		row, err = m.queries.ThreadOverwrite(ctx, tx, dbgen.ThreadOverwriteParams{
			ID: in.ID, ResourceID: in.ResourceID, Title: in.Title, Metadata: in.Metadata, Reach: m.reach(),
		})
		if !isNoRows(err) {
			return err
		}
		return m.takenOrVanished(ctx, tx, in.ID, in.ResourceID)
	})
	return thread(row), err
}

// takenOrVanished says why a thread could not be created for its owner, and was not
// there either: another's has the id, or it comes and goes meanwhile.
func (m *Memory) takenOrVanished(ctx context.Context, tx pgx.Tx, id, resourceID string) error {
	taken, err := m.queries.ThreadIsTaken(ctx, tx, dbgen.ThreadIsTakenParams{ID: id, ResourceID: resourceID})
	switch {
	case err != nil:
		return err
	case taken:
		return errorf(CodeConflict, threadTaken)
	default:
		return errThreadVanished
	}
}

// Thread gives a thread. resourceID, when not empty, must own it: CodeForbidden
// else.
func (m *Memory) Thread(ctx context.Context, id, resourceID string) (Thread, error) {
	if err := m.checkThreadID(id, resourceID); err != nil {
		return Thread{}, err
	}
	row, err := m.owned(ctx, m.db, id, resourceID)
	return thread(row), databaseError(err)
}

// ThreadTitles gives the titles of those of the threads that exist, by id.
func (m *Memory) ThreadTitles(ctx context.Context, ids []string) (map[string]string, error) {
	rows, err := m.queries.ThreadListTitles(ctx, m.db, dbgen.ThreadListTitlesParams{Ids: ids, Reach: m.reach()})
	if err != nil {
		return nil, databaseError(err)
	}
	titles := make(map[string]string, len(rows))
	for _, row := range rows {
		titles[row.ID] = row.Title
	}
	return titles, nil
}

// ListThreads gives a page of threads.
func (m *Memory) ListThreads(ctx context.Context, in ThreadListing) (ThreadPage, error) {
	c := m.check()
	c.id("resourceId", in.ResourceID)
	if in.PerPage != All {
		c.between("perPage", in.PerPage, 0, c.limits.PerPage)
	}
	c.between("page", in.Page, 0, c.limits.Page)
	if in.OrderBy != "" && in.OrderBy != ByCreatedAt && in.OrderBy != ByUpdatedAt {
		c.fail("orderBy.field", "must be createdAt or updatedAt")
	}
	if in.Direction != "" && in.Direction != Ascending && in.Direction != Descending {
		c.fail("orderBy.direction", "must be ASC or DESC")
	}
	predicate := c.predicate("metadata", in.Metadata, nil)
	if err := c.err(); err != nil {
		return ThreadPage{}, err
	}
	params := dbgen.ThreadListParams{
		ResourceID:  m.caller.owner(in.ResourceID),
		Reach:       m.reach(),
		ByUpdatedAt: in.OrderBy == ByUpdatedAt,
		Newest:      in.Direction != Ascending,
		Matching:    predicate,
	}
	if in.PerPage != All {
		rows := int64(in.PerPage)
		params.MaxRows = &rows
		params.SkipRows = int64(in.Page) * rows
	}
	rows, err := m.queries.ThreadList(ctx, m.db, params)
	if err != nil {
		return ThreadPage{}, databaseError(err)
	}
	page := ThreadPage{Threads: []Thread{}, Total: rows[0].Total, Page: in.Page, PerPage: in.PerPage}
	for _, row := range rows {
		if row.ID == "" {
			break // the row that brings the total of an empty page
		}
		page.Threads = append(page.Threads, Thread{
			ID: row.ID, ResourceID: row.ResourceID, Title: row.Title, Metadata: row.Metadata,
			CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(), Version: row.Version,
		})
	}
	page.HasMore = in.PerPage > 0 && params.SkipRows+int64(len(page.Threads)) < page.Total
	return page, nil
}

// UpdateThread changes title and metadata.
func (m *Memory) UpdateThread(ctx context.Context, in ThreadUpdate) (Thread, error) {
	c := m.check()
	c.requiredID("threadId", in.ID)
	c.id("resourceId", in.ResourceID)
	c.threadFields(in.Title, in.Metadata)
	if err := c.err(); err != nil {
		return Thread{}, err
	}
	if in.Title == nil && in.Metadata == nil {
		row, err := m.ownedAt(ctx, m.db, in.ID, in.ResourceID, in.Versions)
		return thread(row), databaseError(err)
	}
	var row dbgen.Thread
	err := m.write(ctx, func(tx pgx.Tx) (err error) {
		row, err = m.queries.ThreadUpdate(ctx, tx, dbgen.ThreadUpdateParams{
			ID: in.ID, ResourceID: in.ResourceID, Title: in.Title, Metadata: in.Metadata,
			Versions: append([]int64{}, in.Versions...), Reach: m.reach(),
		})
		if err == nil && len(row.Metadata) > mergedSlack*m.limits.MetadataBytes {
			return tooLarge("metadata")
		}
		return m.orMissing(ctx, tx, err, in.ID, in.ResourceID, in.Versions...)
	})
	return thread(row), err
}

// mergedSlack is how much longer than its limit a merged value may be: the
// database writes JSON with spaces, which count here and did not on its way in.
const mergedSlack = 2

func tooLarge(field string) *Error {
	return &Error{Code: CodeInvalid, Message: "Invalid request", Issues: []Issue{{Field: field, Message: "is too large when merged"}}}
}

// TransferThread gives a thread, its messages and its jobs to another resource. Title
// and creation time stay. resourceID, when not empty, must own the thread. Of versions,
// where there are any, the thread must have one: CodeVersionMismatch else.
func (m *Memory) TransferThread(ctx context.Context, id, resourceID, toResourceID string, versions ...int64) (Thread, error) {
	c := m.check()
	c.requiredID("threadId", id)
	c.id("resourceId", resourceID)
	c.requiredID("resourceId", toResourceID)
	if err := c.err(); err != nil {
		return Thread{}, err
	}
	if err := m.reachable(toResourceID); err != nil {
		return Thread{}, err
	}
	var row dbgen.Thread
	err := m.write(ctx, func(tx pgx.Tx) (err error) {
		locked, err := m.lockMany(ctx, tx, id)
		if err != nil {
			return err
		}
		row, err = m.queries.ThreadTransfer(ctx, tx, dbgen.ThreadTransferParams{
			ID: id, ResourceID: resourceID, ToResourceID: toResourceID, Versions: append([]int64{}, versions...), Reach: m.reach(),
		})
		if err != nil {
			return m.orMissing(ctx, tx, err, id, resourceID, versions...)
		}
		if len(locked) == 0 { // it was created after the lock looked for it
			return errThreadVanished
		}
		return m.queries.JobTransfer(ctx, tx, dbgen.JobTransferParams{
			ThreadID: id, ResourceID: locked[0].ResourceID, ToResourceID: toResourceID,
		})
	})
	return thread(row), err
}

// DeleteThread removes a thread with all that hangs on it. Of versions, where there
// are any, the thread must have one: CodeVersionMismatch else.
func (m *Memory) DeleteThread(ctx context.Context, id, resourceID string, versions ...int64) error {
	if err := m.checkThreadID(id, resourceID); err != nil {
		return err
	}
	return m.write(ctx, func(tx pgx.Tx) error {
		n, err := m.queries.ThreadDelete(ctx, tx, dbgen.ThreadDeleteParams{
			ID: id, ResourceID: resourceID, Versions: append([]int64{}, versions...), Reach: m.reach(),
		})
		if err == nil && n == 0 {
			err = pgx.ErrNoRows
		}
		return m.orMissing(ctx, tx, err, id, resourceID, versions...)
	})
}

func (m *Memory) checkThreadID(id, resourceID string) error {
	c := m.check()
	c.requiredID("threadId", id)
	c.id("resourceId", resourceID)
	return c.err()
}

func (c *checker) threadFields(title *string, metadata json.RawMessage) {
	if title != nil {
		c.text("title", *title, c.limits.TitleBytes)
	}
	if metadata != nil {
		c.object("metadata", metadata, c.limits.MetadataBytes)
	}
}

// owned gives the thread's row, or the error that says why it is not to be had.
func (m *Memory) owned(ctx context.Context, db dbgen.DBTX, id, resourceID string) (dbgen.Thread, error) {
	row, err := m.queries.ThreadGet(ctx, db, dbgen.ThreadGetParams{ID: id, Reach: m.reach()})
	switch {
	case isNoRows(err):
		return dbgen.Thread{}, threadNotFound()
	case err != nil:
		return dbgen.Thread{}, err
	case resourceID != "" && row.ResourceID != resourceID:
		return dbgen.Thread{}, wrongResource()
	}
	return row, nil
}

// ownedAt is owned for a thread that must have one of the versions, where there are
// any.
func (m *Memory) ownedAt(ctx context.Context, db dbgen.DBTX, id, resourceID string, versions []int64) (dbgen.Thread, error) {
	row, err := m.owned(ctx, db, id, resourceID)
	if err == nil {
		err = checkVersion("The thread", row.Version, versions)
	}
	return row, err
}

// orMissing explains why a statement on an owner's thread, of one of the versions
// where there are any, found no row.
func (m *Memory) orMissing(ctx context.Context, tx pgx.Tx, err error, id, resourceID string, versions ...int64) error {
	if !isNoRows(err) {
		return err
	}
	if _, err := m.ownedAt(ctx, tx, id, resourceID, versions); err != nil {
		return err
	}
	return threadNotFound() // it appeared after the statement
}

func thread(row dbgen.Thread) Thread {
	return Thread{
		ID: row.ID, ResourceID: row.ResourceID, Title: row.Title, Metadata: row.Metadata,
		CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(), Version: row.Version,
	}
}

func threads(rows []dbgen.Thread) []Thread {
	out := make([]Thread, len(rows))
	for i, row := range rows {
		out[i] = thread(row)
	}
	return out
}

// newID gives a UUID of version 7, whose order is that of its creation.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

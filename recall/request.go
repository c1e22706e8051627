package recall

import (
	"time"
)

// All as a page size means everything, without pages.
const All = -1

// Direction is the end of time from which a page is taken.
type Direction string

// The directions of a page or listing.
const (
	Ascending  Direction = "ASC"
	Descending Direction = "DESC"
)

// Request asks for messages. One of ThreadID and ResourceID is required.
type Request struct {
	ThreadID string
	// ResourceID with a ThreadID must own the thread; alone it recalls over all
	// threads of the resource.
	ResourceID string
	// PerPage is the page's size, [All] or 0 for none; nil means LastMessages, or
	// none of a recall that includes messages and asks for no page or filter.
	PerPage *int
	// LastMessages is the configured size of a page; nil means 10.
	LastMessages *int
	// Page is zero-based. It excludes Cursor.
	Page *int
	// Cursor is a NextCursor of an earlier answer; nil or empty begins a walk.
	Cursor *string
	// Direction says from which end pages are taken; empty means the default.
	Direction Direction
	Filter    Filter
	Include   []Include
	// Search adds the messages that answer a question; nil adds none.
	Search *Search
	// KeepToolPairs adds to the answer the message with the call of every tool
	// result in it.
	KeepToolPairs bool
	// SkipTotal leaves Total nil and saves the count.
	SkipTotal bool
	// Explain adds to each message why it is there.
	Explain bool
}

// Filter restricts the page of a recall. Its parts are joined by AND.
type Filter struct {
	DateRange DateRange
	// Metadata holds up to Limits.MetadataPairs pairs that content.metadata must
	// have with exactly that value and type. Values are strings, booleans, nil,
	// json.Number or any Go number.
	Metadata map[string]any
	// Where holds operators over the same keys: $and, $or, $not, $eq, $ne, $gt,
	// $gte, $lt, $lte, $in, $nin, $exists.
	Where map[string]any
	// Roles keeps the messages of these roles where not empty.
	Roles []string
}

// DateRange bounds createdAt; nil leaves an end open.
type DateRange struct {
	Start, End                   *time.Time
	StartExclusive, EndExclusive bool
}

// Include asks for one message by its id, with the messages around it in its
// own thread. Ids that do not exist, or lie outside the request's resource, add
// nothing.
type Include struct {
	ID string
	// ThreadID defaults to the request's.
	ThreadID string
	// Previous and Next count messages before and after; nil means 0, and 2 in a
	// recall that searches too.
	Previous, Next *int
}

// Result answers a [Request].
type Result struct {
	Messages []Message
	// Total counts what pages range over; nil when it was not asked for.
	Total *int64
	// Page is nil in a walk by cursor.
	Page    *int
	PerPage int // All when everything was asked for
	HasMore bool
	// NextCursor continues a walk; empty at its end.
	NextCursor string
	// Degraded says that the embedder was out of reach, and that the hits were
	// found by words alone.
	Degraded bool
	// Search says how the search was run; nil without one.
	Search *SearchPlan
}

// Reason says why a message is in an answer.
type Reason string

// The reasons of an [Explanation].
const (
	ReasonPage     Reason = "page"
	ReasonInclude  Reason = "include"
	ReasonSemantic Reason = "semantic"
	ReasonLexical  Reason = "lexical"
	ReasonContext  Reason = "context"
	ReasonToolCall Reason = "toolCall"
	// ReasonWorkingMemory is that of the instruction with a user's working memory.
	ReasonWorkingMemory Reason = "workingMemory"
)

// Explanation says why a message is in an answer.
type Explanation struct {
	Reasons []Reason
	// ContextOf is the id of the nearest included message or hit that brought this one
	// in as its context, and Offset the distance to it: -2 is two before it.
	ContextOf string
	Offset    int
	// Hit says how the message was found; nil where it was not.
	Hit *Hit
}

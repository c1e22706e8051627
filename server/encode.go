package server

import (
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/format"
)

// Answers are appended by hand: content and metadata go out as the bytes that
// the database gave, and an encoder would read all of them again.

// timeLayout is that of JavaScript's Date.toISOString.
const timeLayout = `"2006-01-02T15:04:05.000Z"`

// plainType is the type of every message of the current format. Listings leave
// it out.
const plainType = "v2"

func appendText(b []byte, text string) []byte {
	// It fails on invalid UTF-8 only, which it replaces.
	b, _ = jsontext.AppendQuote(b, text)
	return b
}

func appendTime(b []byte, t time.Time) []byte { return t.UTC().AppendFormat(b, timeLayout) }

// appendTimeOrNull appends null for no time.
func appendTimeOrNull(b []byte, t *time.Time) []byte {
	if t == nil {
		return append(b, "null"...)
	}
	return appendTime(b, *t)
}

// appendTextOrNull appends null for an empty text.
func appendTextOrNull(b []byte, text string) []byte {
	if text == "" {
		return append(b, "null"...)
	}
	return appendText(b, text)
}

func appendInt(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }

// appendPageSize appends the size of a page, where everything is false.
func appendPageSize(b []byte, size int) []byte {
	if size == recall.All {
		return append(b, "false"...)
	}
	return appendInt(b, size)
}

// appendArray appends the items in brackets.
func appendArray[T any](b []byte, items []T, appendItem func([]byte, T) []byte) []byte {
	b = append(b, '[')
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendItem(b, item)
	}
	return append(b, ']')
}

func appendThread(b []byte, t recall.Thread) []byte {
	b = appendText(append(b, `{"id":`...), t.ID)
	b = appendText(append(b, `,"resourceId":`...), t.ResourceID)
	b = appendText(append(b, `,"title":`...), t.Title)
	if t.Metadata != nil {
		b = append(append(b, `,"metadata":`...), t.Metadata...)
	}
	b = appendTime(append(b, `,"createdAt":`...), t.CreatedAt)
	b = appendTime(append(b, `,"updatedAt":`...), t.UpdatedAt)
	return append(b, '}')
}

func appendThreadPage(b []byte, page recall.ThreadPage) []byte {
	b = appendArray(append(b, `{"threads":`...), page.Threads, appendThread)
	b = strconv.AppendInt(append(b, `,"total":`...), page.Total, 10)
	b = appendInt(append(b, `,"page":`...), page.Page)
	b = appendPageSize(append(b, `,"perPage":`...), page.PerPage)
	b = strconv.AppendBool(append(b, `,"hasMore":`...), page.HasMore)
	return append(b, '}')
}

// appendMessage appends a message as listings show it.
func appendMessage(b []byte, m recall.Message) []byte {
	if m.Type == plainType {
		m.Type = ""
	}
	return appendMessageAsGiven(b, m)
}

// appendMessageAsGiven appends a message with the type that it was saved with.
func appendMessageAsGiven(b []byte, m recall.Message) []byte {
	b = appendText(append(b, `{"id":`...), m.ID)
	b = appendText(append(b, `,"threadId":`...), m.ThreadID)
	b = appendText(append(b, `,"resourceId":`...), m.ResourceID)
	b = appendText(append(b, `,"role":`...), m.Role)
	if m.Type != "" {
		b = appendText(append(b, `,"type":`...), m.Type)
	}
	b = appendTime(append(b, `,"createdAt":`...), m.CreatedAt)
	b = append(append(b, `,"content":`...), m.Content...)
	if m.Recalled {
		b = append(b, `,"source":"memory"`...)
	}
	if m.Explain != nil {
		b = appendExplanation(append(b, `,"explain":`...), *m.Explain)
	}
	return append(b, '}')
}

// appendExplanation gives every member that an answer by search has too; what
// only a search knows is null.
func appendExplanation(b []byte, e recall.Explanation) []byte {
	b = appendArray(append(b, `{"reason":`...), e.Reasons, func(b []byte, r recall.Reason) []byte {
		return appendText(b, string(r))
	})
	b = appendHit(b, e.Hit)
	b = appendTextOrNull(append(b, `,"contextOf":`...), e.ContextOf)
	b = append(b, `,"offset":`...)
	if e.ContextOf == "" {
		b = append(b, "null"...)
	} else {
		b = appendInt(b, e.Offset)
	}
	return append(b, '}')
}

func appendHit(b []byte, hit *recall.Hit) []byte {
	if hit == nil {
		return append(b, `,"score":null,"similarity":null,"words":null,"rank":null`...)
	}
	b = appendNumber(append(b, `,"score":`...), &hit.Score)
	b = appendNumber(append(b, `,"similarity":`...), hit.Similarity)
	b = appendNumber(append(b, `,"words":`...), &hit.Words)
	return appendInt(append(b, `,"rank":`...), hit.Rank)
}

// appendNumber appends a finite number, and null for none.
func appendNumber(b []byte, n *float64) []byte {
	if n == nil {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, *n, 'g', -1, 64)
}

// appendPlan says how a search was run; nil where there was none.
func appendPlan(b []byte, plan *recall.SearchPlan) []byte {
	if plan == nil {
		return append(b, `{"mode":null,"plan":null,"visited":null,"pending":null,"backlogSeconds":null}`...)
	}
	b = appendText(append(b, `{"mode":`...), string(plan.Mode))
	b = appendTextOrNull(append(b, `,"plan":`...), plan.Plan)
	b = strconv.AppendInt(append(b, `,"visited":`...), plan.Visited, 10)
	b = append(b, `,"pending":`...)
	if plan.Pending == nil {
		return append(b, `null,"backlogSeconds":null}`...)
	}
	b = strconv.AppendInt(b, *plan.Pending, 10)
	return append(appendInt(append(b, `,"backlogSeconds":`...), int(plan.Backlog.Seconds())), '}')
}

// appendResult appends the answer to a recall or listing, but for its closing
// brace: routes add to it.
func appendResult(b []byte, r recall.Result, explain bool, f format.Format) []byte {
	b = appendMessages(append(b, `{"messages":`...), r.Messages, f, appendMessage)
	b = append(b, `,"total":`...)
	if r.Total == nil {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, *r.Total, 10)
	}
	b = append(b, `,"page":`...)
	if r.Page == nil {
		b = append(b, "null"...)
	} else {
		b = appendInt(b, *r.Page)
	}
	b = appendPageSize(append(b, `,"perPage":`...), r.PerPage)
	b = strconv.AppendBool(append(b, `,"hasMore":`...), r.HasMore)
	b = appendTextOrNull(append(b, `,"nextCursor":`...), r.NextCursor)
	if r.Degraded {
		b = append(b, `,"degraded":true`...)
	}
	if explain {
		b = appendPlan(append(b, `,"explain":`...), r.Search)
	}
	return b
}

func appendClone(b []byte, clone recall.ClonedThread, f format.Format) []byte {
	b = appendThread(append(b, `{"thread":`...), clone.Thread)
	b = append(b, `,"messageIdMap":{`...)
	for i, source := range clone.SourceIDs {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(b, source), ':')
		b = appendText(b, clone.Messages[i].ID)
	}
	b = appendMessages(append(b, `},"clonedMessages":`...), clone.Messages, f, appendMessage)
	return append(b, '}')
}

func appendError(b []byte, text string, issues []recall.Issue) []byte {
	b = appendText(append(b, `{"error":`...), text)
	if len(issues) > 0 {
		b = appendArray(append(b, `,"issues":`...), issues, appendIssue)
	}
	return append(b, '}')
}

// maxFieldBytes bounds the name of a field in an answer, whose keys the caller
// chose.
const maxFieldBytes = 256

func appendIssue(b []byte, issue recall.Issue) []byte {
	field := issue.Field
	if len(field) > maxFieldBytes {
		field = strings.ToValidUTF8(field[:maxFieldBytes], "") + "…"
	}
	b = appendText(append(b, `{"field":`...), field)
	b = appendText(append(b, `,"message":`...), issue.Message)
	return append(b, '}')
}

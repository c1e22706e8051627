package server

import (
	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
)

// messagesPerPage is the size of a page of messages where a GET gives none.
const messagesPerPage = 40

// listMessages is a recall where an agent is named, and else the plain listing.
func (a api) listMessages(c echo.Context) error {
	id, err := threadID(c)
	if err != nil {
		return err
	}
	q := a.readQuery(c)
	request := readMessageQuery(q)
	request.ThreadID = id
	if err := q.faults.err(); err != nil {
		return err
	}
	list := a.memory.ListMessages
	if q.text("agentId") != "" {
		list = a.memory.Recall
	}
	result, err := list(c.Request().Context(), request)
	if err != nil {
		return err
	}
	return respond(c, append(appendResult(nil, result, request.Explain), `,"uiMessages":null}`...))
}

func readMessageQuery(q query) recall.Request {
	perPage := q.pageSize(messagesPerPage)
	request := recall.Request{
		ResourceID:    q.key("resourceId"),
		PerPage:       &perPage,
		Page:          q.count("page"),
		Cursor:        q.textIfGiven("cursor"),
		KeepToolPairs: q.flagOr("keepToolPairs", false),
		SkipTotal:     !q.flagOr("includeTotal", true),
		Explain:       q.flagOr("explain", false),
	}
	_, request.Direction = readOrder(q, string(recall.ByCreatedAt))
	if raw := q.json("filter"); raw != nil {
		request.Filter = readFilter(q.faults.readObject("filter", raw))
	}
	if raw := q.json("include"); raw != nil {
		request.Include = readInclude(q.faults.readObjects("include", raw))
	}
	return request
}

// recall takes the whole of a request as a body.
func (a api) recall(c echo.Context) error {
	if err := a.readQuery(c).faults.err(); err != nil {
		return err
	}
	body, f, err := a.readBody(c)
	if err != nil {
		return err
	}
	request := readRecallBody(body)
	if err := f.err(); err != nil {
		return err
	}
	result, err := a.memory.Recall(c.Request().Context(), request)
	if err != nil {
		return err
	}
	return respond(c, append(appendResult(nil, result, request.Explain), '}'))
}

func readRecallBody(body object) recall.Request {
	body.only("agentId", "threadId", "resourceId", "perPage", "page", "cursor", "orderBy", "filter", "include",
		"keepToolPairs", "includeTotal", "explain", "vectorSearchString", "threadConfig")
	body.text("agentId")
	config := body.object("threadConfig")
	config.only("lastMessages", "semanticRecall", "workingMemory", "threads", "generateTitle")
	request := recall.Request{
		ThreadID:      body.key("threadId"),
		ResourceID:    body.key("resourceId"),
		PerPage:       body.pageSize("perPage"),
		Page:          body.count("page"),
		Cursor:        body.cursor(),
		Direction:     readOrderObject(body.object("orderBy")),
		Filter:        readFilter(body.object("filter")),
		Include:       readInclude(body.objects("include")),
		Search:        readSearch(body.text("vectorSearchString"), config),
		KeepToolPairs: body.flag("keepToolPairs"),
		SkipTotal:     !body.flagOr("includeTotal", true),
		Explain:       body.flag("explain"),
	}
	if request.Search != nil {
		request.Search.CountPending = request.Explain
	}
	lastMessages := config.lastMessages()
	// The memory's own default for a bare include stands against lastMessages.
	bareInclude := len(request.Include) > 0 && request.Page == nil && request.Cursor == nil && !body.has("filter")
	if request.PerPage == nil && !bareInclude {
		request.PerPage = lastMessages
	}
	return request
}

// readSearch reads the search that a question asks for; nil without a question, or
// where the configuration of the call switches semantic recall off.
func readSearch(question string, config object) *recall.Search {
	search := readSemanticRecall(config)
	if question == "" || search == nil {
		return nil
	}
	search.Question = question
	return search
}

// readSemanticRecall reads how to search; nil where that is switched off.
func readSemanticRecall(config object) *recall.Search {
	const name = "semanticRecall"
	search := &recall.Search{}
	switch string(config.raw(name)) {
	case "false":
		return nil
	case "", "true":
		return search
	}
	o := config.object(name)
	// indexConfig tunes stores whose index is built by the client.
	o.only("topK", "messageRange", "scope", "threshold", "indexName", "filter", "mode", "indexConfig")
	if topK := o.count("topK"); topK != nil {
		search.TopK = *topK
		if *topK == 0 {
			o.fault("topK", "must be at least 1")
		}
	}
	search.Before, search.After = readMessageRange(o)
	search.Scope = recall.Scope(o.key("scope"))
	search.Threshold = o.number("threshold")
	search.IndexName = o.key("indexName")
	search.Filter = o.values("filter")
	search.Mode = recall.Mode(o.key("mode"))
	return search
}

// readMessageRange reads the width of the context of hits: one number for both
// sides, or one for each.
func readMessageRange(o object) (before, after *int) {
	const name = "messageRange"
	if !o.has(name) {
		return nil, nil
	}
	if kindOf(o.raw(name)) != "an object" {
		width := o.count(name)
		return width, width
	}
	sides := o.object(name)
	sides.only("before", "after")
	return sides.count("before"), sides.count("after")
}

// pageSize reads the size of a page, where false is everything; nil where there
// is none.
func (o object) pageSize(name string) *int {
	if string(o.raw(name)) == "false" {
		all := recall.All
		return &all
	}
	return o.count(name)
}

// cursor reads the cursor. Unlike elsewhere a null is none: it is what the last
// page of a walk gives for its nextCursor.
func (o object) cursor() *string {
	if string(o.raw("cursor")) == "null" {
		return nil
	}
	return o.textIfGiven("cursor")
}

// lastMessages reads a thread configuration's page size, where false is none.
func (o object) lastMessages() *int {
	const name = "lastMessages"
	if string(o.raw(name)) == "false" {
		return new(int)
	}
	return o.count(name)
}

func readFilter(o object) recall.Filter {
	o.only("dateRange", "metadata", "where", "roles")
	dates := o.object("dateRange")
	dates.only("start", "end", "startExclusive", "endExclusive")
	return recall.Filter{
		DateRange: recall.DateRange{
			Start:          dates.date("start"),
			End:            dates.date("end"),
			StartExclusive: dates.flag("startExclusive"),
			EndExclusive:   dates.flag("endExclusive"),
		},
		Metadata: o.values("metadata"),
		Where:    o.values("where"),
		Roles:    o.texts("roles"),
	}
}

func readInclude(items []object) []recall.Include {
	var include []recall.Include
	for _, o := range items {
		o.only("id", "threadId", "withPreviousMessages", "withNextMessages")
		o.must("id")
		include = append(include, recall.Include{
			ID:       o.key("id"),
			ThreadID: o.key("threadId"),
			Previous: o.count("withPreviousMessages"),
			Next:     o.count("withNextMessages"),
		})
	}
	return include
}

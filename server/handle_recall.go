package server

import (
	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
)

// messagesPerPage is the size of a page of messages where a GET gives none.
const messagesPerPage = 40

// listMessages is a recall where an agent is named, and else the plain listing.
func (a api) listMessages(c echo.Context) error {
	id, err := pathID(c, threadIDParam)
	if err != nil {
		return err
	}
	q := a.readQuery(c)
	request := readMessageQuery(q)
	request.ThreadID = id
	format := q.format()
	if err := q.faults.err(); err != nil {
		return err
	}
	list := a.memory.ListMessages
	if q.text(agentIDParam) != "" {
		list = a.memory.Recall
	}
	result, err := list(c.Request().Context(), request)
	if err != nil {
		return err
	}
	return respond(c, append(appendResult(nil, result, request.Explain, format), `,"uiMessages":null}`...))
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
	q := a.readQuery(c)
	format, agent := q.format(), q.key(agentIDParam)
	if err := q.faults.err(); err != nil {
		return err
	}
	body, f, err := a.readBody(c)
	if err != nil {
		return err
	}
	request := readRecallBody(body)
	format, agent = body.formatOr(format), body.agentOr(agent)
	if err := f.err(); err != nil {
		return err
	}
	config, err := a.configOf(c, agent, "threadConfig", body.raw("threadConfig"))
	if err != nil {
		return err
	}
	request.LastMessages, request.Search = config.LastMessages, config.SearchFor(body.text("vectorSearchString"))
	if request.Search != nil {
		request.Search.CountPending = request.Explain
	}
	result, err := a.memory.Recall(c.Request().Context(), request)
	if err != nil {
		return err
	}
	return respond(c, append(appendResult(nil, result, request.Explain, format), '}'))
}

func readRecallBody(body object) recall.Request {
	body.only(agentIDParam, "threadId", "resourceId", "perPage", "page", "cursor", "orderBy", "filter", "include",
		"keepToolPairs", "includeTotal", "explain", "vectorSearchString", "threadConfig", "format")
	body.text("vectorSearchString")
	body.object("threadConfig")
	return recall.Request{
		ThreadID:      body.key("threadId"),
		ResourceID:    body.key("resourceId"),
		PerPage:       body.pageSize("perPage"),
		Page:          body.count("page"),
		Cursor:        body.cursor(),
		Direction:     readOrderObject(body.object("orderBy")),
		Filter:        readFilter(body.object("filter")),
		Include:       readInclude(body.objects("include")),
		KeepToolPairs: body.flag("keepToolPairs"),
		SkipTotal:     !body.flagOr("includeTotal", true),
		Explain:       body.flag("explain"),
	}
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

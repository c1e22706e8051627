package server

import (
	"cmp"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
)

// threadsPerPage is the size of a page of threads where none is given.
const threadsPerPage = 100

func (a api) listThreads(c echo.Context) error {
	q := a.readQuery(c)
	listing := recall.ThreadListing{
		ResourceID: q.key("resourceId"),
		PerPage:    q.pageSize(threadsPerPage),
	}
	if page := q.count("page"); page != nil {
		listing.Page = *page
	}
	if raw := q.json("metadata"); raw != nil {
		listing.Metadata = q.faults.readValues("metadata", raw)
	}
	field, direction := readThreadOrder(q)
	listing.OrderBy, listing.Direction = recall.ThreadOrder(field), direction
	if err := q.faults.err(); err != nil {
		return err
	}
	page, err := a.memory.ListThreads(c.Request().Context(), listing)
	if err != nil {
		return err
	}
	return respond(c, appendThreadPage(nil, page))
}

// threadOrders are the times by which threads can be listed.
var threadOrders = []string{string(recall.ByCreatedAt), string(recall.ByUpdatedAt)}

// readThreadOrder also takes what old clients send: orderBy=updatedAt and
// sortDirection=ASC.
func readThreadOrder(q query) (field string, direction recall.Direction) {
	o := order{faults: q.faults, fields: threadOrders}
	old := o.direction("sortDirection", q.text("sortDirection"))
	if name := q.text("orderBy"); name != "" && !strings.ContainsAny(name, "{[") {
		return o.field("orderBy", name), old
	}
	field, direction = readOrder(q, threadOrders...)
	return field, cmp.Or(direction, old)
}

func (a api) createThread(c echo.Context) error {
	q := a.readQuery(c)
	if err := q.faults.err(); err != nil {
		return err
	}
	body, f, err := a.readBody(c)
	if err != nil {
		return err
	}
	body.must("resourceId")
	thread := recall.NewThread{
		ID:         body.key("threadId"),
		ResourceID: body.key("resourceId"),
		Title:      body.textIfGiven("title"),
		Metadata:   body.rawObject("metadata"),
		AgentID:    body.agentOr(q.text(agentIDParam)),
	}
	if err := f.err(); err != nil {
		return err
	}
	return answerThread(c)(a.memory.CreateThread(c.Request().Context(), thread))
}

func (a api) getThread(c echo.Context) error {
	id, owner, err := a.threadAndOwner(c)
	if err != nil {
		return err
	}
	return answerThread(c)(a.memory.Thread(c.Request().Context(), id, owner))
}

func (a api) updateThread(c echo.Context) error {
	id, owner, err := a.threadAndOwner(c)
	if err != nil {
		return err
	}
	versions, err := ifMatch(c)
	if err != nil {
		return err
	}
	body, f, err := a.readBody(c)
	if err != nil {
		return err
	}
	update := recall.ThreadUpdate{
		ID:         id,
		ResourceID: body.ownerOr(owner),
		Title:      body.textIfGiven("title"),
		Metadata:   body.rawObject("metadata"),
		Versions:   versions,
	}
	if err := f.err(); err != nil {
		return err
	}
	return answerThread(c)(a.memory.UpdateThread(c.Request().Context(), update))
}

func (a api) deleteThread(c echo.Context) error {
	id, owner, err := a.threadAndOwner(c)
	if err != nil {
		return err
	}
	versions, err := ifMatch(c)
	if err != nil {
		return err
	}
	if err := a.memory.DeleteThread(c.Request().Context(), id, owner, versions...); err != nil {
		return err
	}
	return respond(c, []byte(`{"result":"Thread deleted"}`))
}

func (a api) transferThread(c echo.Context) error {
	id, owner, err := a.threadAndOwner(c)
	if err != nil {
		return err
	}
	versions, err := ifMatch(c)
	if err != nil {
		return err
	}
	body, f, err := a.readBody(c)
	if err != nil {
		return err
	}
	body.must("resourceId")
	receiver := body.key("resourceId")
	if err := f.err(); err != nil {
		return err
	}
	return answerThread(c)(a.memory.TransferThread(c.Request().Context(), id, owner, receiver, versions...))
}

// answerThread writes what a method gave that gives a thread, and its version.
func answerThread(c echo.Context) func(recall.Thread, error) error {
	return func(thread recall.Thread, err error) error {
		if err != nil {
			return err
		}
		c.Response().Header().Set(headerETag, tagOf(thread.Version))
		return respond(c, appendThread(nil, thread))
	}
}

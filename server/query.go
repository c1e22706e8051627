package server

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
)

// Parameters that errors name as fields, on routes with a body too.
const (
	threadIDParam = "threadId"
	agentIDParam  = "agentId"
)

// pathID gives an id from the path.
func pathID(c echo.Context, name string) (string, error) {
	f := faults{text: invalidPath}
	id, err := url.PathUnescape(c.Param(name))
	switch {
	case err != nil || !utf8.ValidString(id):
		f.add(name, "not valid UTF-8")
	case strings.ContainsRune(id, 0):
		f.addUnstorable(name, "contains a NUL character")
	case id == "":
		return "", echo.ErrNotFound
	}
	return id, f.err()
}

// query is the query string of a request. Its methods work as those of
// [object] do.
type query struct {
	values url.Values
	depth  int
	faults *faults
}

// readQuery reads the query string. A parameter given twice is refused, since
// the parts of a system disagree on which one counts.
func (a api) readQuery(c echo.Context) query {
	q := query{depth: a.config.JSONDepth, faults: &faults{text: invalidQuery}}
	values, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		q.faults.add("query", "not a valid query string")
	}
	q.values = values
	for _, name := range slices.Sorted(maps.Keys(values)) {
		given := values[name]
		field := strings.ToValidUTF8(name, "\uFFFD")
		switch {
		case field != name || !utf8.ValidString(given[0]):
			q.faults.add(field, "not valid UTF-8")
		case len(given) > 1:
			q.faults.add(field, "given twice")
		case strings.ContainsRune(given[0], 0):
			q.faults.addUnstorable(field, "contains a NUL character")
		}
	}
	return q
}

func (q query) text(name string) string { return q.values.Get(name) }

// key reads a value that must not be empty where it is given.
func (q query) key(name string) string {
	if q.values.Has(name) && q.text(name) == "" {
		q.faults.add(name, "must not be empty")
	}
	return q.text(name)
}

// mustKey reads a value that must be given and not be empty.
func (q query) mustKey(name string) string {
	if !q.values.Has(name) {
		q.faults.add(name, "required")
	}
	return q.key(name)
}

// textIfGiven reads a value; nil where there is none.
func (q query) textIfGiven(name string) *string {
	if !q.values.Has(name) {
		return nil
	}
	text := q.text(name)
	return &text
}

// count reads an integer from 0; nil where there is none.
func (q query) count(name string) *int {
	if !q.values.Has(name) {
		return nil
	}
	return q.faults.readCount(name, q.text(name))
}

// pageSize reads perPage.
func (q query) pageSize(absent int) int {
	const name = "perPage"
	if q.text(name) == "false" {
		return recall.All
	}
	if size := q.count(name); size != nil {
		return *size
	}
	return absent
}

// flagOr reads a boolean; absent where there is none.
func (q query) flagOr(name string, absent bool) bool {
	if !q.values.Has(name) {
		return absent
	}
	text := q.text(name)
	if text != "true" && text != "false" {
		q.faults.add(name, "want true or false")
	}
	return text == "true"
}

// json reads a value that is JSON, its syntax checked; nil where there is none
// or it is not.
func (q query) json(name string) json.RawMessage {
	if !q.values.Has(name) {
		return nil
	}
	text := []byte(q.text(name))
	if !q.faults.checkJSON(name, text, q.depth) {
		return nil
	}
	return text
}

// owner reads the resourceId that must own what the request is about, for routes
// that know no other parameter.
func (a api) owner(c echo.Context) (string, error) {
	q := a.readQuery(c)
	owner := q.key("resourceId")
	return owner, q.faults.err()
}

// threadAndOwner reads the thread of the path and the owner it must have.
func (a api) threadAndOwner(c echo.Context) (thread, owner string, err error) {
	if thread, err = pathID(c, threadIDParam); err != nil {
		return "", "", err
	}
	owner, err = a.owner(c)
	return thread, owner, err
}

// respond writes an answer that is JSON.
func respond(c echo.Context, body []byte) error { return c.JSONBlob(http.StatusOK, body) }

package server

import (
	"slices"

	"github.com/pgrecall/pgrecall/recall"
)

// order reads what an answer is ordered by.
type order struct {
	fields []string // those that can be chosen
	faults *faults
}

// readOrder reads orderBy of a query, which is JSON or two parameters,
// orderBy[field] and orderBy[direction].
func readOrder(q query, fields ...string) (field string, direction recall.Direction) {
	o := order{fields: fields, faults: q.faults}
	if raw := q.json("orderBy"); raw != nil {
		return o.object(q.faults.readObject("orderBy", raw))
	}
	return o.field("orderBy.field", q.text("orderBy[field]")),
		o.direction("orderBy.direction", q.text("orderBy[direction]"))
}

// readOrderObject reads orderBy of a body, for messages.
func readOrderObject(o object) recall.Direction {
	_, direction := order{fields: []string{string(recall.ByCreatedAt)}, faults: o.faults}.object(o)
	return direction
}

func (r order) object(o object) (field string, direction recall.Direction) {
	o.only("field", "direction")
	return r.field(o.field("field"), o.text("field")), r.direction(o.field("direction"), o.text("direction"))
}

func (r order) field(path, name string) string {
	if name != "" && !slices.Contains(r.fields, name) {
		r.faults.add(path, "not a field to order by")
	}
	return name
}

func (r order) direction(path, name string) recall.Direction {
	direction := recall.Direction(name)
	if name != "" && direction != recall.Ascending && direction != recall.Descending {
		r.faults.add(path, "want ASC or DESC")
	}
	return direction
}

package server

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/pgrecall/pgrecall/recall/strictjson"
)

// object is a JSON object of a request whose syntax has been checked. Its
// methods read one member each, give the zero value where there is none or it is
// of the wrong shape, and note the fault in the latter case. A null is a value
// of the wrong shape: it is not taken for "not given".
type object struct {
	path    string
	members []member
	faults  *faults
	// broken is true of what is no object: its members are not missed as well.
	broken bool
}

type member struct {
	name  string
	value json.RawMessage
}

// readObject reads the object at path.
func (f *faults) readObject(path string, raw json.RawMessage) object {
	o := object{path: path, faults: f}
	if kind := kindOf(raw); kind != "an object" {
		f.add(path, "want an object, got "+kind)
		o.broken = true
		return o
	}
	for name, value := range strictjson.Members(raw) {
		o.members = append(o.members, member{name, value})
	}
	return o
}

// readArray reads the array at path.
func (f *faults) readArray(path string, raw json.RawMessage) []json.RawMessage {
	if kind := kindOf(raw); kind != "an array" {
		f.add(path, "want an array, got "+kind)
		return nil
	}
	elements := []json.RawMessage{}
	for element := range strictjson.Elements(raw) {
		elements = append(elements, element)
	}
	return elements
}

// readText reads the string at path.
func (f *faults) readText(path string, raw json.RawMessage) string {
	text, ok := strictjson.Text(raw)
	if !ok {
		f.add(path, "want a string, got "+kindOf(raw))
	}
	return text
}

// readTexts reads the array of strings at path.
func (f *faults) readTexts(path string, raw json.RawMessage) []string {
	texts := []string{}
	for i, element := range f.readArray(path, raw) {
		texts = append(texts, f.readText(indexed(path, i), element))
	}
	return texts
}

// raw gives a member's value as it came; nil where there is none.
func (o object) raw(name string) json.RawMessage {
	for _, m := range o.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// pick gives an object of some of the members, those that are there.
func (o object) pick(names ...string) json.RawMessage {
	var picked []byte
	for _, name := range names {
		if raw := o.raw(name); raw != nil {
			picked = append(appendText(append(picked, ','), name), ':')
			picked = append(picked, raw...)
		}
	}
	if picked == nil {
		return nil
	}
	picked[0] = '{'
	return append(picked, '}')
}

func (o object) has(name string) bool { return o.raw(name) != nil }

func (o object) field(name string) string { return join(o.path, name) }

func (o object) fault(name, message string) { o.faults.add(o.field(name), message) }

// only notes every member that is none of names.
func (o object) only(names ...string) {
	for _, m := range o.members {
		if !slices.Contains(names, m.name) {
			o.fault(m.name, "unknown")
		}
	}
}

// must notes that a member is missing.
func (o object) must(name string) {
	if !o.broken && !o.has(name) {
		o.fault(name, "required")
	}
}

// text reads a string.
func (o object) text(name string) string {
	if text := o.textIfGiven(name); text != nil {
		return *text
	}
	return ""
}

// textIfGiven reads a string; nil where there is none.
func (o object) textIfGiven(name string) *string {
	raw := o.raw(name)
	if raw == nil {
		return nil
	}
	text := o.faults.readText(o.field(name), raw)
	return &text
}

// key reads a string that must not be empty where it is given: an empty id is
// a slip of the caller's, and must not pass for the absence of a condition.
func (o object) key(name string) string {
	text := o.textIfGiven(name)
	if text == nil {
		return ""
	}
	if kindOf(o.raw(name)) == "a string" && *text == "" {
		o.fault(name, "must not be empty")
	}
	return *text
}

// agentOr reads the agentId, for routes that take it as a query parameter too, which
// is given.
func (o object) agentOr(inQuery string) string { return o.keyOr(agentIDParam, inQuery) }

// ownerOr reads the resourceId that must own what the request is about, for routes
// that take it as a query parameter too, which is given.
func (o object) ownerOr(inQuery string) string { return o.keyOr("resourceId", inQuery) }

// keyOr reads a key that may be a query parameter as well, which is given: where both
// are there they must be the same.
func (o object) keyOr(name, inQuery string) string {
	key := o.key(name)
	if key == "" {
		return inQuery
	}
	if inQuery != "" && inQuery != key {
		o.fault(name, "differs from the query parameter")
	}
	return key
}

// count reads an integer from 0; nil where there is none.
func (o object) count(name string) *int {
	raw := o.raw(name)
	if raw == nil {
		return nil
	}
	return o.faults.readCount(o.field(name), string(raw))
}

// readCount reads an integer from 0.
func (f *faults) readCount(path, text string) *int {
	count, err := strconv.ParseUint(text, 10, strconv.IntSize-1)
	if err != nil {
		f.add(path, "want an integer from 0")
		return nil
	}
	n := int(count)
	return &n
}

// flag reads a boolean; false where there is none.
func (o object) flag(name string) bool { return o.flagOr(name, false) }

// flagOr reads a boolean; absent where there is none.
func (o object) flagOr(name string, absent bool) bool {
	switch raw := o.raw(name); string(raw) {
	case "":
		return absent
	case "true":
		return true
	case "false":
		return false
	default:
		o.fault(name, "want a boolean, got "+kindOf(raw))
		return false
	}
}

// date reads a time; nil where there is none.
func (o object) date(name string) *time.Time {
	raw := o.raw(name)
	if raw == nil {
		return nil
	}
	text, _ := strictjson.Text(raw)
	date, ok := parseDate(text)
	if !ok {
		o.fault(name, "want a date or an RFC 3339 time with its offset, of the years 0001 to 9999")
		return nil
	}
	return &date
}

// object reads an object; an empty one where there is none.
func (o object) object(name string) object {
	raw := o.raw(name)
	if raw == nil {
		return object{path: o.field(name), faults: o.faults}
	}
	return o.faults.readObject(o.field(name), raw)
}

// rawObject reads an object without looking into it.
func (o object) rawObject(name string) json.RawMessage {
	raw := o.raw(name)
	if raw != nil && kindOf(raw) != "an object" {
		o.fault(name, "want an object, got "+kindOf(raw))
		return nil
	}
	return raw
}

// values reads an object as a map; nil where there is none.
func (o object) values(name string) map[string]any {
	raw := o.raw(name)
	if raw == nil {
		return nil
	}
	return o.faults.readValues(o.field(name), raw)
}

// readValues reads the object at path as a map. Numbers keep all their digits.
func (f *faults) readValues(path string, raw json.RawMessage) map[string]any {
	if kind := kindOf(raw); kind != "an object" {
		f.add(path, "want an object, got "+kind)
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var values map[string]any
	if err := decoder.Decode(&values); err != nil {
		panic("checked JSON does not decode: " + err.Error())
	}
	return values
}

// array reads an array; nil where there is none.
func (o object) array(name string) []json.RawMessage {
	raw := o.raw(name)
	if raw == nil {
		return nil
	}
	return o.faults.readArray(o.field(name), raw)
}

// texts reads an array of strings; nil where there is none.
func (o object) texts(name string) []string {
	raw := o.raw(name)
	if raw == nil {
		return nil
	}
	return o.faults.readTexts(o.field(name), raw)
}

// objects reads an array of objects; nil where there is none.
func (o object) objects(name string) []object {
	raw := o.raw(name)
	if raw == nil {
		return nil
	}
	return o.faults.readObjects(o.field(name), raw)
}

// readObjects reads the array of objects at path.
func (f *faults) readObjects(path string, raw json.RawMessage) []object {
	elements := f.readArray(path, raw)
	objects := make([]object, len(elements))
	for i, element := range elements {
		objects[i] = f.readObject(indexed(path, i), element)
	}
	return objects
}

func indexed(path string, i int) string { return join(path, strconv.Itoa(i)) }

// kindOf names the kind of a checked JSON value, for messages.
func kindOf(raw json.RawMessage) string {
	switch bytes.TrimLeft(raw, " \t\r\n")[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// rfc3339 is stricter than time.Parse, which takes hours of one digit, a comma
// for the point, and offsets of a day and more.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// parseDate reads an RFC 3339 time, or a date for its midnight in UTC.
func parseDate(text string) (time.Time, bool) {
	if len(text) == len(time.DateOnly) {
		text += "T00:00:00Z"
	}
	if !rfc3339.MatchString(text) {
		return time.Time{}, false
	}
	date, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, false
	}
	date = date.UTC()
	// Go's zero time, the first instant of year 1, means that none was given.
	return date, date.Year() >= 1 && date.Year() <= 9999 && !date.IsZero()
}

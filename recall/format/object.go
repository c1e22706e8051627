package format

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pgrecall/pgrecall/recall/strictjson"
)

// object is a JSON object: its members in order, their values as the bytes they
// came in. nil stands for what is no object.
type object []member

type member struct {
	name  string
	value json.RawMessage
}

// readObject reads JSON whose syntax is known to be valid.
func readObject(value json.RawMessage) object {
	if kindOf(value) != '{' {
		return nil
	}
	o := object{}
	for name, raw := range strictjson.Members(value) {
		o = append(o, member{name, raw})
	}
	return o
}

// readObjects reads an array, without those of its elements that are no objects.
func readObjects(array json.RawMessage) []object {
	var objects []object
	for element := range strictjson.Elements(array) {
		if o := readObject(element); o != nil {
			objects = append(objects, o)
		}
	}
	return objects
}

// kindOf gives the first character of a value; 0 where there is none.
func kindOf(value json.RawMessage) byte {
	if value = bytes.TrimLeft(value, " \t\r\n"); len(value) > 0 {
		return value[0]
	}
	return 0
}

// raw gives a member's value; nil where there is none.
func (o object) raw(name string) json.RawMessage {
	if i := o.index(name); i >= 0 {
		return o[i].value
	}
	return nil
}

// index gives the place of a member, the last should its name be there twice; -1
// where there is none.
func (o object) index(name string) int {
	for i, m := range slices.Backward(o) {
		if m.name == name {
			return i
		}
	}
	return -1
}

// given gives a member's value; nil where there is none or it is null.
func (o object) given(name string) json.RawMessage {
	if value := o.raw(name); kindOf(value) != 'n' {
		return value
	}
	return nil
}

// text gives a member that is a string; empty where it is none.
func (o object) text(name string) string {
	text, _ := strictjson.Text(o.raw(name))
	return text
}

// textOf gives the first member of names that is a string and not empty.
func (o object) textOf(names ...string) string {
	for _, name := range names {
		if text := o.text(name); text != "" {
			return text
		}
	}
	return ""
}

// at gives the object that a path of names leads to.
func (o object) at(path ...string) object {
	for _, name := range path {
		o = readObject(o.raw(name))
	}
	return o
}

// with gives the object with a member set, at its place if there is one; the
// same object for a value of nil.
func (o object) with(name string, value json.RawMessage) object {
	if value == nil {
		return o
	}
	i := o.index(name)
	if i < 0 {
		return append(slices.Clip(o), member{name, value})
	}
	o = slices.Clone(o)
	o[i].value = value
	return o
}

// withText is with for a text; the same object for an empty one.
func (o object) withText(name, text string) object {
	if text == "" {
		return o
	}
	return o.with(name, quote(text))
}

// json encodes the object.
func (o object) json() json.RawMessage {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, quote(m.name)...)
		b = append(append(b, ':'), m.value...)
	}
	return append(b, '}')
}

// typed is the beginning of a part or block.
func typed(kind string) object { return object{{"type", quote(kind)}} }

func quote(text string) json.RawMessage {
	// It fails on invalid UTF-8 only, which it replaces.
	quoted, _ := jsontext.AppendQuote(nil, text)
	return quoted
}

func array(elements []json.RawMessage) json.RawMessage {
	b := []byte{'['}
	for i, element := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, element...)
	}
	return append(b, ']')
}

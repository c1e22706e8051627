package recall

import (
	"encoding/json"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pgrecall/pgrecall/recall/strictjson"
)

// mergePatch applies a JSON merge patch (RFC 7396) to a document. Both have passed
// strictjson.Check; a document that is empty is none yet. What stays keeps its place
// and its bytes, what is new comes last.
func mergePatch(document, patch json.RawMessage) json.RawMessage {
	if jsonKind(patch) != '{' {
		return patch
	}
	merged := memberList(document)
	for name, value := range strictjson.Members(patch) {
		at := slices.IndexFunc(merged, func(m jsonMember) bool { return m.name == name })
		switch {
		case jsonKind(value) == 'n' && at >= 0:
			merged = slices.Delete(merged, at, at+1)
		case jsonKind(value) == 'n':
		case at >= 0:
			merged[at].value = mergePatch(merged[at].value, value)
		default:
			merged = append(merged, jsonMember{name, mergePatch(nil, value)})
		}
	}
	return appendObject(nil, merged)
}

// jsonMember is one of an object whose order is kept.
type jsonMember struct {
	name  string
	value json.RawMessage
}

// memberList splits an object; nil for anything else.
func memberList(value json.RawMessage) []jsonMember {
	var list []jsonMember
	if jsonKind(value) != '{' {
		return nil
	}
	for name, value := range strictjson.Members(value) {
		list = append(list, jsonMember{name, value})
	}
	return list
}

func appendObject(b []byte, members []jsonMember) []byte {
	b = append(b, '{')
	for i, member := range members {
		if i > 0 {
			b = append(b, ',')
		}
		// It fails on invalid UTF-8 only, which has been refused.
		b, _ = jsontext.AppendQuote(b, member.name)
		b = append(append(b, ':'), member.value...)
	}
	return append(b, '}')
}

package strictjson

import (
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// Members yields the members of an object that has passed [Check], in order,
// each value as the bytes it came in. Of any other value it yields nothing.
func Members(value []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		i := skipSpace(value, 0)
		if i == len(value) || value[i] != '{' {
			return
		}
		for i = skipSpace(value, i+1); value[i] != '}'; {
			end := skipString(value, i)
			name := unquote(value[i:end])
			i = skipSpace(value, skipSpace(value, end)+1) // over the colon
			end = skipValue(value, i)
			if !yield(name, value[i:end:end]) {
				return
			}
			i = skipComma(value, end)
		}
	}
}

// Elements yields the elements of an array that has passed [Check], each as the
// bytes it came in. Of any other value it yields nothing.
func Elements(value []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := skipSpace(value, 0)
		if i == len(value) || value[i] != '[' {
			return
		}
		for i = skipSpace(value, i+1); value[i] != ']'; {
			end := skipValue(value, i)
			if !yield(value[i:end:end]) {
				return
			}
			i = skipComma(value, end)
		}
	}
}

// Text gives the characters of a string that has passed [Check].
func Text(value []byte) (text string, ok bool) {
	i := skipSpace(value, 0)
	if i == len(value) || value[i] != '"' {
		return "", false
	}
	return unquote(value[i:skipString(value, i)]), true
}

func unquote(quoted []byte) string {
	for _, c := range quoted {
		if c == '\\' {
			// The checked string cannot fail to unquote.
			text, _ := jsontext.AppendUnquote(nil, quoted)
			return string(text)
		}
	}
	return string(quoted[1 : len(quoted)-1])
}

func skipSpace(value []byte, i int) int {
	for i < len(value) && (value[i] == ' ' || value[i] == '\t' || value[i] == '\r' || value[i] == '\n') {
		i++
	}
	return i
}

// skipComma goes to the next member or element, or to the closing bracket.
func skipComma(value []byte, i int) int {
	i = skipSpace(value, i)
	if value[i] == ',' {
		return skipSpace(value, i+1)
	}
	return i
}

func skipString(value []byte, i int) int {
	for i++; value[i] != '"'; i++ {
		if value[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// skipValue counts brackets only: Check has seen that they match.
func skipValue(value []byte, i int) int {
	for open := 0; ; {
		switch value[i] {
		case '"':
			i = skipString(value, i)
		case '{', '[':
			open++
			i++
		case '}', ']':
			open--
			i++
		case ',', ':', ' ', '\t', '\r', '\n':
			i++
		default:
			i = skipLiteral(value, i)
		}
		if open == 0 {
			return i
		}
	}
}

func skipLiteral(value []byte, i int) int {
	for i < len(value) {
		switch value[i] {
		case ',', ']', '}', ' ', '\t', '\r', '\n':
			return i
		}
		i++
	}
	return i
}

// Package strictjson admits only the JSON that PostgreSQL can store and give
// back unchanged.
//
// jsonb keeps one member of each name, has no character U+0000, no unpaired
// surrogate, and expands a number such as 1e130000 to all its digits. Refusing
// these at the door names the place; PostgreSQL would not, or would lose data.
package strictjson

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDigits bounds the digits of one number. A float64 needs at most 17.
const MaxDigits = 100

// maxExponent bounds the exponent of a number, which in a float64 is at least
// -324 and at most 308.
const maxExponent = 324

// maxFieldBytes bounds the path in an [Error], whose keys the caller chose.
const maxFieldBytes = 256

// Error says what is wrong with a JSON value, and where.
type Error struct {
	// Field is the dot path of the place ("messages.0.content.parts.1.text");
	// empty for the value as a whole.
	Field   string
	Message string
	// Unstorable is true of JSON that is valid but that PostgreSQL cannot hold:
	// a NUL character, an unpaired surrogate.
	Unstorable bool
}

func (e *Error) Error() string {
	if e.Field == "" {
		return e.Message
	}
	return e.Field + ": " + e.Message
}

// Check fails with an [*Error] unless value is exactly one JSON value: valid
// UTF-8, no name twice in an object, nested at most depth deep (a scalar has
// depth 0), each number within float64 and at most [MaxDigits] digits, and no
// NUL character or unpaired surrogate in any name or string.
func Check(value []byte, depth int) error {
	// Invalid UTF-8 and surrogates are judged here rather than by the decoder,
	// which does not tell them from broken syntax.
	decoder := jsontext.NewDecoder(bytes.NewBuffer(value), jsontext.AllowInvalidUTF8(true))
	c := checker{decoder: decoder, text: value, depth: depth, utf8: utf8.Valid(value)}
	for {
		if err := c.next(); err != nil {
			return err
		}
		if decoder.StackDepth() == 0 {
			return c.end()
		}
	}
}

type checker struct {
	decoder *jsontext.Decoder
	text    []byte
	depth   int
	utf8    bool // whether all of text is valid, which spares asking each string
}

// next reads one token and judges it.
func (c *checker) next() error {
	start := c.decoder.InputOffset()
	token, err := c.decoder.ReadToken()
	if err != nil {
		return syntaxError(err)
	}
	// raw may begin with white space, a comma or a colon, never with more.
	raw := c.text[start:c.decoder.InputOffset()]
	switch token.Kind() {
	case jsontext.KindBeginObject, jsontext.KindBeginArray:
		if c.decoder.StackDepth() > c.depth {
			return c.fail("nested deeper than "+strconv.Itoa(c.depth), false)
		}
	case jsontext.KindNumber:
		if message := numberFault(bytes.TrimLeft(raw, " \t\r\n,:")); message != "" {
			return c.fail(message, false)
		}
	case jsontext.KindString:
		if !c.utf8 && !utf8.Valid(raw) {
			return c.fail("not valid UTF-8", false)
		}
		if message := escapeFault(raw); message != "" {
			return c.fail(message, true)
		}
	}
	return nil
}

// end fails if anything but white space follows the value.
func (c *checker) end() error {
	if rest := c.text[c.decoder.InputOffset():]; len(bytes.TrimLeft(rest, " \t\r\n")) > 0 {
		return &Error{Message: "more than one JSON value"}
	}
	return nil
}

func (c *checker) fail(message string, unstorable bool) error {
	return &Error{Field: dotPath(c.decoder.StackPointer()), Message: message, Unstorable: unstorable}
}

func syntaxError(err error) error {
	if errors.Is(err, io.EOF) {
		return &Error{Message: "empty, want JSON"}
	}
	var syntactic *jsontext.SyntacticError
	if !errors.As(err, &syntactic) {
		return &Error{Message: "not valid JSON"}
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return &Error{Field: dotPath(syntactic.JSONPointer), Message: "given twice"}
	}
	return &Error{
		Field:   dotPath(syntactic.JSONPointer),
		Message: "not valid JSON at byte " + strconv.FormatInt(syntactic.ByteOffset, 10),
	}
}

func dotPath(pointer jsontext.Pointer) string {
	var path strings.Builder
	for token := range pointer.Tokens() {
		if path.Len() > 0 {
			path.WriteByte('.')
		}
		path.WriteString(token)
		if path.Len() > maxFieldBytes {
			return strings.ToValidUTF8(path.String()[:maxFieldBytes], "") + "…"
		}
	}
	return strings.ToValidUTF8(path.String(), "\uFFFD")
}

// CheckNumber fails with an [*Error] unless number is a JSON number as [Check]
// admits it.
func CheckNumber(number string) error {
	if err := Check([]byte(number), 0); err != nil {
		return err
	}
	if first := number[0]; first != '-' && (first < '0' || first > '9') {
		return &Error{Message: "not a number"}
	}
	return nil
}

// numberFault says what is wrong with a number that is valid JSON; nothing, if
// it is empty.
func numberFault(number []byte) string {
	mantissa, exponent, scientific := number, []byte(nil), false
	if i := bytes.IndexAny(number, "eE"); i >= 0 {
		mantissa, exponent, scientific = number[:i], number[i+1:], true
	}
	if len(number) <= 15 && !scientific {
		return ""
	}
	if digits(mantissa) > MaxDigits {
		return "more than " + strconv.Itoa(MaxDigits) + " digits"
	}
	const outside = "outside the range of a float64"
	// PostgreSQL writes out all zeros that an exponent stands for, also those of 0e-9999.
	if power, err := strconv.Atoi(string(exponent)); scientific && (err != nil || max(power, -power) > maxExponent) {
		return outside
	}
	value, err := strconv.ParseFloat(string(number), 64)
	if err != nil || value == 0 && bytes.ContainsAny(mantissa, "123456789") {
		return outside
	}
	return ""
}

func digits(number []byte) (count int) {
	for _, c := range number {
		if c >= '0' && c <= '9' {
			count++
		}
	}
	return count
}

// escapeFault says what PostgreSQL would refuse in a quoted string; nothing, if
// it is empty.
func escapeFault(quoted []byte) string {
	for {
		i := bytes.IndexByte(quoted, '\\')
		if i < 0 {
			return ""
		}
		quoted = quoted[i+1:]
		if quoted[0] != 'u' {
			quoted = quoted[1:]
			continue
		}
		unit := hexUnit(quoted[1:])
		quoted = quoted[5:]
		switch {
		case unit == 0:
			return "contains a NUL character"
		case unit >= 0xDC00 && unit <= 0xDFFF:
			return "contains an unpaired surrogate"
		case unit >= 0xD800 && unit <= 0xDBFF:
			if !lowSurrogate(quoted) {
				return "contains an unpaired surrogate"
			}
			quoted = quoted[6:]
		}
	}
}

func lowSurrogate(text []byte) bool {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return false
	}
	unit := hexUnit(text[2:])
	return unit >= 0xDC00 && unit <= 0xDFFF
}

// hexUnit reads the four hexadecimal digits that the decoder has seen there.
func hexUnit(text []byte) uint64 {
	unit, _ := strconv.ParseUint(string(text[:4]), 16, 16)
	return unit
}

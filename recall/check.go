package recall

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pgrecall/pgrecall/recall/strictjson"
)

// checker collects what is wrong with a request, field by field.
type checker struct {
	limits     Limits
	issues     []Issue
	unstorable bool
}

func (m *Memory) check() *checker { return &checker{limits: m.limits} }

// maxIssues bounds what an error lists; who has so much wrong needs no more.
const maxIssues = 100

func (c *checker) fail(field, format string, args ...any) {
	if len(c.issues) >= maxIssues {
		return
	}
	c.issues = append(c.issues, Issue{Field: field, Message: fmt.Sprintf(format, args...)})
}

// err gives what was collected as one error, or nil. A value that nobody could
// store makes it CodeUnstorable.
func (c *checker) err() error {
	if len(c.issues) == 0 {
		return nil
	}
	if c.unstorable {
		return &Error{Code: CodeUnstorable, Message: "The request holds text that cannot be stored", Issues: c.issues}
	}
	return &Error{Code: CodeInvalid, Message: "Invalid request", Issues: c.issues}
}

// text bounds a string and refuses what PostgreSQL's type text cannot hold.
func (c *checker) text(field, value string, maxBytes int) {
	switch {
	case len(value) > maxBytes:
		c.fail(field, "is longer than %d bytes", maxBytes)
	case !utf8.ValidString(value):
		c.fail(field, "is not valid UTF-8")
	case strings.IndexByte(value, 0) >= 0:
		c.unstorable = true
		c.fail(field, "holds a NUL character")
	}
}

// id checks an id that may be empty where nothing is asked of it.
func (c *checker) id(field, value string) { c.text(field, value, c.limits.IDBytes) }

func (c *checker) requiredID(field, value string) {
	if value == "" {
		c.fail(field, "is required")
		return
	}
	c.id(field, value)
}

func (c *checker) between(field string, value, low, high int) {
	if value < low || value > high {
		c.fail(field, "must be between %d and %d", low, high)
	}
}

// object checks that value is a JSON object that can be stored.
func (c *checker) object(field string, value json.RawMessage, maxBytes int) {
	if !c.json(field, value, maxBytes) {
		return
	}
	if jsonKind(value) != '{' {
		c.fail(field, "must be an object")
	}
}

// json checks that value is JSON that can be stored, and says whether it is.
func (c *checker) json(field string, value json.RawMessage, maxBytes int) bool {
	if len(value) > maxBytes {
		c.fail(field, "is longer than %d bytes", maxBytes)
		return false
	}
	err := strictjson.Check(value, c.limits.JSONDepth)
	if err == nil {
		return true
	}
	var jsonErr *strictjson.Error
	if errors.As(err, &jsonErr) {
		c.unstorable = c.unstorable || jsonErr.Unstorable
		c.fail(joinField(field, jsonErr.Field), "%s", jsonErr.Message)
		return false
	}
	c.fail(field, "%v", err)
	return false
}

// jsonKind is the first byte of the value, which tells its type.
func jsonKind(value json.RawMessage) byte {
	trimmed := strings.TrimLeft(string(value[:min(len(value), 64)]), " \t\r\n")
	if trimmed == "" {
		return 0
	}
	return trimmed[0]
}

// time refuses what has no four-digit year, which neither RFC 3339 nor every
// client can write.
func (c *checker) time(field string, value *time.Time) {
	if value == nil {
		return
	}
	if year := value.UTC().Year(); year < 1 || year > 9999 {
		c.fail(field, "must be between the years 1 and 9999")
	}
}

func joinField(parts ...string) string {
	named := parts[:0:0]
	for _, part := range parts {
		if part != "" {
			named = append(named, part)
		}
	}
	return strings.Join(named, ".")
}

func itemField(list string, i int, name string) string {
	return joinField(list, strconv.Itoa(i), name)
}

package recall

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Code classifies an [Error]. The server maps each to one HTTP status.
type Code string

// The codes of an [Error].
const (
	CodeInvalid       Code = "invalid"       // the request is malformed or out of range
	CodeUnstorable    Code = "unstorable"    // PostgreSQL cannot hold the value: a NUL, a lone surrogate
	CodeForbidden     Code = "forbidden"     // the thread belongs to another resource, or the caller may not do that
	CodeNotFound      Code = "not_found"     // no such thread or message
	CodeConflict      Code = "conflict"      // the id is taken
	CodeUnprocessable Code = "unprocessable" // it is well-formed and cannot be done
	CodeUnavailable   Code = "unavailable"   // the database is out of reach or too busy; try again
	// CodeVersionMismatch: it has changed since the version that was named.
	CodeVersionMismatch Code = "version_mismatch"
)

// Error is a failure that the caller can act on. Message is safe to show.
type Error struct {
	Code    Code
	Message string
	// Issues names each bad field; empty where no field is to blame.
	Issues []Issue
	// RetryAfter is, of CodeUnavailable, how long what is out of reach is best left
	// alone; 0 when that is not known.
	RetryAfter time.Duration
	// cause is for logs.
	cause error
	// overtaken says that the same transaction may succeed now.
	overtaken bool
}

// Issue says what is wrong with one field, named by its path in the request:
// "messages.3.role".
type Issue struct {
	Field   string
	Message string
}

// Error gives the message and the issues on one line.
func (e *Error) Error() string {
	if len(e.Issues) == 0 {
		return e.Message
	}
	parts := make([]string, len(e.Issues))
	for i, issue := range e.Issues {
		parts[i] = issue.Field + ": " + issue.Message
	}
	return e.Message + ": " + strings.Join(parts, "; ")
}

// Unwrap gives the cause, for logs.
func (e *Error) Unwrap() error { return e.cause }

// codeOf gives the code of an [*Error]; empty for any other.
func codeOf(err error) Code {
	var known *Error
	if errors.As(err, &known) {
		return known.Code
	}
	return ""
}

func errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// The errors whose wording clients of the reference know.
func threadNotFound() *Error   { return errorf(CodeNotFound, "Thread not found") }
func resourceNotFound() *Error { return errorf(CodeNotFound, "Resource not found") }
func wrongResource() *Error {
	return errorf(CodeForbidden, "Access denied: thread belongs to a different resource")
}

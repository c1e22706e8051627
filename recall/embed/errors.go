package embed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The reasons of an [Error], for errors.Is.
var (
	// ErrUnavailable is temporary: the service is down, too busy (429), failing
	// (5xx) or too slow. Try again, not before [Error.RetryAfter].
	ErrUnavailable = errors.New("the embedding service is unavailable")
	// ErrRejected means these texts: the service answered 400, 413 or 422, most
	// often since one of them is too long. Fewer or shorter texts may pass. Of
	// a text that fails alone, [EmbedEach] says this after any answer.
	ErrRejected = errors.New("the embedding service rejected the texts")
	// ErrSettings means any text, most often: the service answered 401, 403, 404 or
	// another 4xx, since the key, the model or the URL is wrong.
	ErrSettings = errors.New("the embedding service refused the request")
	// ErrReply means that the service answered with something that is no
	// answer: too few vectors, other dimensions, values that are not numbers.
	ErrReply = errors.New("the embedding service gave an unusable reply")
)

// Error is the failure of an embedder. Its text is safe to log and to show.
type Error struct {
	// Reason is one of the reasons above.
	Reason error
	// Detail says more in a few words: "status 429", "no answer within 10s".
	Detail string
	// Status is the HTTP status, 0 without an answer.
	Status int
	// RetryAfter is how long the service wants to be left alone, 0 when it did
	// not say. At most an hour.
	RetryAfter time.Duration
	// cause is the error of the context where that ended the call.
	cause error
}

// Error gives reason and detail.
func (e *Error) Error() string {
	parts := []string{e.Reason.Error()}
	if e.Detail != "" {
		parts = append(parts, e.Detail)
	}
	return strings.Join(parts, ": ")
}

// Unwrap gives the reason, and context.DeadlineExceeded where the caller's
// deadline was what ended the call.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.cause}
}

// ContextError is the error of a call that err, of its context, has ended. To
// the caller a deadline is one more service that is too slow; a cancelled call
// is none of the service's doing.
func ContextError(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &Error{Reason: ErrUnavailable, Detail: "no answer before the deadline", cause: err}
	}
	return err
}

// ReplyErrorf is the error of a service that answers, but not as it should.
func ReplyErrorf(format string, args ...any) error {
	return &Error{Reason: ErrReply, Detail: fmt.Sprintf(format, args...)}
}

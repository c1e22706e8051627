// Package service has what the clients of OpenAI's protocol share: what a failed
// request means, in words that tell no secrets, and bounds.
package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// The reasons of an [Error], for errors.Is.
var (
	// ErrUnavailable is temporary: the service is down, too busy (429), failing
	// (5xx) or too slow. Try again, not before [Error.RetryAfter].
	ErrUnavailable = errors.New("the service is unavailable")
	// ErrRejected means what was sent: the service answered 400, 413 or 422, or that
	// it will not answer this.
	ErrRejected = errors.New("the service rejected the texts")
	// ErrSettings means whatever could be sent: the service answered 401, 403, 404 or
	// another 4xx, since the key, the model or the URL is wrong.
	ErrSettings = errors.New("the service refused the request")
	// ErrReply means that the service answered with something that is no answer.
	ErrReply = errors.New("the service gave an unusable reply")
)

// Error is the failure of a request. Its text is safe to log and to show.
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
}

// Error gives reason and detail.
func (e *Error) Error() string { return e.Reason.Error() + ": " + e.Detail }

// Unwrap gives the reason.
func (e *Error) Unwrap() error { return e.Reason }

// MayBeModel says whether another model may do: the service answered 403 or 404.
func (e *Error) MayBeModel() bool {
	return e.Status == http.StatusForbidden || e.Status == http.StatusNotFound
}

// ErrorOf says what a failed request means, of which ctx is the context and timeout
// its time; response is nil without an answer. The client's own error stays out of
// it: it holds the request, with the key and the texts; and so does the service's
// message, which may quote them.
func ErrorOf(ctx context.Context, err error, response *http.Response, timeout time.Duration) *Error {
	var tooLarge *http.MaxBytesError
	var transport *url.Error
	switch {
	case errors.As(err, &tooLarge):
		return &Error{Reason: ErrReply, Detail: fmt.Sprintf("more than %d bytes", tooLarge.Limit)}
	case response != nil && response.StatusCode >= http.StatusBadRequest:
		return statusError(response)
	case ctx.Err() != nil:
		return &Error{Reason: ErrUnavailable, Detail: fmt.Sprintf("no answer within %s", timeout)}
	case errors.As(err, &transport):
		return &Error{Reason: ErrUnavailable, Detail: transport.Err.Error()} // "dial tcp ...: connection refused"
	}
	return &Error{Reason: ErrUnavailable, Detail: "the connection broke"}
}

func statusError(response *http.Response) *Error {
	return &Error{
		Reason:     statusReason(response.StatusCode),
		Detail:     fmt.Sprintf("status %d", response.StatusCode),
		Status:     response.StatusCode,
		RetryAfter: retryAfter(response.Header.Get("Retry-After"), time.Now()),
	}
}

func statusReason(status int) error {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return ErrUnavailable
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return ErrRejected
	}
	if status >= http.StatusInternalServerError {
		return ErrUnavailable
	}
	return ErrSettings
}

// maxRetryAfter bounds what a service can ask for.
const maxRetryAfter = time.Hour

// retryAfter reads a Retry-After header (RFC 9110, 10.2.3): seconds, or a date.
// 0 to maxRetryAfter; 0 when there is none or it makes no sense.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseFloat(header, 64); err == nil {
		if !(seconds > 0) {
			return 0
		}
		return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
	}
	date, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	return max(0, min(date.Sub(now), maxRetryAfter))
}

package server

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
)

// The texts of errors that name fields: they say where the fields were.
const (
	invalidBody  = "Invalid request body"
	invalidQuery = "Invalid query parameters"
	invalidPath  = "Invalid path parameters"
)

// retryAfterSeconds is how long a 503 asks the caller to wait, at least, and where
// nothing better is known.
const retryAfterSeconds = 1

var statusOf = map[recall.Code]int{
	recall.CodeInvalid:       http.StatusBadRequest,
	recall.CodeForbidden:     http.StatusForbidden,
	recall.CodeNotFound:      http.StatusNotFound,
	recall.CodeConflict:      http.StatusConflict,
	recall.CodeUnstorable:    http.StatusUnprocessableEntity,
	recall.CodeUnprocessable: http.StatusUnprocessableEntity,
	recall.CodeUnavailable:   http.StatusServiceUnavailable,

	recall.CodeVersionMismatch: http.StatusPreconditionFailed,
}

// refusal is a request that did not get as far as the memory.
type refusal struct {
	status int
	text   string
	issues []recall.Issue
	// retryAfter is, of a 429 or 503, how long to wait; 0 for not known.
	retryAfter time.Duration
	// cause is for logs.
	cause error
}

func (r *refusal) Error() string { return r.text }

// Unwrap gives the cause, for logs.
func (r *refusal) Unwrap() error { return r.cause }

// writeError answers with the status and body of err.
func writeError(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	r := refusalOf(err, c)
	switch r.status {
	case http.StatusUnauthorized:
		c.Response().Header().Set(echo.HeaderWWWAuthenticate, "Bearer")
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		setRetryAfter(c, r.retryAfter)
	}
	// A failed write means that the caller is gone: there is no one to tell.
	_ = c.JSONBlob(r.status, appendError(nil, r.text, r.issues))
}

// setRetryAfter asks the caller to wait, in whole seconds.
func setRetryAfter(c echo.Context, wait time.Duration) {
	seconds := max(retryAfterSeconds, int(math.Ceil(wait.Seconds())))
	c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(seconds))
}

// refusalOf is the one place where errors become statuses.
func refusalOf(err error, c echo.Context) *refusal {
	var (
		refused  *refusal
		domain   *recall.Error
		fromEcho *echo.HTTPError
	)
	switch {
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &domain) && statusOf[domain.Code] != 0:
		return &refusal{status: statusOf[domain.Code], text: textOf(domain, c), issues: domain.Issues, retryAfter: domain.RetryAfter}
	case errors.As(err, &fromEcho) && fromEcho.Code < http.StatusInternalServerError:
		return &refusal{status: fromEcho.Code, text: http.StatusText(fromEcho.Code)}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &refusal{status: http.StatusServiceUnavailable, text: "The request took too long"}
	default:
		return &refusal{status: http.StatusInternalServerError, text: "Internal server error"}
	}
}

// textOf says for an error that names fields where they were in the request.
func textOf(err *recall.Error, c echo.Context) string {
	switch {
	case err.Code != recall.CodeInvalid || len(err.Issues) == 0:
		return err.Message
	case slices.Contains(c.ParamNames(), err.Issues[0].Field):
		return invalidPath
	case err.Issues[0].Field == agentIDParam && c.QueryParam(agentIDParam) != "":
		return invalidQuery
	case hasBody(c.Request().Method):
		return invalidBody
	default:
		return invalidQuery
	}
}

// causeOf describes for the log what the answer keeps from the caller.
func causeOf(err error) []slog.Attr {
	attrs := []slog.Attr{slog.String("error", err.Error())}
	if cause := errors.Unwrap(err); cause != nil {
		attrs = append(attrs, slog.String("cause", cause.Error()))
	}
	var panicked *panicError
	if errors.As(err, &panicked) {
		attrs = append(attrs, slog.String("stack", string(panicked.stack)))
	}
	return attrs
}

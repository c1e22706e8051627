package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/labstack/echo/v4"
)

// maxRequestIDBytes bounds an X-Request-Id that is kept.
const maxRequestIDBytes = 128

// observe is the outermost layer: it names the request, turns a panic or an
// error into its answer, and logs one line. The line has the route's pattern and
// nothing that the caller wrote, for ids and queries may be personal.
func observe(logger *slog.Logger) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			start := time.Now()
			id := requestID(c.Request())
			c.Response().Header().Set(echo.HeaderXRequestID, id)
			err := recovered(next, c)
			if err != nil {
				c.Error(err)
			}
			attrs := []slog.Attr{
				slog.String("method", c.Request().Method),
				slog.String("route", c.Path()),
				slog.Int("status", c.Response().Status),
				slog.Float64("duration_ms", float64(time.Since(start).Microseconds())/1000),
				slog.Int64("bytes", c.Response().Size),
				slog.String("request_id", id),
			}
			level := levelOf(c.Response().Status)
			if err != nil && level > slog.LevelInfo {
				attrs = append(attrs, causeOf(err)...)
			}
			logger.LogAttrs(c.Request().Context(), level, "request", attrs...)
			return nil
		}
	}
}

// levelOf keeps errors for what someone must look into: the caller's mistakes
// and a busy database are not.
func levelOf(status int) slog.Level {
	switch {
	case status == http.StatusInternalServerError:
		return slog.LevelError
	case status > http.StatusInternalServerError:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}

// deadline bounds the work on a request.
func deadline(timeout time.Duration) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			ctx, cancel := context.WithTimeout(c.Request().Context(), timeout)
			defer cancel()
			c.SetRequest(c.Request().WithContext(ctx))
			return next(c)
		}
	}
}

// routeEscaped makes Echo match the escaped path always. It would otherwise
// match the unescaped one unless the two differ in a way that net/url deems
// worth keeping, and no handler could tell whether a parameter is still escaped.
func routeEscaped(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Request().URL.RawPath = c.Request().URL.EscapedPath()
		return next(c)
	}
}

// requestID keeps the caller's id where it is fit for a header and a log.
func requestID(r *http.Request) string {
	id := r.Header.Get(echo.HeaderXRequestID)
	if id == "" || len(id) > maxRequestIDBytes || !isPrintable(id) {
		return rand.Text()
	}
	return id
}

// isPrintable says whether a text is of printable ASCII characters alone.
func isPrintable(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// panicError is a panic of a handler.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprint("panic: ", e.value) }

func recovered(next echo.HandlerFunc, c echo.Context) (err error) {
	defer func() {
		switch value := recover(); value {
		case nil:
		case http.ErrAbortHandler:
			panic(value)
		default:
			err = &panicError{value: value, stack: debug.Stack()}
		}
	}()
	return next(c)
}

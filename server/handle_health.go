package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
)

// healthz says that the process answers.
func (a api) healthz(c echo.Context) error { return respond(c, []byte(`{"status":"ok"}`)) }

// readyTimeout bounds the wait for the database: whoever asks wants to know now.
const readyTimeout = 2 * time.Second

// readyz says whether the memory can be used, and what it has still to do.
func (a api) readyz(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), readyTimeout)
	defer cancel()
	err := a.memory.Ready(ctx)
	if err == nil {
		var backlog recall.Backlog
		if backlog, err = a.memory.Backlog(ctx); err == nil {
			return respond(c, append(appendBacklog([]byte(`{"status":"ready","backlog":`), backlog), '}'))
		}
	}
	reason := "the database is out of reach"
	var domain *recall.Error
	if errors.As(err, &domain) {
		reason = domain.Message
	}
	setRetryAfter(c, 0)
	body := appendText([]byte(`{"status":"unavailable","error":`), reason)
	return c.JSONBlob(http.StatusServiceUnavailable, append(body, '}'))
}

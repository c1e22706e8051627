package server

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
)

// healthz says that the process answers.
func (a api) healthz(c echo.Context) error { return respond(c, []byte(`{"status":"ok"}`)) }

// readyz says whether the memory can be used.
func (a api) readyz(c echo.Context) error {
	err := a.memory.Ready(c.Request().Context())
	if err == nil {
		return respond(c, []byte(`{"status":"ready"}`))
	}
	reason := "the database is out of reach"
	var domain *recall.Error
	if errors.As(err, &domain) {
		reason = domain.Message
	}
	c.Response().Header().Set(echo.HeaderRetryAfter, retryAfterSeconds)
	body := appendText([]byte(`{"status":"unavailable","error":`), reason)
	return c.JSONBlob(http.StatusServiceUnavailable, append(body, '}'))
}

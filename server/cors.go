package server

import (
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// preflightSeconds is how long browsers go by an answer to whether they may ask.
const preflightSeconds = 600

// crossOrigin lets web pages of other origins read answers. They show their credential
// themselves: the browser adds none of its own.
func crossOrigin(origins []string) echo.MiddlewareFunc {
	return middleware.CORSWithConfig(middleware.CORSConfig{
		AllowOrigins: origins,
		AllowMethods: []string{
			http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		},
		AllowHeaders: []string{
			echo.HeaderAuthorization, echo.HeaderContentType, echo.HeaderContentEncoding, headerKey, headerIfMatch, echo.HeaderXRequestID,
		},
		ExposeHeaders: []string{headerETag, headerReplayed, echo.HeaderXRequestID, echo.HeaderRetryAfter, echo.HeaderWWWAuthenticate},
		MaxAge:        preflightSeconds,
	})
}

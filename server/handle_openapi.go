package server

import (
	_ "embed"
	"net/http"

	"github.com/labstack/echo/v4"
)

// openapiDocument describes every route. Tests hold the server to it.
//
//go:embed openapi.yaml
var openapiDocument []byte

// openapi gives the document that describes the routes.
func (a api) openapi(c echo.Context) error {
	return c.Blob(http.StatusOK, "application/yaml", openapiDocument)
}

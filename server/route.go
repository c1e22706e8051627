package server

import (
	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
)

// handler answers a request with the memory as its caller sees it.
type handler func(api, echo.Context) error

// with gives the api that works on another memory.
func (a api) with(memory *recall.Memory) api {
	a.memory = memory
	return a
}

// users says whom a route is for.
type users struct {
	open    bool // no credential is asked for
	writing bool // not for those who only read
	admin   bool // for operators alone
}

// Those whom routes are for.
var (
	anyone    = users{open: true}
	readers   = users{}
	writers   = users{writing: true}
	watchers  = users{admin: true}
	operators = users{admin: true, writing: true}
)

// routes adds routes to a server.
type routes struct {
	api  api
	echo *echo.Echo
	// open are the paths that no credential is asked for.
	open map[string]bool
}

// add adds a route.
func (r routes) add(allowed users, method, path string, handle handler) {
	if allowed.open {
		r.open[path] = true
		r.echo.Add(method, path, func(c echo.Context) error { return handle(r.api, c) })
		return
	}
	r.echo.Add(method, path, func(c echo.Context) error {
		who := identityOf(c)
		if err := allowed.check(who); err != nil {
			return err
		}
		return handle(r.api.with(r.api.memory.For(who.caller)), c)
	})
}

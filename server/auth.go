package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/server/token"
)

// identity is who sends a request.
type identity struct {
	caller recall.Caller
	admin  bool
}

// operator is whoever sends a request where no credentials are asked for.
var operator = identity{admin: true}

// identityKey is where a request's context has the identity.
const identityKey = "identity"

// identityOf gives who sends a request, which authenticate has found out.
func identityOf(c echo.Context) identity { return c.Get(identityKey).(identity) }

// check refuses those whom a route is not for.
func (u users) check(who identity) error {
	switch {
	case u.admin && !who.admin:
		return &refusal{status: http.StatusForbidden, text: "This is for operators: the credential is not an admin's"}
	case u.writing && who.caller.ReadOnly:
		return &refusal{status: http.StatusForbidden, text: "The credential allows reading only"}
	default:
		return nil
	}
}

// unauthorized refuses a request without a credential that counts. It says no more:
// who guesses learns nothing from it.
func unauthorized() *refusal {
	return &refusal{status: http.StatusUnauthorized, text: "A valid credential is required"}
}

// authenticate finds out who sends a request, unless its path is open to anyone. What
// is no route is closed too.
func (a api) authenticate(open map[string]bool) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if open[c.Path()] {
				return next(c)
			}
			who, err := a.identify(c.Request())
			if err == nil {
				err = a.limiter.take(who.caller)
			}
			if err != nil {
				return err
			}
			c.Set(identityKey, who)
			return next(c)
		}
	}
}

func (a api) identify(r *http.Request) (identity, error) {
	asked, err := a.asksForCredentials(r.Context())
	if err != nil {
		return identity{}, err
	}
	if !asked {
		return operator, a.checkHost(r.Host)
	}
	credential, ok := bearer(r.Header)
	switch {
	case ok && a.config.Keys != nil && strings.HasPrefix(credential, recall.APIKeyPrefix):
		return a.ofKey(r.Context(), credential)
	case ok && a.config.Tokens != nil:
		return a.ofToken(r.Context(), credential)
	default:
		return identity{}, unauthorized()
	}
}

// asksForCredentials says whether there are any that a caller could have.
func (a api) asksForCredentials(ctx context.Context) (bool, error) {
	if a.config.Tokens != nil || a.config.Keys == nil {
		return a.config.Tokens != nil, nil
	}
	return a.config.Keys.Exist(ctx)
}

// ofKey gives whose an API key is.
func (a api) ofKey(ctx context.Context, secret string) (identity, error) {
	key, err := a.config.Keys.Find(ctx, secret)
	var domain *recall.Error
	switch {
	case errors.As(err, &domain) && domain.Code == recall.CodeNotFound:
		return identity{}, unauthorized()
	case err != nil:
		return identity{}, err
	}
	return identity{caller: key.Caller(), admin: key.Admin}, nil
}

// ofToken gives whose a JSON Web Token is.
func (a api) ofToken(ctx context.Context, text string) (identity, error) {
	resource, err := a.config.Tokens.Resource(ctx, text)
	switch {
	case errors.Is(err, token.ErrInvalid):
		return identity{}, unauthorized()
	case errors.Is(err, token.ErrUnavailable):
		return identity{}, &refusal{status: http.StatusServiceUnavailable, text: "The keys of tokens are out of reach", cause: err}
	case err != nil:
		return identity{}, err
	}
	caller, err := a.memory.TokenCaller(resource)
	if err != nil {
		return identity{}, unauthorized()
	}
	return identity{caller: caller}, nil
}

// bearer gives the credential of a request.
func bearer(header http.Header) (credential string, ok bool) {
	values := header.Values(echo.HeaderAuthorization)
	if len(values) != 1 { // which of several counts is anybody's guess
		return "", false
	}
	scheme, credential, ok := strings.Cut(values[0], " ")
	credential = strings.TrimLeft(credential, " ")
	return credential, ok && strings.EqualFold(scheme, "Bearer") && credential != ""
}

// checkHost keeps web pages out of a server that trusts whoever reaches it: a page can
// have its own name point to this machine, and then the browser lets it read.
func (a api) checkHost(host string) error {
	if !a.config.Loopback || isLoopback(host) {
		return nil
	}
	return &refusal{status: http.StatusForbidden, text: "Without credentials this server answers to localhost only"}
}

// isLoopback says whether a Host header names this machine.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

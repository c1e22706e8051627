package server_test

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/server"
	"github.com/pgrecall/pgrecall/server/token"
)

const jwtSecret = "a secret of thirty-two bytes, or more"

// tokens are those signed with the secret.
func tokens(t *testing.T) *token.Verifier {
	t.Helper()
	verifier, err := token.New(token.Config{Secret: jwtSecret})
	require.NoError(t, err)
	return verifier
}

// tokenOf gives the value of a header that shows a token.
func tokenOf(t *testing.T, subject string, lifetime time.Duration) string {
	t.Helper()
	made, err := jwt.NewBuilder().Subject(subject).Expiration(time.Now().Add(lifetime)).Build()
	require.NoError(t, err)
	text, err := jwt.Sign(made, jwt.WithKey(jwa.HS256(), []byte(jwtSecret)))
	require.NoError(t, err)
	return "Bearer " + string(text)
}

func TestATokenIsACredential(t *testing.T) {
	t.Parallel()
	config := quiet()
	config.Tokens = tokens(t)
	g := newGuarded(t, config)
	sam := []string{tokenOf(t, "sam", time.Hour)}
	call(t, g.Server, http.MethodGet, threads, "").wantUnauthorized(t, "although there is no key")
	require.Equal(t, http.StatusOK, g.as(t, sam, http.MethodPost, threads, newThread).status)
	require.Equal(t, http.StatusOK, g.as(t, sam, http.MethodGet, threads+"/t", "").status)
	require.Equal(t, http.StatusForbidden, g.as(t, sam, http.MethodGet, "/api/memory/jobs", "").status)
	require.Equal(t, http.StatusOK, g.as(t, []string{g.key(t, recall.NewAPIKey{Admin: true})}, http.MethodGet, "/api/memory/jobs", "").status)
	for name, authorization := range map[string]string{
		"expired":          tokenOf(t, "sam", -time.Hour),
		"no subject":       tokenOf(t, "", time.Hour),
		"too long a name":  tokenOf(t, strings.Repeat("x", 513), time.Hour),
		"a NUL in it":      tokenOf(t, "a\x00", time.Hour),
		"not signed":       "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJzYW0ifQ.",
		"no token":         "Bearer token",
		"an unknown key":   "Bearer pgr_" + strings.Repeat("A", 43),
		"of another type":  strings.Replace(sam[0], "Bearer", "Token", 1),
		"with a bit more":  sam[0] + "A",
		"with another key": sam[0][:len(sam[0])-2] + "AA",
	} {
		g.as(t, []string{authorization}, http.MethodGet, threads, "").wantUnauthorized(t, name)
	}
}

func TestWithoutAKeyringKeysAreNoCredentials(t *testing.T) {
	t.Parallel()
	config := quiet()
	config.Tokens = tokens(t)
	e := detached(config)
	for _, authorization := range []string{"", "Bearer pgr_" + strings.Repeat("A", 43)} {
		r := request(http.MethodGet, "/api/memory/status", "")
		r.Header.Set("Authorization", authorization)
		send(t, e, r).wantUnauthorized(t)
	}
	r := request(http.MethodGet, "/api/memory/status", "")
	r.Header.Set("Authorization", tokenOf(t, "sam", time.Hour))
	require.Equal(t, http.StatusOK, send(t, e, r).status)
}

// unreachable is a network that leads nowhere.
type unreachable struct{}

func (unreachable) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no way there")
}

func TestWhereTheKeysOfTokensAreOutOfReachIsA503(t *testing.T) {
	t.Parallel()
	verifier, err := token.New(token.Config{JWKSURL: "https://example.com/jwks", Client: &http.Client{Transport: unreachable{}}})
	require.NoError(t, err)
	var log strings.Builder
	config := server.Config{Tokens: verifier, Logger: slog.New(slog.NewJSONHandler(&log, nil))}
	// Of RS256, its signature of no matter.
	const text = "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiJzYW0iLCJleHAiOjk5OTk5OTk5OTl9.c2lnbmF0dXJl"
	r := request(http.MethodGet, "/api/memory/status", "")
	r.Header.Set("Authorization", "Bearer "+text)
	got := send(t, detached(config), r)
	require.Equal(t, http.StatusServiceUnavailable, got.status)
	require.NotEmpty(t, got.header.Get("Retry-After"))
	require.Empty(t, got.header.Get("WWW-Authenticate"))
	assert.Contains(t, log.String(), "no way there")
	assert.NotContains(t, log.String(), "eyJ")
	assert.NotContains(t, string(got.body), "example.com")
}

func TestACallerWhoComesTooOftenIsToldWhenToComeAgain(t *testing.T) {
	t.Parallel()
	published()
	synctest.Test(t, func(t *testing.T) {
		config := quiet()
		config.Tokens, config.RateLimit, config.RateBurst = tokens(t), 2, 3
		e := detached(config)
		sam, eve := tokenOf(t, "sam", time.Hour), tokenOf(t, "eve", time.Hour)
		ask := func(authorization string) answer {
			r := request(http.MethodGet, "/api/memory/status", "")
			r.Header.Set("Authorization", authorization)
			return send(t, e, r)
		}
		for range 3 {
			require.Equal(t, http.StatusOK, ask(sam).status)
		}
		for range 5 {
			got := ask(sam)
			require.Equal(t, http.StatusTooManyRequests, got.status)
			require.Equal(t, "1", got.header.Get("Retry-After"))
			require.JSONEq(t, `{"error":"Too many requests"}`, string(got.body))
		}
		require.Equal(t, http.StatusOK, ask(eve).status, "another caller")
		require.Equal(t, http.StatusUnauthorized, ask("Bearer none").status)
		require.Equal(t, http.StatusOK, send(t, e, request(http.MethodGet, "/healthz", "")).status)
		time.Sleep(499 * time.Millisecond)
		require.Equal(t, http.StatusTooManyRequests, ask(sam).status, "those that were refused do not count")
		time.Sleep(time.Millisecond)
		require.Equal(t, http.StatusOK, ask(sam).status)
		require.Equal(t, http.StatusTooManyRequests, ask(sam).status)
		time.Sleep(time.Hour - time.Minute)
		for range 3 {
			require.Equal(t, http.StatusOK, ask(sam).status)
		}
		require.Equal(t, http.StatusTooManyRequests, ask(sam).status, "the burst is all that is saved up")
	})
}

func TestPagesOfOtherOriginsReadNothingUnlessTheyMay(t *testing.T) {
	t.Parallel()
	const app, other = "https://app.example.com", "https://app.example.com.evil.example"
	for name, test := range map[string]struct {
		origins []string
		origin  string
		want    string
	}{
		"off":          {nil, app, ""},
		"allowed":      {[]string{"https://first.example", app}, app, app},
		"not allowed":  {[]string{app}, other, ""},
		"another port": {[]string{app}, app + ":8443", ""},
		"no https":     {[]string{app}, "http://app.example.com", ""},
		"all":          {[]string{"*"}, other, "*"},
		"no origin":    {[]string{app}, "null", ""},
	} {
		config := quiet()
		config.Tokens, config.CORSOrigins = tokens(t), test.origins
		e := detached(config)
		preflight := httptest.NewRequest(http.MethodOptions, threads, nil)
		preflight.Header.Set("Origin", test.origin)
		preflight.Header.Set("Access-Control-Request-Method", "POST")
		preflight.Header.Set("Access-Control-Request-Headers", "authorization,idempotency-key,if-match")
		got := send(t, e, preflight)
		require.Equal(t, test.want, got.header.Get("Access-Control-Allow-Origin"), name)
		if test.origins == nil {
			got.wantUnauthorized(t, name)
		} else {
			require.Equal(t, http.StatusNoContent, got.status, name)
		}
		if test.want != "" {
			for _, header := range []string{"Authorization", "Idempotency-Key", "If-Match", "Content-Type"} {
				require.Contains(t, got.header.Get("Access-Control-Allow-Headers"), header, name)
			}
			for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
				require.Contains(t, got.header.Get("Access-Control-Allow-Methods"), method, name)
			}
		}
		for authorization, status := range map[string]int{"": http.StatusUnauthorized, tokenOf(t, "sam", time.Hour): http.StatusOK} {
			r := request(http.MethodGet, "/api/memory/status", "")
			r.Header.Set("Origin", test.origin)
			r.Header.Set("Authorization", authorization)
			got := send(t, e, r)
			require.Equal(t, status, got.status, name)
			require.Equal(t, test.want, got.header.Get("Access-Control-Allow-Origin"), name)
			require.Empty(t, got.header.Get("Access-Control-Allow-Credentials"), name)
			if test.want != "" {
				for _, header := range []string{"ETag", "X-Request-Id", "Retry-After"} {
					require.Contains(t, got.header.Get("Access-Control-Expose-Headers"), header, name)
				}
			}
		}
	}
}

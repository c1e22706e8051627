package server_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/server"
)

// guarded is a server that asks for credentials.
type guarded struct {
	*httptest.Server
	memory *recall.Memory
	pool   *pgxpool.Pool
}

// newGuarded gives a server on an empty database that knows API keys.
func newGuarded(t *testing.T, config server.Config) guarded {
	t.Helper()
	pool := dbtest.New(t)
	memory := recall.New(pool, recall.DefaultLimits(), recall.WithEmbedder(embed.Static{}))
	config.Keys = recall.NewKeyring(memory)
	t.Cleanup(config.Keys.Close)
	s := httptest.NewServer(server.New(memory, config))
	t.Cleanup(s.Close)
	return guarded{s, memory, pool}
}

// routes gives the server's router.
func (g guarded) routes() *echo.Echo { return g.Config.Handler.(*echo.Echo) }

// key makes a key and gives the value of a header that shows it.
func (g guarded) key(t *testing.T, in recall.NewAPIKey) string {
	t.Helper()
	secret, _, err := g.memory.CreateAPIKey(t.Context(), in)
	require.NoError(t, err)
	return "Bearer " + secret
}

// as is call with the values of the header Authorization.
func (g guarded) as(t *testing.T, authorization []string, method, target, body string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, g.URL+target, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header["Authorization"] = authorization
	return exchange(t, g.Server, r)
}

const (
	threads   = "/api/memory/threads"
	newThread = `{"threadId":"t","resourceId":"sam"}`
)

// wantUnauthorized checks that an answer asks for a credential, and says no more.
func (a answer) wantUnauthorized(t *testing.T, what ...any) {
	t.Helper()
	assert.Equal(t, http.StatusUnauthorized, a.status, what...)
	assert.Equal(t, "Bearer", a.header.Get("WWW-Authenticate"), what...)
	assert.JSONEq(t, `{"error":"A valid credential is required"}`, string(a.body), what...)
}

func TestWithoutAKeyAllCallersAreTheOperatorUntilThereIsOne(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, quiet())
	require.Equal(t, http.StatusOK, g.as(t, nil, http.MethodPost, threads, newThread).status)
	require.Equal(t, http.StatusOK, g.as(t, []string{"Bearer anything"}, http.MethodGet, "/api/memory/jobs", "").status)
	key := g.key(t, recall.NewAPIKey{})
	eventually(t, func() bool { return g.as(t, nil, http.MethodGet, threads, "").status == http.StatusUnauthorized })
	require.Equal(t, http.StatusOK, g.as(t, []string{key}, http.MethodGet, threads, "").status)
}

func TestWhatIsNoCredentialIsRefusedAlike(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, quiet())
	key := g.key(t, recall.NewAPIKey{})
	secret := strings.TrimPrefix(key, "Bearer ")
	revoked, made, err := g.memory.CreateAPIKey(t.Context(), recall.NewAPIKey{Admin: true})
	require.NoError(t, err)
	require.NoError(t, g.memory.RevokeAPIKey(t.Context(), made.ID))
	expired := g.key(t, recall.NewAPIKey{Lifetime: time.Nanosecond})
	for name, values := range map[string][]string{
		"none":                {},
		"empty":               {""},
		"the scheme alone":    {"Bearer"},
		"no credential":       {"Bearer "},
		"the key alone":       {secret},
		"another scheme":      {"Basic " + secret},
		"a longer scheme":     {"Bearers " + secret},
		"a tab":               {"Bearer\t" + secret},
		"two headers":         {key, key},
		"two credentials":     {key + ", " + key},
		"unknown":             {"Bearer " + recall.APIKeyPrefix + strings.Repeat("A", 43)},
		"in capitals":         {"Bearer " + strings.ToUpper(secret)},
		"cut short":           {key[:len(key)-1]},
		"with a bit more":     {key + "="},
		"without its prefix":  {"Bearer " + strings.TrimPrefix(secret, recall.APIKeyPrefix)},
		"revoked":             {"Bearer " + revoked},
		"expired":             {expired},
		"a JWT":               {"Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJzYW0ifQ."},
		"NUL":                 {"Bearer pgr_\u0000"},
		"of the longest kind": {"Bearer " + strings.Repeat("x", 64<<10)},
	} {
		r := httptest.NewRequest(http.MethodGet, threads, nil)
		r.Header["Authorization"] = values
		send(t, g.Config.Handler, r).wantUnauthorized(t, name)
	}
	for _, scheme := range []string{"Bearer ", "bearer ", "BEARER ", "Bearer   "} {
		got := g.as(t, []string{scheme + secret}, http.MethodGet, threads, "")
		assert.Equal(t, http.StatusOK, got.status, scheme)
		assert.Empty(t, got.header.Get("WWW-Authenticate"))
	}
}

func TestAKeyThatIsRevokedOrExpiresCountsNoLonger(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, quiet())
	secret, key, err := g.memory.CreateAPIKey(t.Context(), recall.NewAPIKey{})
	require.NoError(t, err)
	short := g.key(t, recall.NewAPIKey{Lifetime: 2 * time.Second})
	asked := func(authorization string) int {
		return g.as(t, []string{authorization}, http.MethodGet, threads, "").status
	}
	require.Equal(t, http.StatusOK, asked("Bearer "+secret))
	require.Equal(t, http.StatusOK, asked(short))
	require.NoError(t, g.memory.RevokeAPIKey(t.Context(), key.ID))
	eventually(t, func() bool { return asked("Bearer "+secret) == http.StatusUnauthorized })
	eventually(t, func() bool { return asked(short) == http.StatusUnauthorized })
}

func TestAllButThreePathsAreClosed(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, quiet())
	key := g.key(t, recall.NewAPIKey{})
	for _, path := range []string{"/healthz", "/readyz", "/openapi.yaml"} {
		assert.Equal(t, http.StatusOK, call(t, g.Server, http.MethodGet, path, "").status, path)
	}
	eachRoute(g.routes(), "t", func(method, path string) {
		call(t, g.Server, method, path, "{}").wantUnauthorized(t, method, path)
	})
	for _, path := range []string{"/api", "/api/", "/api/memory", "/api/memory/nothing", "/API/memory/threads", "/api//memory/threads", "/", "/nothing", "/healthz/"} {
		call(t, g.Server, http.MethodGet, path, "").wantUnauthorized(t, path)
		assert.Equal(t, http.StatusNotFound, g.as(t, []string{key}, http.MethodGet, path, "").status, path)
	}
	call(t, g.Server, http.MethodDelete, threads, "").wantUnauthorized(t)
	assert.Equal(t, http.StatusMethodNotAllowed, g.as(t, []string{key}, http.MethodDelete, threads, "").status)
}

// What those may do who do not do everything. A route that is new is not in it: it
// must be refused to readers where it may write, and to all but operators never.
var (
	readByPost = []string{
		"/api/memory/recall", "/api/memory/context", "/api/memory/processors/semantic-recall/input",
		"/api/memory/processors/working-memory/input", "/api/memory/processors/message-history/input",
	}
	forOperators = []string{"GET /api/memory/jobs", "POST /api/memory/jobs/retry", "PUT /api/memory/config"}
)

func TestWhoMayDoWhatOnEveryRoute(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, quiet())
	for _, test := range []struct {
		name string
		key  recall.NewAPIKey
	}{
		{"any resource", recall.NewAPIKey{}},
		{"one resource", recall.NewAPIKey{Resource: "sam"}},
		{"a prefix", recall.NewAPIKey{Prefix: "s"}},
		{"read-only", recall.NewAPIKey{ReadOnly: true}},
		{"read-only, one resource", recall.NewAPIKey{Resource: "sam", ReadOnly: true}},
		{"admin", recall.NewAPIKey{Admin: true}},
		{"read-only admin", recall.NewAPIKey{Admin: true, ReadOnly: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			key := g.key(t, test.key)
			eachRoute(g.routes(), "absent", func(method, path string) {
				writes := method != http.MethodGet && !slices.Contains(readByPost, path)
				want := writes && test.key.ReadOnly || !test.key.Admin && slices.Contains(forOperators, method+" "+path)
				// Refused before anything is read of it, it may be anything.
				got := g.as(t, []string{key}, method, path, `{"unknown":1}`)
				assert.Equal(t, want, got.status == http.StatusForbidden, "%s %s: %d %s", method, path, got.status, got.body)
				assert.NotEqual(t, http.StatusInternalServerError, got.status, "%s %s", method, path)
			})
		})
	}
}

func TestEachCallerHasIdempotencyKeysOfHisOwn(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, quiet())
	post := func(key, target, body string) answer {
		t.Helper()
		r := request(http.MethodPost, target, body)
		r.Header.Set("Authorization", key)
		r.Header.Set("Idempotency-Key", "k")
		return send(t, g.Config.Handler, r)
	}
	one, other := g.key(t, recall.NewAPIKey{Resource: "sam"}), g.key(t, recall.NewAPIKey{Resource: "sam"})
	first := post(one, threads, `{"resourceId":"sam"}`)
	first.wantFirst(t)
	second := post(other, threads, `{"resourceId":"sam"}`)
	second.wantFirst(t)
	require.NotEqual(t, string(first.body), string(second.body))
	post(one, threads, `{"resourceId":"sam"}`).wantReplayOf(t, first)
	post(other, threads, `{"resourceId":"sam"}`).wantReplayOf(t, second)
	post(one, threads, `{"resourceId":"sam","title":"Tea"}`).wantConflict(t)
	third := g.key(t, recall.NewAPIKey{})
	const question = `{"resourceId":"sam","perPage":1}`
	post(third, "/api/memory/recall", question).wantFirst(t)
	post(one, "/api/memory/recall", question).wantConflict(t)
}

func TestWithoutCredentialsALocalServerAnswersToLocalhostAlone(t *testing.T) {
	t.Parallel()
	config := quiet()
	config.Loopback = true
	g := newGuarded(t, config)
	get := func(host, authorization string) int {
		t.Helper()
		r := request(http.MethodGet, threads, "")
		r.Host = host
		r.Header.Set("Authorization", authorization)
		return send(t, g.Config.Handler, r).status
	}
	good := []string{"localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:1", "127.1.2.3", "[::1]", "[::1]:8080"}
	bad := []string{
		"", "example.com", "example.com:8080", "localhost.example.com", "127.0.0.1.example.com", "example.com:127.0.0.1", "10.0.0.1", "[::2]",
		"0.0.0.0", "localhost@example.com",
	}
	for _, host := range good {
		assert.Equal(t, http.StatusOK, get(host, ""), host)
	}
	for _, host := range bad {
		assert.Equal(t, http.StatusForbidden, get(host, ""), host)
	}
	key := g.key(t, recall.NewAPIKey{})
	eventually(t, func() bool { return get("localhost", "") == http.StatusUnauthorized })
	for _, host := range slices.Concat(good, bad) {
		assert.Equal(t, http.StatusOK, get(host, key), host)
	}
}

func TestWhereCredentialsCannotBeLookedUpNobodyGetsIn(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	memory := recall.New(pool, recall.DefaultLimits())
	secret, _, err := memory.CreateAPIKey(t.Context(), recall.NewAPIKey{})
	require.NoError(t, err)
	for name, known := range map[string]bool{"whether there are any": false, "whose this is": true} {
		config := quiet()
		config.Keys = recall.NewKeyring(memory)
		if known {
			_, err := config.Keys.Exist(t.Context())
			require.NoError(t, err)
		}
		e := server.New(memory, config)
		_, err := pool.Exec(t.Context(), `ALTER TABLE recall.api_keys RENAME TO away`)
		require.NoError(t, err)
		r := request(http.MethodGet, threads, "")
		r.Header.Set("Authorization", "Bearer "+secret)
		got := send(t, e, r)
		assert.Equal(t, http.StatusServiceUnavailable, got.status, name)
		assert.NotEmpty(t, got.header.Get("Retry-After"), name)
		_, err = pool.Exec(context.WithoutCancel(t.Context()), `ALTER TABLE recall.away RENAME TO api_keys`)
		require.NoError(t, err)
		config.Keys.Close()
	}
}

// Of credentials logs have nothing, whatever becomes of a request.
func TestNoCredentialIsLogged(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	config := server.Config{
		Logger: slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), Tokens: tokens(t),
	}
	g := newGuarded(t, config)
	for _, credential := range []string{
		g.key(t, recall.NewAPIKey{}), g.key(t, recall.NewAPIKey{ReadOnly: true}),
		"Bearer pgr_secretsecretsecretsecretsecretsecretsecret", "Basic secret", "Bearer secret.secret.secret", tokenOf(t, "sam", time.Hour), tokenOf(t, "sam", -time.Hour),
	} {
		eachRoute(g.routes(), "absent", func(method, path string) {
			r := request(method, path, `{}`)
			r.Header.Set("Authorization", credential)
			send(t, g.Config.Handler, r)
		})
		_, secret, _ := strings.Cut(credential, " ")
		assert.NotContains(t, log.String(), secret)
	}
	assert.NotContains(t, log.String(), "secret")
	assert.Contains(t, log.String(), `"status":401`)
}

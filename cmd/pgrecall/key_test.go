package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
)

func TestKeysByCommand(t *testing.T) {
	t.Parallel()
	flag := "--database-url=" + dbtest.URL(t)
	create := func(args ...string) string {
		t.Helper()
		got := execute(t, append([]string{"key", "create", flag}, args...)...)
		require.Equal(t, exitOK, got.code, got.log)
		require.Regexp(t, `^pgr_[A-Za-z0-9_-]{43}\n$`, got.out, "the key alone")
		require.Empty(t, got.log)
		return strings.TrimSpace(got.out)
	}
	secrets := []string{
		create(), create("--admin", "--name=ops"), create("--resource=sam", "--expires=12h"), create("--prefix=team:", "--read-only", "--expires=90d"),
	}
	shown := decode(t, execute(t, "key", "create", "--json", "--name=last", flag))
	require.Regexp(t, `^pgr_`, shown["key"])
	require.EqualValues(t, 5, shown["id"])

	require.Equal(t, exitOK, execute(t, "key", "revoke", "2", flag).code)
	require.Equal(t, map[string]any{"revoked": 2.0}, decode(t, execute(t, "key", "revoke", "2", "--json", flag)))
	assert.Equal(t, exitFailed, execute(t, "key", "revoke", "99", flag).code)
	assert.Equal(t, exitUsage, execute(t, "key", "revoke", secrets[0], flag).code)

	list := execute(t, "key", "list", flag)
	require.Equal(t, exitOK, list.code, list.log)
	for _, want := range []string{"ops", `resource "sam"`, `resources "team:"..., read-only`, "everything", "all resources", "revoked 2", "never"} {
		assert.Contains(t, list.out, want)
	}
	listed := execute(t, "key", "list", "--json", flag)
	for _, secret := range secrets {
		assert.NotContains(t, list.out+listed.out, strings.TrimPrefix(secret, "pgr_"))
	}
	var keys struct {
		Keys []struct {
			ID                             int64
			Name, Resource, Prefix         string
			Admin, ReadOnly                bool
			CreatedAt                      time.Time
			ExpiresAt, RevokedAt, LastUsed *time.Time
		}
	}
	require.NoError(t, json.Unmarshal([]byte(listed.out), &keys))
	require.Len(t, keys.Keys, 5)
	assert.True(t, keys.Keys[1].Admin)
	assert.NotNil(t, keys.Keys[1].RevokedAt)
	assert.Equal(t, "sam", keys.Keys[2].Resource)
	assert.Equal(t, 12*time.Hour, keys.Keys[2].ExpiresAt.Sub(keys.Keys[2].CreatedAt))
	assert.True(t, keys.Keys[3].ReadOnly)
	assert.Equal(t, 90*24*time.Hour, keys.Keys[3].ExpiresAt.Sub(keys.Keys[3].CreatedAt))
	assert.Nil(t, keys.Keys[4].ExpiresAt)
}

func TestBadSettingsOfAKeyAreUsageErrors(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"--admin --resource=sam", "--admin --prefix=s", "--resource=sam --prefix=s", "--resource=", "--prefix=",
		"--expires=0s", "--expires=-1h", "--expires=0d", "--expires=90", "--expires=d", "--expires=1.5d", "--expires=200000d",
	} {
		got := execute(t, append([]string{"key", "create", "--database-url=postgres://localhost/none"}, strings.Fields(args)...)...)
		assert.Equal(t, exitUsage, got.code, args)
		assert.Contains(t, got.log, strings.SplitN(strings.Fields(args)[0], "=", 2)[0], args)
	}
}

func TestKeysNeedTheSchema(t *testing.T) {
	t.Parallel()
	got := execute(t, "key", "create", "--database-url="+dbtest.EmptyURL(t))
	assert.Equal(t, exitFailed, got.code)
	assert.Contains(t, got.log, "migrate up")
}

// serving runs serve until the test ends, and gives what it announces.
func serving(t *testing.T, args ...string) (announced string, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out := make(lines, 10)
	code := make(chan int, 1)
	var log strings.Builder
	go func() { code <- run(ctx, append([]string{"serve"}, args...), terminal{out: out, log: &log}) }()
	stop = func() int {
		cancel()
		return <-code
	}
	select {
	case announced = <-out:
	case failed := <-code:
		code <- failed
		cancel()
		announced = log.String()
	}
	return announced, stop
}

func TestAnOpenAddressNeedsCredentialsOrToBeInsecure(t *testing.T) {
	t.Parallel()
	flag := "--database-url=" + dbtest.URL(t)
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "example.org:0"} {
		text, stop := serving(t, flag, "--addr="+addr)
		assert.Equal(t, exitUsage, stop(), addr)
		for _, name := range []string{"PGRECALL_ADDR", "--addr", "--insecure", "key create"} {
			assert.Contains(t, text, name, addr)
		}
	}
	text, stop := serving(t, flag, "--addr=0.0.0.0:0", "--insecure")
	assert.Contains(t, text, "WHOEVER CAN REACH IT")
	assert.Equal(t, exitOK, stop())

	text, stop = serving(t, flag, "--addr=0.0.0.0:0", "--jwt-secret=a secret of thirty-two bytes, or more")
	assert.Contains(t, text, "need a credential")
	assert.Equal(t, exitOK, stop())

	secret := strings.TrimSpace(execute(t, "key", "create", flag).out)
	text, stop = serving(t, flag, "--addr=0.0.0.0:0")
	assert.Contains(t, text, "need a credential")
	assert.NotContains(t, text, "no credentials")
	_, base, _ := strings.Cut(text, "The API is at ")
	base, _, _ = strings.Cut(base, "/api\n")
	assert.Equal(t, http.StatusUnauthorized, statusOf(t, base+"/api/memory/threads", ""))
	assert.Equal(t, http.StatusOK, statusOf(t, base+"/api/memory/threads", secret))
	assert.Equal(t, exitOK, stop())
}

// statusOf asks with a credential, or without one.
func statusOf(t *testing.T, url, credential string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if credential != "" {
		request.Header.Set("Authorization", "Bearer "+credential)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	return response.StatusCode
}

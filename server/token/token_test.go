package token_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/server/token"
)

const secret = "a secret of thirty-two bytes, or more"

var start = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// claims are those of a token that counts, with some set otherwise; nil for none.
func claims(set map[string]any) map[string]any {
	all := map[string]any{"sub": "sam", "exp": start.Add(time.Hour).Unix()}
	maps.Copy(all, set)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	return all
}

// signed gives a token.
func signed(t *testing.T, algorithm jwa.SignatureAlgorithm, key any, header, claims map[string]any) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	require.NoError(t, err)
	headers := jws.NewHeaders()
	for name, value := range header {
		require.NoError(t, headers.Set(name, value))
	}
	text, err := jws.Sign(payload, jws.WithKey(algorithm, key, jws.WithProtectedHeaders(headers)))
	require.NoError(t, err)
	return string(text)
}

// part gives a part of a token as it is written.
func part(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func bySecret(t *testing.T, set func(*token.Config)) *token.Verifier {
	t.Helper()
	config := token.Config{Secret: secret, Now: func() time.Time { return start }}
	if set != nil {
		set(&config)
	}
	verifier, err := token.New(config)
	require.NoError(t, err)
	return verifier
}

func TestAResourceIsTakenFromItsClaim(t *testing.T) {
	t.Parallel()
	for claim, set := range map[string]map[string]any{
		"": nil, "sub": nil, "user_id": {"sub": nil, "user_id": "sam"}, "https://example.com/user": {"sub": "other", "https://example.com/user": "sam"},
	} {
		v := bySecret(t, func(c *token.Config) { c.Claim = claim })
		resource, err := v.Resource(t.Context(), signed(t, jwa.HS256(), []byte(secret), nil, claims(set)))
		require.NoError(t, err, claim)
		require.Equal(t, "sam", resource)
	}
}

func TestATokenThatDoesNotCountIsInvalid(t *testing.T) {
	t.Parallel()
	at := func(by time.Duration) int64 { return start.Add(by).Unix() }
	for name, test := range map[string]struct {
		claims map[string]any
		want   bool
	}{
		"good":                {nil, true},
		"expired":             {map[string]any{"exp": at(-time.Minute)}, false},
		"expired just now":    {map[string]any{"exp": at(-20 * time.Second)}, true},
		"never ends":          {map[string]any{"exp": nil}, false},
		"ends at no time":     {map[string]any{"exp": "soon"}, false},
		"not yet":             {map[string]any{"nbf": at(time.Minute)}, false},
		"very soon":           {map[string]any{"nbf": at(20 * time.Second)}, true},
		"no subject":          {map[string]any{"sub": nil}, false},
		"an empty subject":    {map[string]any{"sub": ""}, false},
		"a number as subject": {map[string]any{"sub": 7}, false},
		"a list as subject":   {map[string]any{"sub": []string{"sam"}}, false},
		"null as subject":     {map[string]any{"sub": json.RawMessage("null")}, false},
	} {
		_, err := bySecret(t, nil).Resource(t.Context(), signed(t, jwa.HS256(), []byte(secret), nil, claims(test.claims)))
		if test.want {
			require.NoError(t, err, name)
		} else {
			assert.Equal(t, token.ErrInvalid, err, name)
		}
	}
	for name, test := range map[string]struct {
		claims map[string]any
		want   bool
	}{
		"both":           {map[string]any{"aud": []string{"other", "us"}, "iss": "issuer"}, true},
		"no audience":    {map[string]any{"iss": "issuer"}, false},
		"other audience": {map[string]any{"aud": "other", "iss": "issuer"}, false},
		"other issuer":   {map[string]any{"aud": "us", "iss": "issuer2"}, false},
	} {
		v := bySecret(t, func(c *token.Config) { c.Audience, c.Issuer = "us", "issuer" })
		_, err := v.Resource(t.Context(), signed(t, jwa.HS256(), []byte(secret), nil, claims(test.claims)))
		assert.Equal(t, test.want, err == nil, name)
	}
}

func TestWhatIsNotSignedWithTheSecretIsInvalid(t *testing.T) {
	t.Parallel()
	good := signed(t, jwa.HS256(), []byte(secret), nil, claims(nil))
	pieces := strings.Split(good, ".")
	other := strings.Split(signed(t, jwa.HS256(), []byte(secret), nil, claims(map[string]any{"sub": "eve"})), ".")
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	for name, text := range map[string]string{
		"empty":                 "",
		"dots":                  "..",
		"no signature":          pieces[0] + "." + pieces[1] + ".",
		"two parts":             pieces[0] + "." + pieces[1],
		"four parts":            good + ".",
		"another's payload":     pieces[0] + "." + other[1] + "." + pieces[2],
		"none":                  part(`{"alg":"none"}`) + "." + pieces[1] + ".",
		"None, signed":          part(`{"alg":"None"}`) + "." + pieces[1] + "." + pieces[2],
		"no algorithm":          part(`{}`) + "." + pieces[1] + "." + pieces[2],
		"another secret":        signed(t, jwa.HS256(), []byte(secret+"!"), nil, claims(nil)),
		"HS512":                 signed(t, jwa.HS512(), []byte(strings.Repeat(secret, 2)), nil, claims(nil)),
		"HS384":                 signed(t, jwa.HS384(), []byte(strings.Repeat(secret, 2)), nil, claims(nil)),
		"RS256":                 signed(t, jwa.RS256(), rsaKey, nil, claims(nil)),
		"critical headers":      signed(t, jwa.HS256(), []byte(secret), map[string]any{"crit": []string{"x"}, "x": 1}, claims(nil)),
		"a payload of no JSON":  strings.Join([]string{pieces[0], part("sam"), pieces[2]}, "."),
		"JSON":                  `{"payload":"` + pieces[1] + `","protected":"` + pieces[0] + `","signature":"` + pieces[2] + `"}`,
		"of more than its size": signed(t, jwa.HS256(), []byte(secret), nil, claims(map[string]any{"x": strings.Repeat("x", 16<<10)})),
	} {
		_, err := bySecret(t, nil).Resource(t.Context(), text)
		assert.Equal(t, token.ErrInvalid, err, name)
	}
}

func TestABadConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	for _, config := range []token.Config{
		{}, {Secret: secret, JWKSURL: "https://example.com/jwks"}, {Secret: strings.Repeat("x", 31)},
		{JWKSURL: "example.com/jwks"}, {JWKSURL: "file:///etc/passwd"}, {JWKSURL: "https://"}, {JWKSURL: "https://exa mple.com"},
	} {
		_, err := token.New(config)
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "xxx", "no secret in an error")
	}
}

// issuer is a server with public keys, and a clock.
type issuer struct {
	*token.Verifier
	requests atomic.Int64

	mu     sync.Mutex
	keys   []map[string]any
	status int
	now    time.Time
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{status: http.StatusOK, now: start}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		i.requests.Add(1)
		i.mu.Lock()
		defer i.mu.Unlock()
		w.WriteHeader(i.status)
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": i.keys})
	}))
	t.Cleanup(s.Close)
	verifier, err := token.New(token.Config{JWKSURL: s.URL, Client: s.Client(), Now: func() time.Time {
		i.mu.Lock()
		defer i.mu.Unlock()
		return i.now
	}})
	require.NoError(t, err)
	i.Verifier = verifier
	return i
}

// has makes the issuer have these keys and no others, and answer with a status.
func (i *issuer) has(status int, keys ...map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.status, i.keys = status, keys
}

func (i *issuer) wait(by time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.now = i.now.Add(by)
}

// published gives a public key as issuers show it.
func published(t *testing.T, key crypto.Signer, set map[string]any) map[string]any {
	t.Helper()
	imported, err := jwk.Import(key.Public())
	require.NoError(t, err)
	text, err := json.Marshal(imported)
	require.NoError(t, err)
	var members map[string]any
	require.NoError(t, json.Unmarshal(text, &members))
	maps.Copy(members, set)
	return members
}

func newKeys(t *testing.T) (*rsa.PrivateKey, *ecdsa.PrivateKey, ed25519.PrivateKey) {
	t.Helper()
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	e, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	_, d, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	return r, e, d
}

func TestTokensAreVerifiedWithTheIssuersPublicKeys(t *testing.T) {
	t.Parallel()
	r, e, d := newKeys(t)
	foreign, _, _ := newKeys(t)
	i := newIssuer(t)
	i.has(http.StatusOK,
		published(t, r, map[string]any{"kid": "r", "use": "sig"}), published(t, e, map[string]any{"kid": "e", "alg": "ES256"}),
		published(t, d, map[string]any{"kid": "d"}), map[string]any{"kty": "oct", "kid": "secret", "alg": "HS256", "k": part(secret)})
	for name, text := range map[string]string{
		"RS256":  signed(t, jwa.RS256(), r, map[string]any{"kid": "r"}, claims(nil)),
		"PS512":  signed(t, jwa.PS512(), r, map[string]any{"kid": "r"}, claims(nil)),
		"ES256":  signed(t, jwa.ES256(), e, map[string]any{"kid": "e"}, claims(nil)),
		"EdDSA":  signed(t, jwa.EdDSA(), d, map[string]any{"kid": "d"}, claims(nil)),
		"no kid": signed(t, jwa.RS256(), r, nil, claims(nil)),
	} {
		resource, err := i.Resource(t.Context(), text)
		require.NoError(t, err, name)
		require.Equal(t, "sam", resource)
	}
	modulus := r.N.Bytes()
	der, err := x509.MarshalPKIXPublicKey(&r.PublicKey)
	require.NoError(t, err)
	inPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	for name, text := range map[string]string{
		"a foreign key":              signed(t, jwa.RS256(), foreign, map[string]any{"kid": "r"}, claims(nil)),
		"a foreign key, no kid":      signed(t, jwa.RS256(), foreign, nil, claims(nil)),
		"the public key, DER":        signed(t, jwa.HS256(), der, map[string]any{"kid": "r"}, claims(nil)),
		"the public key, PEM":        signed(t, jwa.HS256(), inPEM, map[string]any{"kid": "r"}, claims(nil)),
		"the public key's modulus":   signed(t, jwa.HS256(), modulus, nil, claims(nil)),
		"a secret of the set":        signed(t, jwa.HS256(), []byte(secret), map[string]any{"kid": "secret"}, claims(nil)),
		"another key's kid":          signed(t, jwa.RS256(), r, map[string]any{"kid": "e"}, claims(nil)),
		"none":                       part(`{"alg":"none","kid":"r"}`) + "." + part(`{"sub":"sam","exp":9999999999}`) + ".",
		"a key that it brings":       signed(t, jwa.RS256(), foreign, map[string]any{"jwk": imported(t, foreign)}, claims(nil)),
		"a place where its keys are": signed(t, jwa.RS256(), foreign, map[string]any{"jku": "https://example.com/jwks"}, claims(nil)),
		"expired":                    signed(t, jwa.RS256(), r, map[string]any{"kid": "r"}, claims(map[string]any{"exp": start.Add(-time.Hour).Unix()})),
	} {
		_, err := i.Resource(t.Context(), text)
		assert.Equal(t, token.ErrInvalid, err, name)
	}
	assert.EqualValues(t, 1, i.requests.Load(), "its keys are remembered")
}

func imported(t *testing.T, key crypto.Signer) jwk.Key {
	t.Helper()
	public, err := jwk.Import(key.Public())
	require.NoError(t, err)
	return public
}

func TestTheIssuersKeysMayChange(t *testing.T) {
	t.Parallel()
	r, _, _ := newKeys(t)
	next, _, _ := newKeys(t)
	i := newIssuer(t)
	first, second := published(t, r, map[string]any{"kid": "1"}), published(t, next, map[string]any{"kid": "2"})
	byFirst := signed(t, jwa.RS256(), r, map[string]any{"kid": "1"}, claims(nil))
	bySecond := signed(t, jwa.RS256(), next, map[string]any{"kid": "2"}, claims(nil))
	i.has(http.StatusOK, first)
	_, err := i.Resource(t.Context(), byFirst)
	require.NoError(t, err)

	i.has(http.StatusOK, first, second)
	for range 10 {
		_, err = i.Resource(t.Context(), bySecond)
		require.Equal(t, token.ErrInvalid, err)
	}
	require.EqualValues(t, 1, i.requests.Load(), "unknown keys are not as many requests")
	i.wait(5 * time.Second)
	_, err = i.Resource(t.Context(), bySecond)
	require.NoError(t, err, "a new key is looked for")
	require.EqualValues(t, 2, i.requests.Load())

	i.has(http.StatusOK, second)
	i.wait(5 * time.Minute)
	_, err = i.Resource(t.Context(), byFirst)
	require.Equal(t, token.ErrInvalid, err, "a key that is withdrawn counts no longer")
}

func TestWhereTheIssuerIsOutOfReach(t *testing.T) {
	t.Parallel()
	r, _, _ := newKeys(t)
	i := newIssuer(t)
	good := signed(t, jwa.RS256(), r, map[string]any{"kid": "1"}, claims(map[string]any{"exp": start.Add(24 * time.Hour).Unix()}))
	i.has(http.StatusBadGateway)
	for range 10 {
		_, err := i.Resource(t.Context(), good)
		require.ErrorIs(t, err, token.ErrUnavailable)
	}
	require.EqualValues(t, 1, i.requests.Load(), "nobody waits for it over and over")
	_, err := i.Resource(t.Context(), part(`{"alg":"none"}`)+".e30.")
	require.Equal(t, token.ErrInvalid, err, "what needs no key")

	i.wait(5 * time.Second)
	i.has(http.StatusOK, published(t, r, map[string]any{"kid": "1"}))
	_, err = i.Resource(t.Context(), good)
	require.NoError(t, err)
	i.has(http.StatusBadGateway)
	i.wait(time.Hour - time.Second)
	_, err = i.Resource(t.Context(), good)
	require.NoError(t, err, "keys that are known count for a while")
	i.wait(5 * time.Second)
	_, err = i.Resource(t.Context(), good)
	require.ErrorIs(t, err, token.ErrUnavailable)
}

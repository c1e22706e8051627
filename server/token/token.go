// Package token verifies the JSON Web Tokens that callers show.
package token

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"
)

const (
	// DefaultClaim is the claim that names the resource.
	DefaultClaim = "sub"
	// MinSecretBytes is the least length of a secret: that of its hashes.
	MinSecretBytes = 32

	// leeway is how far the clocks of issuer and server may be apart.
	leeway = 30 * time.Second
	// maxBytes bounds a token.
	maxBytes = 16 << 10
)

// The errors of [Verifier.Resource].
var (
	// ErrInvalid says that the token is none, or does not count.
	ErrInvalid = errors.New("the token is not valid")
	// ErrUnavailable says that the issuer's keys are out of reach; try again.
	ErrUnavailable = errors.New("the keys of tokens are out of reach")
)

// Config says which tokens count: those signed with Secret, or with a key of JWKSURL.
type Config struct {
	// Secret is for HS256, of at least [MinSecretBytes]; empty for JWKSURL.
	Secret string
	// JWKSURL is where the issuer's public keys are; empty for Secret.
	JWKSURL string
	// Claim names the claim that is the caller's resource; empty means [DefaultClaim].
	Claim string
	// Audience must be among the token's, Issuer must be its issuer; empty for any.
	Audience, Issuer string
	// Client fetches the keys; nil means one that takes 5 seconds at most.
	Client *http.Client
	// Now is the clock; nil means [time.Now].
	Now func() time.Time
}

// Verifier tells whose a token is. It is safe for concurrent use.
type Verifier struct {
	claim      string
	algorithms []string
	keysFor    func(ctx context.Context, keyID string) (jwt.ParseOption, error)
	rules      []jwt.ParseOption
}

// New gives a verifier, or says what is wrong with the configuration.
func New(config Config) (*Verifier, error) {
	if config.Claim == "" {
		config.Claim = DefaultClaim
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	v := &Verifier{claim: config.Claim, rules: []jwt.ParseOption{
		jwt.WithValidate(true),
		jwt.WithAcceptableSkew(leeway),
		jwt.WithClock(jwt.ClockFunc(config.Now)),
		// Without an end it could never be taken back.
		jwt.WithRequiredClaim(jwt.ExpirationKey),
	}}
	if config.Audience != "" {
		v.rules = append(v.rules, jwt.WithAudience(config.Audience))
	}
	if config.Issuer != "" {
		v.rules = append(v.rules, jwt.WithIssuer(config.Issuer))
	}
	if (config.Secret == "") == (config.JWKSURL == "") {
		return nil, errors.New("want either a secret or the URL of a JWKS")
	}
	var err error
	if config.Secret != "" {
		err = v.bySecret(config.Secret)
	} else {
		err = v.byURL(config)
	}
	return v, err
}

// bySecret makes HS256 with the secret what counts.
func (v *Verifier) bySecret(secret string) error {
	if len(secret) < MinSecretBytes {
		return fmt.Errorf("the secret has %d bytes, want at least %d", len(secret), MinSecretBytes)
	}
	v.algorithms = []string{jwa.HS256().String()}
	key := jwt.WithKey(jwa.HS256(), []byte(secret))
	v.keysFor = func(context.Context, string) (jwt.ParseOption, error) { return key, nil }
	return nil
}

// byURL makes signatures with the issuer's public keys what counts. Whoever could have
// a public key taken for a secret could sign with it, since anyone has it.
func (v *Verifier) byURL(config Config) error {
	address, err := url.Parse(config.JWKSURL)
	if err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != "http" {
		return errors.New("the URL of the JWKS is none with http or https")
	}
	for _, algorithm := range []jwa.SignatureAlgorithm{
		jwa.RS256(), jwa.RS384(), jwa.RS512(), jwa.PS256(), jwa.PS384(), jwa.PS512(), jwa.ES256(), jwa.ES384(), jwa.ES512(), jwa.EdDSA(),
	} {
		v.algorithms = append(v.algorithms, algorithm.String())
	}
	if config.Client == nil {
		config.Client = &http.Client{Timeout: fetchTimeout}
	}
	keys := &keySet{url: config.JWKSURL, client: config.Client, now: config.Now}
	v.keysFor = func(ctx context.Context, keyID string) (jwt.ParseOption, error) {
		set, err := keys.with(ctx, keyID)
		if err != nil {
			return nil, err
		}
		// The name of a key is a hint to choose by; where it is missing all are tried.
		return jwt.WithKeySet(set, jws.WithInferAlgorithmFromKey(true), jws.WithRequireKid(keyID != "")), nil
	}
	return nil
}

// Resource gives the resource that a token is for. It fails with [ErrInvalid] or
// [ErrUnavailable].
func (v *Verifier) Resource(ctx context.Context, text string) (string, error) {
	keyID, err := v.readHeader(text)
	if err != nil {
		return "", err
	}
	keys, err := v.keysFor(ctx, keyID)
	if err != nil {
		return "", err
	}
	verified, err := jwt.Parse([]byte(text), append([]jwt.ParseOption{keys}, v.rules...)...)
	if err != nil {
		return "", ErrInvalid // the cause may quote the token
	}
	var resource string
	if err := verified.Get(v.claim, &resource); err != nil || resource == "" {
		return "", ErrInvalid
	}
	return resource, nil
}

// readHeader gives the name of the key that a token says it is signed with, and
// refuses what needs no key to be refused.
func (v *Verifier) readHeader(text string) (keyID string, err error) {
	if len(text) > maxBytes || strings.Count(text, ".") != 2 {
		return "", ErrInvalid
	}
	message, err := jws.Parse([]byte(text), jws.WithCompact())
	if err != nil || len(message.Signatures()) != 1 {
		return "", ErrInvalid
	}
	header := message.Signatures()[0].ProtectedHeaders()
	algorithm, ok := header.Algorithm()
	if !ok || !slices.Contains(v.algorithms, algorithm.String()) {
		return "", ErrInvalid
	}
	if critical, _ := header.Critical(); len(critical) > 0 { // none of which is known here
		return "", ErrInvalid
	}
	keyID, _ = header.KeyID()
	return keyID, nil
}

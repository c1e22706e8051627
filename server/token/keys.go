package token

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"golang.org/x/sync/singleflight"
)

const (
	// fetchTimeout bounds the wait for the issuer's keys.
	fetchTimeout = 5 * time.Second
	// fetchPause is the least time between two fetches, so that tokens of unknown keys
	// do not become as many requests to the issuer.
	fetchPause = 5 * time.Second
	// freshFor is how long keys count without another look at them, and knownFor how
	// long they do where the issuer is out of reach.
	freshFor = 5 * time.Minute
	knownFor = time.Hour
	// maxSetBytes bounds a JWKS.
	maxSetBytes = 1 << 20
)

// keySet is an issuer's public keys. They are fetched when a token needs them.
type keySet struct {
	url    string
	client *http.Client
	now    func() time.Time
	calls  singleflight.Group

	mu        sync.Mutex
	keys      jwk.Set // nil before the first fetch
	fetchedAt time.Time
	triedAt   time.Time
}

// with gives the keys, with the one of that id as far as the issuer has it.
func (s *keySet) with(ctx context.Context, id string) (jwk.Set, error) {
	keys, due := s.known(id)
	if !due {
		return s.usable(keys, nil)
	}
	result := s.calls.DoChan("", func() (any, error) {
		if _, due := s.known(id); !due {
			return nil, nil // fetched since this caller looked
		}
		return nil, s.fetch(context.WithoutCancel(ctx))
	})
	select {
	case fetched := <-result:
		keys, _ = s.known(id)
		return s.usable(keys, fetched.Err)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// known gives the keys that count still, nil for none, and whether to fetch them.
func (s *keySet) known(id string) (keys jwk.Set, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	age := now.Sub(s.fetchedAt)
	due = s.keys == nil || age >= freshFor
	if s.keys != nil && id != "" && !due {
		_, found := s.keys.LookupKeyID(id)
		due = !found
	}
	if s.keys != nil && age < knownFor {
		keys = s.keys
	}
	return keys, due && now.Sub(s.triedAt) >= fetchPause
}

// usable fails where no keys count.
func (s *keySet) usable(keys jwk.Set, err error) (jwk.Set, error) {
	switch {
	case keys != nil:
		return keys, nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	default:
		return nil, ErrUnavailable
	}
}

// fetch gets the issuer's keys in place of those there are.
func (s *keySet) fetch(ctx context.Context) error {
	start := s.now()
	keys, err := s.get(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.triedAt = start
	if err == nil {
		s.keys, s.fetchedAt = keys, start
	}
	return err
}

func (s *keySet) get(ctx context.Context) (jwk.Set, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the JWKS answers with status %d", response.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxSetBytes))
	if err != nil {
		return nil, err
	}
	all, err := jwk.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the JWKS is none: %w", err)
	}
	return publicKeys(all)
}

// publicKeys leaves out of a set what is no key to check signatures with.
func publicKeys(all jwk.Set) (jwk.Set, error) {
	keys := jwk.NewSet()
	for i := range all.Len() {
		key, _ := all.Key(i)
		switch key.KeyType() {
		case jwa.RSA(), jwa.EC(), jwa.OKP():
			public, err := key.PublicKey()
			if err != nil {
				return nil, err
			}
			if err := keys.AddKey(public); err != nil {
				return nil, err
			}
		default: // a secret, or of a kind that nobody knows here
		}
	}
	return keys, nil
}

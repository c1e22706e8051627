package recall

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgrecall/pgrecall/dbgen"
)

// APIKeyPrefix is what the secrets of all API keys begin with.
const APIKeyPrefix = "pgr_"

const (
	// secretBytes is how many random bytes a secret has.
	secretBytes = 32
	// secretLen is the length of a secret.
	secretLen = len(APIKeyPrefix) + (secretBytes*8+5)/6
	// maxKeyNameBytes bounds the name of an API key.
	maxKeyNameBytes = 256
)

// NewAPIKey says what an API key is to reach: at most one of Admin, Resource and
// Prefix. With none it reaches all resources.
type NewAPIKey struct {
	// Name is for whoever looks at a list of keys; empty for none.
	Name string
	// Admin keys reach all resources, and what only operators may do.
	Admin bool
	// Resource is the one resource that the key reaches; empty for no such bound.
	Resource string
	// Prefix is what the ids of all resources that the key reaches begin with, byte by
	// byte; empty for no such bound.
	Prefix string
	// ReadOnly keys change nothing.
	ReadOnly bool
	// Lifetime is how long the key counts; 0 for ever.
	Lifetime time.Duration
}

// APIKey is a key that callers of a server show. Its secret is not kept.
type APIKey struct {
	ID        int64
	Name      string
	Admin     bool
	Resource  string
	Prefix    string
	ReadOnly  bool
	CreatedAt time.Time
	// ExpiresAt is from when on it counts no longer; nil for never.
	ExpiresAt *time.Time
	// RevokedAt is when it was revoked; nil for not.
	RevokedAt *time.Time
	// LastUsedAt is when it was used, exact to a minute; nil for never.
	LastUsedAt *time.Time
}

// Caller gives the caller who shows the key.
func (k APIKey) Caller() Caller {
	return Caller{ID: "key:" + strconv.FormatInt(k.ID, 10), Resource: k.Resource, Prefix: k.Prefix, ReadOnly: k.ReadOnly}
}

// Counts says whether the key is neither revoked nor expired.
func (k APIKey) Counts(now time.Time) bool {
	return k.RevokedAt == nil && (k.ExpiresAt == nil || now.Before(*k.ExpiresAt))
}

// CreateAPIKey makes a key and gives its secret, which nobody can look up later.
func (m *Memory) CreateAPIKey(ctx context.Context, in NewAPIKey) (secret string, key APIKey, err error) {
	if err := m.checkAPIKey(in); err != nil {
		return "", APIKey{}, err
	}
	var random [secretBytes]byte
	_, _ = rand.Read(random[:]) // cannot fail
	secret = APIKeyPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	hash := secretHash(secret)
	params := dbgen.APIKeyCreateParams{
		Name: in.Name, SecretHash: hash[:], Admin: in.Admin, Resource: in.Resource, Prefix: in.Prefix, ReadOnly: in.ReadOnly,
	}
	if in.Lifetime > 0 {
		seconds := in.Lifetime.Seconds()
		params.ExpiresInSeconds = &seconds
	}
	var row dbgen.APIKeyCreateRow
	err = m.operate(ctx, func(tx pgx.Tx) (err error) {
		row, err = m.queries.APIKeyCreate(ctx, tx, params)
		return err
	})
	if err != nil {
		return "", APIKey{}, schemaError(err)
	}
	return secret, APIKey{
		ID: row.ID, Name: in.Name, Admin: in.Admin, Resource: in.Resource, Prefix: in.Prefix, ReadOnly: in.ReadOnly,
		CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt,
	}, nil
}

func (m *Memory) checkAPIKey(in NewAPIKey) error {
	c := m.check()
	c.text("name", in.Name, maxKeyNameBytes)
	c.id("resource", in.Resource)
	c.id("prefix", in.Prefix)
	if in.Resource != "" && in.Prefix != "" || in.Admin && (in.Resource != "" || in.Prefix != "") {
		c.fail("admin", "does not go with a resource or a prefix, nor do these with each other")
	}
	if in.Lifetime < 0 {
		c.fail("lifetime", "must not be negative")
	}
	return c.err()
}

// APIKeys lists all keys there have ever been, the oldest first.
func (m *Memory) APIKeys(ctx context.Context) ([]APIKey, error) {
	if err := m.caller.maySeeAll(); err != nil {
		return nil, err
	}
	rows, err := m.queries.APIKeyList(ctx, m.db)
	keys := make([]APIKey, len(rows))
	for i, row := range rows {
		keys[i] = APIKey(row)
	}
	return keys, schemaError(err)
}

// RevokeAPIKey ends a key; one that was revoked before stays as it is. CodeNotFound
// when there is none with this id.
func (m *Memory) RevokeAPIKey(ctx context.Context, id int64) error {
	return schemaError(m.operate(ctx, func(tx pgx.Tx) error {
		revoked, err := m.queries.APIKeyRevoke(ctx, tx, id)
		if err == nil && revoked == 0 {
			return apiKeyNotFound()
		}
		return err
	}))
}

// TokenCaller gives the caller who shows a token for a resource. CodeInvalid or
// CodeUnstorable when that cannot be the id of any.
func (m *Memory) TokenCaller(resource string) (Caller, error) {
	c := m.check()
	c.requiredID("resource", resource)
	return Caller{ID: "jwt:" + resource, Resource: resource}, c.err()
}

func apiKeyNotFound() *Error { return errorf(CodeNotFound, "API key not found") }

// secretHash is what is kept of a secret: no two keys have the same.
func secretHash(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

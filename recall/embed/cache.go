package embed

import (
	"context"
	"crypto/sha256"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"
)

// Cache is an [Embedder] that remembers the vectors of queries, and asks once
// where several callers ask the same at a time. Documents pass through: they
// are remembered by the database.
type Cache struct {
	Embedder
	vectors *lru.Cache[cacheKey, Vector]
	calls   singleflight.Group

	hits, misses, joined atomic.Uint64
}

// cacheKey is the SHA-256 of model, kind and text: what people asked is not
// kept, and a long text takes no more room than a short one.
type cacheKey [sha256.Size]byte

// CacheStats counts what became of the queries so far.
type CacheStats struct {
	Hits   uint64 // remembered
	Misses uint64 // asked of the embedder
	Joined uint64 // waited for the same question of another caller
	Size   int    // vectors held now
}

// NewCache holds up to size vectors, at least 1; a vector of 1,536 dimensions
// takes 6 kB.
func NewCache(e Embedder, size int) *Cache {
	vectors, err := lru.New[cacheKey, Vector](max(1, size))
	if err != nil {
		panic(err) // only for a size below 1
	}
	return &Cache{Embedder: e, vectors: vectors}
}

// Stats counts since the start.
func (c *Cache) Stats() CacheStats {
	return CacheStats{
		Hits:   c.hits.Load(),
		Misses: c.misses.Load(),
		Joined: c.joined.Load(),
		Size:   c.vectors.Len(),
	}
}

// Embed gives queries from the cache where it can, one call of the embedder a
// text where it cannot. Errors are not remembered.
func (c *Cache) Embed(ctx context.Context, texts []string, kind Kind) ([]Vector, error) {
	if kind != Query {
		return c.Embedder.Embed(ctx, texts, kind)
	}
	vectors := make([]Vector, len(texts))
	for i, text := range texts {
		vector, err := c.query(ctx, text)
		if err != nil {
			return nil, err
		}
		vectors[i] = vector
	}
	return vectors, nil
}

func (c *Cache) query(ctx context.Context, text string) (Vector, error) {
	key := keyOf(c.Model(), Query, text)
	if vector, ok := c.vectors.Get(key); ok {
		c.hits.Add(1)
		return vector, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, ContextError(err)
	}
	leads := false
	result := c.calls.DoChan(string(key[:]), func() (any, error) {
		leads = true
		return c.ask(ctx, key, text)
	})
	select {
	case answer := <-result:
		if !leads {
			c.joined.Add(1)
		}
		if answer.Err != nil {
			return nil, answer.Err
		}
		return answer.Val.(Vector), nil
	case <-ctx.Done():
		return nil, ContextError(ctx.Err())
	}
}

// ask asks the embedder. Of the context it takes the values alone, traces and
// the like: others wait for the answer when this caller is gone.
func (c *Cache) ask(ctx context.Context, key cacheKey, text string) (Vector, error) {
	if vector, ok := c.vectors.Peek(key); ok {
		return vector, nil // came in between the look-up and this call
	}
	c.misses.Add(1)
	vectors, err := c.Embedder.Embed(context.WithoutCancel(ctx), []string{text}, Query)
	if err != nil {
		return nil, err
	}
	c.vectors.Add(key, vectors[0])
	return vectors[0], nil
}

// keyOf parts its three by a character that no model's name has.
func keyOf(model string, kind Kind, text string) cacheKey {
	return sha256.Sum256([]byte(model + "\x00" + string(kind) + "\x00" + text))
}

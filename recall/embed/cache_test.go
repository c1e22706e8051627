package embed_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/embed/embedtest"
)

func fixed() *embedtest.Fixed {
	return embedtest.NewFixed(2, map[string]embed.Vector{"a": {1, 0}, "b": {0, 1}, "c": {.6, .8}})
}

func TestCacheRemembersQueries(t *testing.T) {
	t.Parallel()
	inner := fixed()
	cache := embed.NewCache(inner, 10)
	for range 3 {
		got, err := cache.Embed(t.Context(), []string{"a", "b"}, embed.Query)
		require.NoError(t, err)
		assert.Equal(t, []embed.Vector{{1, 0}, {0, 1}}, got)
	}
	assert.Equal(t, 2, inner.Texts(embed.Query))
	assert.Equal(t, embed.CacheStats{Hits: 4, Misses: 2, Size: 2}, cache.Stats())
	assert.Equal(t, "fixed", cache.Model())
	assert.Equal(t, 2, cache.Dimensions())
}

func TestCacheRemembersThatATextHasNoVector(t *testing.T) {
	t.Parallel()
	inner := fixed()
	cache := embed.NewCache(inner, 10)
	for range 2 {
		got, err := cache.Embed(t.Context(), []string{"unknown"}, embed.Query)
		require.NoError(t, err)
		assert.Nil(t, got[0])
	}
	assert.Equal(t, 1, inner.Calls())
}

func TestCachePassesDocumentsThrough(t *testing.T) {
	t.Parallel()
	inner := fixed()
	cache := embed.NewCache(inner, 10)
	for range 2 {
		_, err := cache.Embed(t.Context(), []string{"a", "b"}, embed.Document)
		require.NoError(t, err)
	}
	assert.Equal(t, 2, inner.Calls())
	assert.Equal(t, 4, inner.Texts(embed.Document))
	assert.Zero(t, cache.Stats())
}

func TestCacheForgetsTheLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	inner := fixed()
	cache := embed.NewCache(inner, 2)
	for _, text := range []string{"a", "b", "a", "c", "a", "b"} {
		_, err := cache.Embed(t.Context(), []string{text}, embed.Query)
		require.NoError(t, err)
	}
	assert.Equal(t, embed.CacheStats{Hits: 2, Misses: 4, Size: 2}, cache.Stats())
}

func TestCacheDoesNotRememberErrors(t *testing.T) {
	t.Parallel()
	inner := fixed()
	cache := embed.NewCache(inner, 10)
	inner.Fail(errors.New("down"))
	_, err := cache.Embed(t.Context(), []string{"a"}, embed.Query)
	require.EqualError(t, err, "down")
	inner.Fail(nil)
	_, err = cache.Embed(t.Context(), []string{"a"}, embed.Query)
	require.NoError(t, err)
}

func TestCacheAsksOnceForManyCallers(t *testing.T) {
	t.Parallel()
	const callers = 20
	stub, e := connect(t, nil)
	cache := embed.NewCache(e, 10)
	hold := stub.Hold()
	var group errgroup.Group
	ask := func() error {
		got, err := cache.Embed(t.Context(), []string{"a"}, embed.Query)
		embedtest.EqualVectors(t, words("a"), got)
		return err
	}
	group.Go(ask)
	<-hold.Arrived()
	for range callers - 1 {
		group.Go(ask)
	}
	stub.Release()
	require.NoError(t, group.Wait())
	stats := cache.Stats()
	assert.Equal(t, 1, stub.Requests())
	assert.EqualValues(t, 1, stats.Misses)
	assert.EqualValues(t, callers-1, stats.Hits+stats.Joined)
}

func TestCacheCallOutlivesTheCallerWhoBeganIt(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, nil)
	cache := embed.NewCache(e, 10)
	hold := stub.Hold()

	first, cancelFirst := context.WithCancel(t.Context())
	firstDone := make(chan error)
	go func() {
		_, err := cache.Embed(first, []string{"a"}, embed.Query)
		firstDone <- err
	}()
	<-hold.Arrived()
	cancelFirst()
	require.ErrorIs(t, <-firstDone, context.Canceled)

	second := make(chan error)
	go func() {
		_, err := cache.Embed(t.Context(), []string{"a"}, embed.Query)
		second <- err
	}()
	stub.Release()
	require.NoError(t, <-second)
	assert.Equal(t, 1, stub.Requests())
}

func TestCacheCallersKeepToTheirDeadlines(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, nil)
	cache := embed.NewCache(e, 10)
	stub.Hold()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := cache.Embed(ctx, []string{"a"}, embed.Query)
	require.ErrorIs(t, err, embed.ErrUnavailable)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	_, err = cache.Embed(ctx, []string{"b"}, embed.Query)
	require.ErrorIs(t, err, embed.ErrUnavailable, "over before it began")
}

func BenchmarkCacheHit(b *testing.B) {
	cache := embed.NewCache(embed.Static{}, 10)
	texts := []string{"What time does the ferry to the island leave on Sundays?"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := cache.Embed(b.Context(), texts, embed.Query); err != nil {
			b.Fatal(err)
		}
	}
}

package embed_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/recall/embed/embedtest"
)

func TestMergerMakesFewCallsOfManySmallOnes(t *testing.T) {
	t.Parallel()
	const callers = 64
	stub, e := connect(t, nil)
	merger := embed.NewMerger(e, 32)
	var group errgroup.Group
	for i := range callers {
		group.Go(func() error {
			text := fmt.Sprint("number ", i)
			got, err := merger.Embed(t.Context(), []string{text}, embed.Document)
			if err == nil {
				embedtest.EqualVectors(t, words(text), got)
			}
			return err
		})
	}
	require.NoError(t, group.Wait())
	assert.LessOrEqual(t, stub.Requests(), callers/4)
	assert.Len(t, stub.Texts(), callers)
}

func TestMergerBlamesNobodyForTheTextsOfAnother(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, nil)
	stub.FailTexts("poison", embedtest.Status(500))
	merger := embed.NewMerger(e, 32)
	errs := make([]error, 8)
	var callers sync.WaitGroup
	for i, text := range many(3)[:8] {
		callers.Go(func() {
			_, errs[i] = merger.Embed(t.Context(), []string{text}, embed.Document)
		})
	}
	callers.Wait()
	for i, err := range errs {
		assert.Equal(t, i == 3, err != nil, i)
	}
}

func TestMergerDoesNotAskEachAloneWhenTheServiceIsDown(t *testing.T) {
	t.Parallel()
	const callers = 32
	stub, e := connect(t, nil)
	stub.Fail(embedtest.Status(503))
	merger := embed.NewMerger(e, callers)
	var group errgroup.Group
	for i := range callers {
		group.Go(func() error {
			_, _, err := embed.EmbedTogether(t.Context(), merger, []string{fmt.Sprint(i)}, embed.Document)
			assert.ErrorIs(t, err, embed.ErrUnavailable)
			return nil
		})
	}
	require.NoError(t, group.Wait())
	assert.LessOrEqual(t, stub.Requests(), callers/2)
}

func TestMergerLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, nil)
	merger := embed.NewMerger(e, 2)
	hold := stub.Hold()
	for range 2 {
		go func() { _, _ = merger.Embed(embed.Alone(t.Context()), []string{"a"}, embed.Document) }()
		go func() { _, _ = merger.Embed(t.Context(), []string{"a"}, embed.Query) }()
		go func() { _, _ = merger.Embed(t.Context(), []string{"a", "b"}, embed.Document) }()
	}
	for range 6 {
		<-hold.Arrived()
	}
}

func TestMergerEndsACallThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	stub, e := connect(t, nil)
	merger := embed.NewMerger(e, 2)
	hold := stub.Hold()
	first, endFirst := context.WithCancel(t.Context())
	second, endSecond := context.WithCancel(t.Context())
	errs := make(chan error)
	for _, ctx := range []context.Context{first, second} {
		go func() {
			_, err := merger.Embed(ctx, []string{"a"}, embed.Document)
			errs <- err
		}()
	}
	<-hold.Arrived()
	endFirst()
	require.ErrorIs(t, <-errs, context.Canceled)
	endSecond()
	require.ErrorIs(t, <-errs, context.Canceled)
}

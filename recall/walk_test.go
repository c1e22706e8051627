package recall_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/recall"
)

// The threads that stay, and how many messages of each do.
const (
	lasting       = 3
	lastingLength = 90
)

// crowd writes to a memory, from several sides at once, around messages that
// stay from its beginning to its end.
type crowd struct {
	memory
	lasting []recall.NewMessage
	done    context.Context
	ended   sync.WaitGroup
	rounds  [5]atomic.Int64 // of each writer
	mu      sync.Mutex
	errs    []error
}

// gather saves the lasting messages and starts the writers. They end with the
// test; stop ends them earlier.
func gather(t *testing.T) (c *crowd, stop func()) {
	c = &crowd{memory: newMemory(t)}
	for i := range lasting {
		messages := series(fmt.Sprintf("lasting-%d-", i), lastingLength, recall.NewMessage{
			ThreadID: "lasting-" + strconv.Itoa(i), Content: withMetadata(`{"keep":true}`),
		})
		for j := range messages {
			messages[j].CreatedAt = second(j / 3) // three at each time, in each thread
		}
		c.save(t, messages...)
		c.lasting = append(c.lasting, messages...)
	}
	c.save(t, series("wandering-", 20, recall.NewMessage{ThreadID: "wandering", Content: withMetadata(`{"keep":true}`)})...)
	var cancel context.CancelFunc
	c.done, cancel = context.WithCancel(context.Background())
	fresh := make(chan string, 64)
	for i, writer := range []func(int) error{
		func(n int) error { return c.appendSome(n, fresh) },
		func(int) error { return c.deleteOne(fresh) },
		c.rewrite,
		c.wander,
		c.cloneAndDelete,
	} {
		c.ended.Go(func() { c.work(i, writer) })
	}
	stop = sync.OnceFunc(func() {
		cancel()
		c.ended.Wait()
	})
	t.Cleanup(stop)
	return c, stop
}

// work repeats one writer until the end.
func (c *crowd) work(i int, writer func(n int) error) {
	for n := 0; c.done.Err() == nil; n++ {
		if err := writer(n); err != nil && !errors.Is(err, context.Canceled) {
			c.fail(err)
			return
		}
		c.rounds[i].Add(1)
	}
}

func (c *crowd) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errs = append(c.errs, err)
}

// requireWork checks that every writer has been at work, without an error.
func (c *crowd) requireWork(t *testing.T) {
	t.Helper()
	require.Empty(t, c.errs)
	for i := range c.rounds {
		require.NotZero(t, c.rounds[i].Load(), "writer %d", i)
	}
}

func (c *crowd) appendSome(n int, fresh chan<- string) error {
	var batch []recall.NewMessage
	for i := range 1 + rand.IntN(3) {
		batch = append(batch, message(recall.NewMessage{
			ID: fmt.Sprintf("fresh-%d-%d", n, i), ThreadID: "lasting-" + strconv.Itoa(rand.IntN(lasting)),
			CreatedAt: second(rand.IntN(lastingLength/3+2) - 1),
			Content:   withMetadata(`{"keep":` + strconv.FormatBool(rand.IntN(2) == 0) + `}`),
		}))
	}
	if _, err := c.SaveMessages(c.done, batch, false); err != nil {
		return err
	}
	for _, message := range batch {
		select {
		case fresh <- message.ID:
		case <-c.done.Done():
		}
	}
	return nil
}

func (c *crowd) deleteOne(fresh <-chan string) error {
	select {
	case id := <-fresh:
		_, err := c.DeleteMessages(c.done, []string{id}, "")
		return err
	case <-c.done.Done():
		return nil
	}
}

// rewrite changes lasting messages in place, by a save or an update.
func (c *crowd) rewrite(n int) error {
	one := c.lasting[rand.IntN(len(c.lasting))]
	one.CreatedAt = second(1000) // is not taken
	one.Content = withMetadata(`{"keep":true,"n":` + strconv.Itoa(n) + `}`)
	var err error
	if n%2 == 0 {
		_, err = c.SaveMessages(c.done, []recall.NewMessage{one}, true)
	} else {
		_, err = c.UpdateMessages(c.done, []recall.MessageUpdate{{ID: one.ID, Content: one.Content}}, resource)
	}
	return err
}

// wander gives a thread to another resource and back.
func (c *crowd) wander(int) error {
	if _, err := c.TransferThread(c.done, "wandering", "", "bob"); err != nil {
		return err
	}
	_, err := c.TransferThread(c.done, "wandering", "", resource)
	return err
}

func (c *crowd) cloneAndDelete(n int) error {
	clone, err := c.CloneThread(c.done, recall.ThreadClone{
		SourceID: "lasting-0", ID: "clone-" + strconv.Itoa(n), MessageLimit: of(5),
	})
	if err != nil {
		return err
	}
	return c.DeleteThread(c.done, clone.Thread.ID, "")
}

func TestCursorWalkSeesWhatExistedThroughoutOnceWhileOthersWrite(t *testing.T) {
	t.Parallel()
	c, stop := gather(t)
	for _, filter := range []recall.Filter{{}, {Metadata: map[string]any{"keep": true}}, {Roles: []string{"user"}}} {
		for _, scope := range []recall.Request{{ThreadID: "lasting-1"}, {ResourceID: resource}} {
			for _, direction := range []recall.Direction{recall.Ascending, recall.Descending} {
				in := scope
				in.Filter, in.Direction, in.PerPage = filter, direction, of(7)
				c.requireWalk(t, in)
			}
		}
	}
	stop()
	c.requireWork(t)
	c.requireCounted(t)
}

// requireWalk walks to the end and checks what it met on the way.
func (c *crowd) requireWalk(t *testing.T, in recall.Request) {
	t.Helper()
	seen := make(map[string]int)
	var last *recall.Message // of the page before, at its end
	for in.Cursor = of(""); ; {
		page := c.recall(t, in)
		messages := page.Messages
		if in.Direction == recall.Descending {
			messages = reversed(messages)
		}
		for i := range messages {
			seen[messages[i].ID]++
			if last != nil && in.Direction == recall.Ascending {
				require.False(t, messages[i].CreatedAt.Before(last.CreatedAt))
			} else if last != nil {
				require.False(t, messages[i].CreatedAt.After(last.CreatedAt))
			}
			last = &messages[i]
		}
		if !page.HasMore {
			break
		}
		in.Cursor = &page.NextCursor
	}
	for id, times := range seen {
		require.Equal(t, 1, times, "%s in the walk of %s", id, object(in))
	}
	for _, message := range c.lasting {
		if in.ThreadID == "" || message.ThreadID == in.ThreadID {
			require.Equal(t, 1, seen[message.ID], "%s in the walk of %s", message.ID, object(in))
		}
	}
}

func TestPageAndTotalAreOfOneSnapshotWhileOthersWrite(t *testing.T) {
	t.Parallel()
	c, stop := gather(t)
	year := recall.DateRange{Start: of(epoch.Add(-time.Hour)), End: of(epoch.AddDate(1, 0, 0))}
	for range 8 {
		for _, filter := range []recall.Filter{{}, {Metadata: map[string]any{"keep": true}}, {DateRange: year}} {
			for _, scope := range []recall.Request{{ThreadID: "lasting-1"}, {ResourceID: resource}} {
				in := scope
				in.Filter, in.PerPage = filter, of(recall.All)
				whole := c.recall(t, in)
				require.Equal(t, *whole.Total, int64(len(whole.Messages)), "%s", object(in))

				in.PerPage = of(len(whole.Messages) - rand.IntN(5) + 2)
				page := c.recall(t, in)
				require.Equal(t, min(*page.Total, int64(*in.PerPage)), int64(len(page.Messages)), "%s", object(in))
				require.Equal(t, *page.Total > int64(*in.PerPage), page.HasMore, "%s", object(in))
			}
		}
	}
	stop()
	c.requireWork(t)
	c.requireCounted(t)
}

// A message is whole: what an answer shows of it was there at one time.
func TestNoMessageIsTornWhileItIsTransferred(t *testing.T) {
	t.Parallel()
	c, stop := gather(t)
	for range 20 {
		for _, in := range []recall.Request{
			{ThreadID: "wandering"},
			{ThreadID: "wandering", PerPage: of(recall.All), Filter: recall.Filter{Roles: []string{"user"}}},
			{ThreadID: "wandering", Include: []recall.Include{{ID: "wandering-10", Previous: of(9), Next: of(9)}}},
		} {
			owners := make(map[string]bool)
			for _, message := range c.recall(t, in).Messages {
				owners[message.ResourceID] = true
			}
			require.Len(t, owners, 1, "all messages of a thread have one owner at a time")
		}
		for _, owner := range []string{resource, "bob"} {
			for _, message := range c.recall(t, recall.Request{ResourceID: owner, PerPage: of(recall.All)}).Messages {
				require.Equal(t, owner, message.ResourceID)
			}
		}
	}
	stop()
	c.requireWork(t)
}

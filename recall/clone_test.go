package recall_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/recall"
)

func TestCloneCopiesTenThousandMessagesInOrder(t *testing.T) {
	t.Parallel()
	const length = 10_000
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread, Title: of("long"), Metadata: json.RawMessage(`{"k":1}`)})
	for from := 0; from < length; from += 1000 {
		var batch []recall.NewMessage
		for i := range 1000 {
			n := from + i
			batch = append(batch, message(recall.NewMessage{
				ID: "m" + strconv.Itoa(n), Type: "v2", CreatedAt: second(n / 7), // some at one time
				Content: withMetadata(`{"n":` + strconv.Itoa(n) + `}`),
			}))
		}
		m.save(t, batch...)
	}
	source := m.stored(t, thread)
	untouched := column[string](t, m, `SELECT md5(string_agg(m::text, ',' ORDER BY m.id)) FROM recall.messages AS m`)

	clone, err := m.CloneThread(ctx, recall.ThreadClone{SourceID: thread, ID: "copy"})
	require.NoError(t, err)
	require.Equal(t, ids(source), clone.SourceIDs, "the map of ids is complete and in order")
	copies := m.stored(t, "copy")
	require.Equal(t, ids(copies), ids(clone.Messages))
	require.Equal(t, "Clone of long", clone.Thread.Title)
	require.Equal(t, resource, clone.Thread.ResourceID)
	require.Equal(t, copies, clone.Messages)
	originals := make(map[string]bool, length)
	for i := range copies {
		originals[source[i].ID] = true
		require.False(t, originals[copies[i].ID])
		copies[i].ID, copies[i].ThreadID = source[i].ID, source[i].ThreadID
	}
	require.Equal(t, source, copies)
	m.requireSequence(t, "copy", length)
	m.requireCounted(t)

	require.NoError(t, m.DeleteThread(ctx, "copy", ""))
	require.Equal(t, untouched, column[string](t, m, `SELECT md5(string_agg(m::text, ',' ORDER BY m.id)) FROM recall.messages AS m`), "the original is as it was")
}

func TestCloneTakesWhatItsFiltersChoose(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	messages := series("m", 8, recall.NewMessage{})
	messages[3].CreatedAt = messages[2].CreatedAt // m3 and m4 at one time
	m.save(t, messages...)
	m.save(t, message(recall.NewMessage{ID: "foreign", ThreadID: "second"}))
	at := func(i int) *time.Time { return &messages[i-1].CreatedAt }
	for name, one := range map[string]struct {
		in   recall.ThreadClone
		want []string
	}{
		"all":                      {recall.ThreadClone{}, []string{"m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"}},
		"limit takes the newest":   {recall.ThreadClone{MessageLimit: of(3)}, []string{"m6", "m7", "m8"}},
		"limit over the length":    {recall.ThreadClone{MessageLimit: of(99)}, []string{"m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8"}},
		"limit 0 takes none":       {recall.ThreadClone{MessageLimit: of(0)}, nil},
		"limit within equal times": {recall.ThreadClone{MessageLimit: of(5)}, []string{"m4", "m5", "m6", "m7", "m8"}},
		"both dates are in":        {recall.ThreadClone{StartsAt: at(2), EndsAt: at(3)}, []string{"m2", "m3", "m4"}},
		"from a date":              {recall.ThreadClone{StartsAt: at(7)}, []string{"m7", "m8"}},
		"to a date":                {recall.ThreadClone{EndsAt: at(1)}, []string{"m1"}},
		"dates and limit":          {recall.ThreadClone{StartsAt: at(2), EndsAt: at(6), MessageLimit: of(2)}, []string{"m5", "m6"}},
		"ids, in the thread's order": {
			recall.ThreadClone{MessageIDs: []string{"m5", "m2", "unknown", "foreign", "m2"}}, []string{"m2", "m5"},
		},
		"ids and dates and limit": {
			recall.ThreadClone{MessageIDs: []string{"m1", "m3", "m5", "m8"}, EndsAt: at(7), MessageLimit: of(2)}, []string{"m3", "m5"},
		},
		"no ids":       {recall.ThreadClone{MessageIDs: []string{}}, nil},
		"empty window": {recall.ThreadClone{StartsAt: at(6), EndsAt: at(2)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			one.in.SourceID = thread
			clone, err := m.CloneThread(ctx, one.in)
			require.NoError(t, err)
			require.Equal(t, one.want, clone.SourceIDs)
			require.NotNil(t, clone.Messages)
			require.Equal(t, ids(m.stored(t, clone.Thread.ID)), ids(clone.Messages))
			m.requireSequence(t, clone.Thread.ID, len(one.want))
			var metadata struct {
				Clone struct{ SourceThreadID, ClonedAt, LastMessageID string }
			}
			require.NoError(t, json.Unmarshal(clone.Thread.Metadata, &metadata))
			require.Equal(t, thread, metadata.Clone.SourceThreadID)
			clonedAt, err := time.Parse("2006-01-02T15:04:05.000Z", metadata.Clone.ClonedAt)
			require.NoError(t, err)
			require.Equal(t, clone.Thread.CreatedAt, clonedAt)
			last := ""
			if len(one.want) > 0 {
				last = one.want[len(one.want)-1]
			}
			require.Equal(t, last, metadata.Clone.LastMessageID)
		})
	}
	m.requireCounted(t)
}

func TestCloneGoesToAnotherResourceUnderItsOwnTitleAndMetadata(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread, Title: of("trip"), Metadata: json.RawMessage(`{"source":true}`)})
	m.save(t, series("m", 2, recall.NewMessage{})...)
	clone, err := m.CloneThread(ctx, recall.ThreadClone{
		SourceID: thread, SourceResourceID: resource, ResourceID: "bob", Title: of(""), Metadata: json.RawMessage(`{"k":[1]}`),
	})
	require.NoError(t, err)
	require.Equal(t, "bob", clone.Thread.ResourceID)
	require.Empty(t, clone.Thread.Title)
	var metadata map[string]any
	require.NoError(t, json.Unmarshal(clone.Thread.Metadata, &metadata))
	require.Equal(t, []any{1.0}, metadata["k"])
	require.Contains(t, metadata, "clone")
	require.NotContains(t, metadata, "source")
	theirs := m.recall(t, recall.Request{ResourceID: "bob"})
	require.Equal(t, ids(clone.Messages), ids(theirs.Messages))
	require.Equal(t, "bob", theirs.Messages[0].ResourceID)
	require.Equal(t, []string{"m1", "m2"}, ids(m.recall(t, recall.Request{ResourceID: resource}).Messages))
	stored, err := m.Thread(ctx, clone.Thread.ID, "bob")
	require.NoError(t, err)
	require.Equal(t, clone.Thread, stored)
}

func TestCloneIntoATakenIDIsAConflict(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, series("m", 3, recall.NewMessage{})...)
	m.save(t, message(recall.NewMessage{ID: "n1", ThreadID: "taken", ResourceID: "bob"}))
	untouched := m.contents(t)
	for _, id := range []string{"taken", thread} {
		_, err := m.CloneThread(ctx, recall.ThreadClone{SourceID: thread, ID: id})
		requireCode(t, err, recall.CodeConflict)
	}
	require.Equal(t, untouched, m.contents(t))

	conflicts := 0
	for _, err := range together(5, func(int) error {
		_, err := m.CloneThread(ctx, recall.ThreadClone{SourceID: thread, ID: "copy"})
		return err
	}) {
		if err != nil {
			require.Equal(t, recall.CodeConflict, codeOf(err), "%v", err)
			conflicts++
		}
	}
	require.Equal(t, 4, conflicts)
	m.requireSequence(t, "copy", 3)
	m.requireCounted(t)
}

func TestCloneWhileAWriterAppendsIsAPrefix(t *testing.T) {
	t.Parallel()
	const atOnce = 3 // messages of one save
	m := newMemory(t)
	m.save(t, series("first-", atOnce, recall.NewMessage{})...)
	done, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(failed)
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			default:
			}
			batch := series(fmt.Sprintf("next-%d-", n), atOnce, recall.NewMessage{})
			for i := range batch {
				batch[i].CreatedAt = second(100) // the position alone decides
			}
			if _, err := m.SaveMessages(ctx, batch, false); err != nil {
				failed <- err
				return
			}
		}
	}()
	var clones []recall.ClonedThread
	for i := range 40 {
		clone, err := m.CloneThread(ctx, recall.ThreadClone{SourceID: thread, ID: "copy-" + strconv.Itoa(i)})
		require.NoError(t, err)
		clones = append(clones, clone)
	}
	close(done)
	require.NoError(t, <-failed)
	whole := ids(m.stored(t, thread))
	lengths := make(map[int]bool)
	for _, clone := range clones {
		n := len(clone.SourceIDs)
		require.Zero(t, n%atOnce, "a save is in it whole or not at all")
		require.Equal(t, whole[:n], clone.SourceIDs)
		require.Equal(t, ids(clone.Messages), ids(m.stored(t, clone.Thread.ID)))
		lengths[n] = true
	}
	require.Greater(t, len(lengths), 1, "the writer wrote meanwhile")
	m.requireCounted(t)
}

func TestCloneUtilitiesFollowTheChain(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, series("m", 2, recall.NewMessage{ThreadID: "one"})...)
	clone := func(source, id, owner string) {
		_, err := m.CloneThread(ctx, recall.ThreadClone{SourceID: source, ID: id, ResourceID: owner})
		require.NoError(t, err)
	}
	clone("one", "two", "")
	clone("two", "three", "")
	clone("two", "three-b", "bob")
	clone("three", "four", "bob")
	names := func(threads []recall.Thread, err error) []string {
		require.NoError(t, err)
		list := []string{}
		for _, thread := range threads {
			list = append(list, thread.ID)
		}
		return list
	}
	sourceOf := func(id, owner string) string {
		source, err := m.SourceThread(ctx, id, owner)
		require.NoError(t, err)
		if source == nil {
			return ""
		}
		return source.ID
	}

	require.Equal(t, []string{"one", "two", "three"}, names(m.CloneHistory(ctx, "three", "")))
	require.Equal(t, []string{"one", "two", "three", "four"}, names(m.CloneHistory(ctx, "four", "")))
	require.Equal(t, []string{"four"}, names(m.CloneHistory(ctx, "four", "bob")), "another's sources are not shown")
	require.Equal(t, []string{"one"}, names(m.CloneHistory(ctx, "one", resource)))
	require.Equal(t, "two", sourceOf("three", resource))
	require.Equal(t, "three", sourceOf("four", ""))
	require.Empty(t, sourceOf("four", "bob"))
	require.Empty(t, sourceOf("one", ""))
	require.Equal(t, []string{"two"}, names(m.Clones(ctx, "one", "")))
	require.Equal(t, []string{"three"}, names(m.Clones(ctx, "two", "")), "of the owner of the thread")
	require.Equal(t, []string{}, names(m.Clones(ctx, "four", "bob")))
	require.Equal(t, []string{"m1", "m2"}, ids(m.stored(t, "one")))
	require.Len(t, m.stored(t, "four"), 2)

	for _, call := range []func(id, owner string) error{
		func(id, owner string) error { _, err := m.Clones(ctx, id, owner); return err },
		func(id, owner string) error { _, err := m.SourceThread(ctx, id, owner); return err },
		func(id, owner string) error { _, err := m.CloneHistory(ctx, id, owner); return err },
	} {
		requireCode(t, call("unknown", ""), recall.CodeNotFound)
		requireCode(t, call("two", "bob"), recall.CodeForbidden)
	}

	require.NoError(t, m.DeleteThread(ctx, "two", ""))
	require.Equal(t, []string{"three", "four"}, names(m.CloneHistory(ctx, "four", "")), "it begins later where a source is gone")
	require.Empty(t, sourceOf("three", ""))
	require.Len(t, m.stored(t, "three"), 2, "a clone outlives its source")
}

func TestCloneHistoryListsNoThreadTwice(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, message(recall.NewMessage{ID: "m1", ThreadID: "one"}))
	_, err := m.CloneThread(ctx, recall.ThreadClone{SourceID: "one", ID: "two"})
	require.NoError(t, err)
	require.NoError(t, m.DeleteThread(ctx, "one", ""))
	_, err = m.CloneThread(ctx, recall.ThreadClone{SourceID: "two", ID: "one"}) // the id anew
	require.NoError(t, err)
	history, err := m.CloneHistory(ctx, "one", "")
	require.NoError(t, err)
	require.LessOrEqual(t, len(history), 2)
	require.Equal(t, "one", history[len(history)-1].ID)
	if len(history) == 2 {
		require.Equal(t, "two", history[0].ID)
	}
}

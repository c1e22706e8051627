package recall_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pgrecall/pgrecall/recall"
)

func TestListThreadsIsThatOfTheNaiveModel(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	rapid.Check(t, func(t *rapid.T) {
		// A listing without a resource gives all, so each case has the table for itself.
		_, err := m.pool.Exec(ctx, `DELETE FROM recall.threads`)
		require.NoError(t, err)
		var all []recall.Thread
		for i := range rapid.IntRange(0, 8).Draw(t, "threads") {
			made := m.create(t, recall.NewThread{
				ID:         rapid.SampledFrom([]string{"a", "B", "ä", "_"}).Draw(t, "letter") + strconv.Itoa(i),
				ResourceID: rapid.SampledFrom([]string{"ana", "bob"}).Draw(t, "owner"),
				Metadata:   drawObject(t),
			})
			made.CreatedAt, made.UpdatedAt = second(rapid.IntRange(0, 2).Draw(t, "created")), second(rapid.IntRange(0, 2).Draw(t, "updated"))
			_, err := m.pool.Exec(ctx, `UPDATE recall.threads SET created_at = $2, updated_at = $3 WHERE id = $1`, made.ID, made.CreatedAt, made.UpdatedAt)
			require.NoError(t, err)
			all = append(all, made)
		}
		for range 8 {
			in := recall.ThreadListing{
				ResourceID: rapid.SampledFrom([]string{"", "ana", "bob", "nobody"}).Draw(t, "resourceId"),
				Metadata:   pairs().Draw(t, "metadata"),
				Page:       rapid.IntRange(0, 3).Draw(t, "page"),
				PerPage:    rapid.SampledFrom([]int{recall.All, 0, 1, 2, 3, 100}).Draw(t, "perPage"),
				OrderBy:    rapid.SampledFrom([]recall.ThreadOrder{"", recall.ByCreatedAt, recall.ByUpdatedAt}).Draw(t, "orderBy"),
				Direction:  rapid.SampledFrom([]recall.Direction{"", recall.Ascending, recall.Descending}).Draw(t, "direction"),
			}
			requireListing(t, m, all, in)
		}
	})
}

// drawObject draws the metadata of a thread, nil for none.
func drawObject(t *rapid.T) json.RawMessage {
	drawn := metadata().Filter(func(text string) bool { return text == "" || text[0] == '{' }).Draw(t, "metadata")
	if drawn == "" {
		return nil
	}
	return json.RawMessage(drawn)
}

func requireListing(t *rapid.T, m memory, all []recall.Thread, in recall.ThreadListing) {
	var wanted []recall.Thread
	for _, thread := range all {
		if in.ResourceID != "" && in.ResourceID != thread.ResourceID {
			continue
		}
		of := map[string]any{}
		if thread.Metadata != nil {
			of = decode(thread.Metadata).(map[string]any)
		}
		matching := true
		for key, value := range in.Metadata {
			matching = matching && equalTo(of, key, value)
		}
		if matching {
			wanted = append(wanted, thread)
		}
	}
	total := len(wanted)
	at := func(thread recall.Thread) time.Time {
		if in.OrderBy == recall.ByUpdatedAt {
			return thread.UpdatedAt
		}
		return thread.CreatedAt
	}
	slices.SortFunc(wanted, func(a, b recall.Thread) int {
		return cmp.Or(at(a).Compare(at(b)), strings.Compare(a.ID, b.ID))
	})
	if in.Direction != recall.Ascending {
		slices.Reverse(wanted)
	}
	hasMore := false
	if in.PerPage != recall.All {
		wanted = wanted[min(in.Page*in.PerPage, total):]
		hasMore = in.PerPage > 0 && len(wanted) > in.PerPage
		wanted = wanted[:min(in.PerPage, len(wanted))]
	}
	got, err := m.ListThreads(ctx, in)
	require.NoError(t, err)
	require.Len(t, got.Threads, len(wanted), "%s", object(in))
	for i := range wanted {
		require.Equal(t, wanted[i].ID, got.Threads[i].ID, "%s", object(in))
		require.Equal(t, wanted[i].CreatedAt, got.Threads[i].CreatedAt)
		require.Equal(t, wanted[i].UpdatedAt, got.Threads[i].UpdatedAt)
	}
	require.Equal(t, int64(total), got.Total, "%s", object(in))
	require.Equal(t, hasMore, got.HasMore, "%s", object(in))
}

func TestThreadCreatedAgainKeepsWhatIsNotGiven(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	first := m.create(t, recall.NewThread{ID: thread, Title: of("trip"), Metadata: json.RawMessage(`{"a":1}`)})
	again := m.create(t, recall.NewThread{ID: thread})
	require.Equal(t, "trip", again.Title)
	require.JSONEq(t, `{"a":1}`, string(again.Metadata))
	require.Equal(t, first.CreatedAt, again.CreatedAt)

	changed := m.create(t, recall.NewThread{ID: thread, Title: of(""), Metadata: json.RawMessage(`{"b":2}`)})
	require.Empty(t, changed.Title)
	require.JSONEq(t, `{"b":2}`, string(changed.Metadata), "replaced, not merged")
	require.Equal(t, first.CreatedAt, changed.CreatedAt)
	stored, err := m.Thread(ctx, thread, resource)
	require.NoError(t, err)
	require.Equal(t, changed, stored)
}

func TestThreadUpdateMergesMetadata(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread, Title: of("trip"), Metadata: json.RawMessage(`{"keep":1,"change":{"deep":1},"drop":true}`)})
	updated, err := m.UpdateThread(ctx, recall.ThreadUpdate{
		ID: thread, ResourceID: resource, Metadata: json.RawMessage(`{"change":{"other":2},"drop":null,"never there":null,"new":[null]}`),
	})
	require.NoError(t, err)
	require.Equal(t, "trip", updated.Title)
	require.JSONEq(t, `{"keep":1,"change":{"other":2},"new":[null]}`, string(updated.Metadata))
	updated, err = m.UpdateThread(ctx, recall.ThreadUpdate{ID: thread, Title: of("tour")})
	require.NoError(t, err)
	require.Equal(t, "tour", updated.Title)
	require.JSONEq(t, `{"keep":1,"change":{"other":2},"new":[null]}`, string(updated.Metadata))
}

func TestThreadWithoutMetadataTakesSome(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	require.Nil(t, m.create(t, recall.NewThread{ID: thread}).Metadata)
	updated, err := m.UpdateThread(ctx, recall.ThreadUpdate{ID: thread, Metadata: json.RawMessage(`{"a":1,"b":null}`)})
	require.NoError(t, err)
	require.JSONEq(t, `{"a":1}`, string(updated.Metadata))
}

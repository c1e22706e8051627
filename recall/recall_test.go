package recall_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pgrecall/pgrecall/recall"
)

func TestRecallIsThatOfTheNaiveModel(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	rapid.Check(t, func(t *rapid.T) {
		c := drawConversation(t, m)
		for range 16 {
			c.requireWalk(t, m, c.drawRequest(t), rapid.Bool().Draw(t, "listing"))
		}
	})
}

// requireWalk compares the answer with the model's and, where it has a cursor,
// the rest of the walk.
func (c *conversation) requireWalk(t *rapid.T, m memory, in recall.Request, listing bool) {
	ask := m.Recall
	if listing {
		ask = m.ListMessages
	}
	var past *modelMessage
	for {
		want := c.recall(in, past, listing)
		got, err := ask(context.Background(), in)
		if want.code != "" {
			requireCode(t, err, want.code)
			return
		}
		require.NoError(t, err, "%s", object(in))
		c.requireAnswer(t, in, want, got)
		if !want.hasMore {
			return
		}
		past = want.last
		in.Page, in.Cursor = nil, &got.NextCursor
		if in.PerPage == nil {
			in.PerPage = optional(t, "perPage", rapid.IntRange(1, 5))
		}
	}
}

func (c *conversation) requireAnswer(t *rapid.T, in recall.Request, want expectation, got recall.Result) {
	wanted := make([]string, len(want.messages))
	for i, message := range want.messages {
		wanted[i] = message.id
	}
	require.Equal(t, wanted, ids(got.Messages), "%s", object(in))
	require.Equal(t, answered(want.total), answered(got.Total), "total of %s", object(in))
	require.Equal(t, answered(want.page), answered(got.Page), "page of %s", object(in))
	require.Equal(t, want.perPage, got.PerPage, "perPage of %s", object(in))
	require.Equal(t, want.hasMore, got.HasMore, "hasMore of %s", object(in))
	require.Equal(t, want.hasMore, got.NextCursor != "", "nextCursor of %s", object(in))
	for i, message := range want.messages {
		c.requireMessage(t, message, got.Messages[i])
		explain := got.Messages[i].Explain
		if !in.Explain {
			require.Nil(t, explain)
			continue
		}
		require.Equal(t, want.reasons[message.id], explain.Reasons, "reasons of %s", message.id)
		if contexts := want.contexts[message.id]; len(contexts) > 0 {
			require.Contains(t, contexts, nearby{explain.ContextOf, explain.Offset}, "context of %s", message.id)
		} else {
			require.Equal(t, nearby{}, nearby{explain.ContextOf, explain.Offset}, "context of %s", message.id)
		}
	}
}

// answered is what a pointer points to, which reads better in a failure.
func answered[T any](value *T) any {
	if value == nil {
		return nil
	}
	return *value
}

func (c *conversation) requireMessage(t *rapid.T, want *modelMessage, got recall.Message) {
	require.Equal(t, want.threadID, got.ThreadID)
	require.Equal(t, c.owners[want.threadID], got.ResourceID)
	require.Equal(t, want.role, got.Role)
	require.Equal(t, want.messageType, got.Type)
	require.Equal(t, want.createdAt, got.CreatedAt)
	require.Equal(t, canonical(want.content), canonical(got.Content))
}

// Every filter against messages that have every value, which random ones
// rarely meet.
func TestFilterIsThatOfTheNaiveEvaluator(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	evaluated := newModel()
	var messages []recall.NewMessage
	for _, value := range append(append([]string{}, scalarTexts...), compoundTexts...) {
		messages = append(messages, recall.NewMessage{Content: withMetadata(`{"s":` + value + `}`)})
	}
	for _, metadata := range []string{`{}`, `null`, `"s"`, `{"K":1}`, `{"s":1,"K":1}`, `{"s":"a","K":null}`} {
		messages = append(messages, recall.NewMessage{Content: withMetadata(metadata)})
	}
	messages = append(messages, recall.NewMessage{Content: []byte(`{"format":2}`)})
	for i, draft := range messages {
		messages[i] = series(prefix(), 1, draft)[0]
		evaluated.save(messages[i], messages[i].CreatedAt)
	}
	m.save(t, messages...)

	compare := func(t must, filter recall.Filter) {
		t.Helper()
		in := recall.Request{ThreadID: thread, PerPage: of(recall.All), Filter: filter}
		var wanted []string
		for _, message := range evaluated.recall(in, nil, false).messages {
			wanted = append(wanted, message.id)
		}
		require.ElementsMatch(t, wanted, ids(m.recall(t, in).Messages), "%s", object(filter))
	}
	for _, text := range scalarTexts {
		value := decode([]byte(text))
		compare(t, recall.Filter{Metadata: map[string]any{"s": value}})
		for _, operator := range []string{"$ne", "$gt", "$gte", "$lt", "$lte"} {
			if _, isBool := value.(bool); (isBool || value == nil) && operator != "$ne" {
				continue
			}
			compare(t, recall.Filter{Where: map[string]any{"s": map[string]any{operator: value}}})
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		for range 5 {
			compare(t, recall.Filter{Where: wheres(3).Draw(t, "where"), Metadata: pairs().Draw(t, "metadata")})
		}
	})
}

func TestIncludeGivesTheNeighboursInTheThreadsOrder(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	messages := series("m", 7, recall.NewMessage{})
	for i, at := range []int{1, 2, 3, 3, 3, 6, 7} {
		messages[i].CreatedAt = second(at)
	}
	m.save(t, messages...)
	include := func(previous, next int) recall.Request {
		return recall.Request{ThreadID: thread, Include: []recall.Include{{ID: "m3", Previous: &previous, Next: &next}}}
	}

	require.Equal(t, []string{"m3"}, ids(m.recall(t, include(0, 0)).Messages))
	require.Equal(t, []string{"m2", "m3", "m4"}, ids(m.recall(t, include(1, 1)).Messages))

	alone := m.recall(t, recall.Request{ThreadID: thread, Include: []recall.Include{{ID: "m3"}}})
	require.Equal(t, []string{"m3"}, ids(alone.Messages), "without widths there is no context")
	require.Equal(t, int64(0), *alone.Total)
	require.Equal(t, 0, alone.PerPage)
	require.False(t, alone.HasMore)
}

func TestDateRangeEndsBesideAndBetweenMilliseconds(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	messages := series("m", 4, recall.NewMessage{})
	for i := range messages {
		messages[i].CreatedAt = epoch.Add(time.Duration(i+1) * time.Millisecond)
	}
	m.save(t, messages...)
	at := func(microseconds int) *time.Time {
		return of(epoch.Add(time.Duration(microseconds) * time.Microsecond))
	}
	for name, one := range map[string]struct {
		in   recall.DateRange
		want []string
	}{
		"both ends are in":             {recall.DateRange{Start: at(2000), End: at(3000)}, []string{"m2", "m3"}},
		"the start is out":             {recall.DateRange{Start: at(2000), End: at(3000), StartExclusive: true}, []string{"m3"}},
		"the end is out":               {recall.DateRange{Start: at(2000), End: at(3000), EndExclusive: true}, []string{"m2"}},
		"both ends are out":            {recall.DateRange{Start: at(2000), End: at(3000), StartExclusive: true, EndExclusive: true}, nil},
		"just after the start":         {recall.DateRange{Start: at(2001)}, []string{"m3", "m4"}},
		"just after the start, out":    {recall.DateRange{Start: at(2001), StartExclusive: true}, []string{"m3", "m4"}},
		"just before the start":        {recall.DateRange{Start: at(1999)}, []string{"m2", "m3", "m4"}},
		"just before the start, out":   {recall.DateRange{Start: at(1999), StartExclusive: true}, []string{"m2", "m3", "m4"}},
		"just after the end":           {recall.DateRange{End: at(3001)}, []string{"m1", "m2", "m3"}},
		"just after the end, out":      {recall.DateRange{End: at(3001), EndExclusive: true}, []string{"m1", "m2", "m3"}},
		"just before the end":          {recall.DateRange{End: at(2999)}, []string{"m1", "m2"}},
		"just before the end, out":     {recall.DateRange{End: at(2999), EndExclusive: true}, []string{"m1", "m2"}},
		"the end before the start":     {recall.DateRange{Start: at(3000), End: at(2000)}, nil},
		"ends without a time are none": {recall.DateRange{StartExclusive: true, EndExclusive: true}, []string{"m1", "m2", "m3", "m4"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, in := range []recall.Request{{ThreadID: thread}, {ResourceID: resource}} {
				in.Filter.DateRange = one.in
				for _, roles := range [][]string{nil, {"user"}} {
					in.Filter.Roles = roles
					got := m.recall(t, in)
					require.Equal(t, append([]string{}, one.want...), ids(got.Messages))
					require.Equal(t, int64(len(one.want)), *got.Total)
				}
			}
		})
	}
}

func TestFilterComparesValueAndType(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	messages := series("m", 5, recall.NewMessage{})
	for i, metadata := range []string{`{"s":9}`, `{"s":10}`, `{"s":"10"}`, `{}`, `{"s":null}`} {
		messages[i].Content = withMetadata(metadata)
	}
	m.save(t, messages...)
	for name, one := range map[string]struct {
		filter recall.Filter
		want   string
	}{
		"gte 10":       {recall.Filter{Where: map[string]any{"s": map[string]any{"$gte": 10}}}, "m2"},
		"10":           {recall.Filter{Metadata: map[string]any{"s": number("10")}}, "m2"},
		"10.0":         {recall.Filter{Metadata: map[string]any{"s": number("10.0")}}, "m2"},
		"10 as string": {recall.Filter{Metadata: map[string]any{"s": "10"}}, "m3"},
		"null":         {recall.Filter{Metadata: map[string]any{"s": nil}}, "m5"},
		"missing":      {recall.Filter{Where: map[string]any{"s": map[string]any{"$exists": false}}}, "m4"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, []string{one.want}, ids(m.recall(t, recall.Request{ThreadID: thread, Filter: one.filter}).Messages))
		})
	}
}

func TestNotOfSeveralConditionsKeepsWhatFailsAnyOfThem(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	messages := series("m", 4, recall.NewMessage{})
	for i, metadata := range []string{`{"status":"done","owner":"x"}`, `{"status":"open","owner":"x"}`, `{"status":"open"}`, `{}`} {
		messages[i].Content = withMetadata(metadata)
	}
	m.save(t, messages...)
	where := map[string]any{
		"status": map[string]any{"$ne": "done"},
		"owner":  map[string]any{"$exists": true},
	}
	given := func(where map[string]any) []string {
		return ids(m.recall(t, recall.Request{ThreadID: thread, Filter: recall.Filter{Where: where}}).Messages)
	}
	require.Equal(t, []string{"m2"}, given(where))
	require.Equal(t, []string{"m1", "m3", "m4"}, given(map[string]any{"$not": where}))
	require.Equal(t, []string{"m2"}, given(map[string]any{"$not": map[string]any{"$not": where}}))
}

func TestMetadataThatIsNoObjectHasNoKeys(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	messages := series("m", 5, recall.NewMessage{})
	for i, metadata := range []string{`[{"k":1}]`, `[{"k":1},{"k":"a"}]`, `"k"`, `null`, `{"k":1}`} {
		messages[i].Content = withMetadata(metadata)
	}
	m.save(t, messages...)
	given := func(filter recall.Filter) []string {
		return ids(m.recall(t, recall.Request{ThreadID: thread, Filter: filter}).Messages)
	}

	require.Equal(t, []string{"m5"}, given(recall.Filter{Metadata: map[string]any{"k": 1}}))
	require.Equal(t, []string{"m5"}, given(recall.Filter{Where: map[string]any{"k": map[string]any{"$exists": true}}}))
	require.Equal(t, []string{"m1", "m2", "m3", "m4"}, given(recall.Filter{Where: map[string]any{"k": map[string]any{"$exists": false}}}))
}

func TestToolResultNeverStandsWithoutItsCall(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		contents [][]byte
		last     int
		want     []string
	}{
		"the page is widened to the call": {
			contents: [][]byte{text("weather?"), toolCall("a"), toolResult("a"), text("sunny"), text("thanks")},
			last:     3, want: []string{"m2", "m3", "m4", "m5"},
		},
		"a page that holds both stays": {
			contents: [][]byte{text("weather?"), toolCall("a"), toolResult("a"), text("sunny"), text("thanks")},
			last:     4, want: []string{"m2", "m3", "m4", "m5"},
		},
		"the call of a call": {
			contents: [][]byte{toolCall("a"), both(toolResult("a"), toolCall("b")), toolResult("b")},
			last:     1, want: []string{"m1", "m2", "m3"},
		},
		"a call that is answered twice": {
			contents: [][]byte{toolCall("a"), toolResult("a"), toolResult("a")},
			last:     1, want: []string{"m1", "m3"},
		},
		"a call widens nothing": {
			contents: [][]byte{toolCall("a"), toolResult("a"), toolCall("a")},
			last:     1, want: []string{"m3"},
		},
		"a result without a call": {
			contents: [][]byte{text("weather?"), toolCall("b"), toolResult("a")},
			last:     1, want: []string{"m3"},
		},
		"parts of AI SDK v5": {
			contents: [][]byte{
				[]byte(`{"format":2,"parts":[{"type":"tool-call","toolCallId":"a"}]}`), text("wait"),
				[]byte(`{"format":2,"parts":[{"type":"tool-result","toolCallId":"a"}]}`),
			},
			last: 1, want: []string{"m1", "m3"},
		},
		"toolInvocations beside the parts": {
			contents: [][]byte{
				[]byte(`{"format":2,"parts":[],"toolInvocations":[{"state":"call","toolCallId":"a"}]}`), text("wait"),
				[]byte(`{"format":2,"parts":[],"toolInvocations":[{"state":"result","toolCallId":"a"}]}`),
			},
			last: 1, want: []string{"m1", "m3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMemory(t)
			messages := series("m", len(one.contents), recall.NewMessage{})
			for i, content := range one.contents {
				messages[i].Content = content
			}
			m.save(t, messages...)
			in := recall.Request{ThreadID: thread, PerPage: &one.last}
			require.Len(t, m.recall(t, in).Messages, one.last)
			in.KeepToolPairs = true
			require.Equal(t, one.want, ids(m.recall(t, in).Messages))
		})
	}
}

// Some models name their calls anew from "call_0" in each turn. The call of a
// result is the nearest before it; a thread full of one name is not widened to all
// of itself.
func TestCallOfAReusedNameIsTheNearestBefore(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	messages := series("m", 60, recall.NewMessage{})
	for i := range messages {
		if i%2 == 0 {
			messages[i].Content = toolCall("call_0")
		} else {
			messages[i].Content = toolResult("call_0")
		}
	}
	m.save(t, messages...)
	in := recall.Request{ThreadID: thread, PerPage: of(3), KeepToolPairs: true}
	require.Equal(t, []string{"m57", "m58", "m59", "m60"}, ids(m.recall(t, in).Messages))
	in.PerPage = of(2)
	require.Equal(t, []string{"m59", "m60"}, ids(m.recall(t, in).Messages))
}

// both gives one content with the parts of two.
func both(a, b []byte) []byte {
	content := decode(a).(map[string]any)
	content["parts"] = append(content["parts"].([]any), decode(b).(map[string]any)["parts"].([]any)...)
	return object(content)
}

func TestCursorOutlivesTheMessageItStandsAt(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, series("m", 6, recall.NewMessage{})...)
	first := m.recall(t, recall.Request{ThreadID: thread, PerPage: of(2), Cursor: of("")})
	require.Equal(t, []string{"m5", "m6"}, ids(first.Messages))
	_, err := m.DeleteMessages(context.Background(), []string{"m5"}, "")
	require.NoError(t, err)

	second := m.recall(t, recall.Request{ThreadID: thread, PerPage: of(2), Cursor: &first.NextCursor})
	require.Equal(t, []string{"m3", "m4"}, ids(second.Messages))
	require.Equal(t, int64(5), *second.Total)
}

func TestCursorWalksOnBehindAnInsertionAtItsTime(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	messages := series("m", 4, recall.NewMessage{})
	for i := range messages {
		messages[i].CreatedAt = second(1)
	}
	m.save(t, messages...)
	first := m.recall(t, recall.Request{ThreadID: thread, PerPage: of(2), Cursor: of(""), Direction: recall.Ascending})
	require.Equal(t, []string{"m1", "m2"}, ids(first.Messages))
	m.save(t, message(recall.NewMessage{ID: "late", CreatedAt: second(1)}), message(recall.NewMessage{ID: "early", CreatedAt: second(0)}))

	rest := m.recall(t, recall.Request{ThreadID: thread, PerPage: of(9), Cursor: &first.NextCursor, Direction: recall.Ascending})
	require.Equal(t, []string{"m3", "m4", "late"}, ids(rest.Messages))
	require.False(t, rest.HasMore)
}

// Ids that may not be seen add nothing, and nothing tells them from those that
// do not exist.
func TestIncludeTellsNothingOfForeignMessages(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, message(recall.NewMessage{ID: "mine"}), message(recall.NewMessage{ID: "other", ThreadID: "second"}))
	m.save(t, message(recall.NewMessage{ID: "foreign", ThreadID: "theirs", ResourceID: "bob"}))
	for name, in := range map[string]recall.Request{
		"thread and resource": {ThreadID: thread, ResourceID: resource},
		"resource":            {ResourceID: resource},
		"thread":              {ThreadID: thread},
	} {
		t.Run(name, func(t *testing.T) {
			in.Include = []recall.Include{{ID: "unknown", Previous: of(5), Next: of(5)}}
			unknown := m.recall(t, in)
			in.Include[0].ID = "foreign"
			require.Equal(t, unknown, m.recall(t, in))
			if in.ResourceID != "" {
				in.Include[0].ThreadID = "theirs"
				require.Equal(t, unknown, m.recall(t, in))
			}
			require.Empty(t, unknown.Messages)
		})
	}
}

func TestUnknownResourceHasNoMessages(t *testing.T) {
	t.Parallel()
	got := newMemory(t).recall(t, recall.Request{ResourceID: "nobody"})
	require.Empty(t, got.Messages)
	require.NotNil(t, got.Messages)
	require.Equal(t, int64(0), *got.Total)
}

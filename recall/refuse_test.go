package recall_test

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/recall"
)

// call is one way into a memory with one value left open, which an error blames
// by its field.
type call[T any] struct {
	field string
	do    func(m memory, value T) error
}

func recalled(m memory, in recall.Request) error {
	if in.ThreadID == "" && in.ResourceID == "" {
		in.ThreadID = thread
	}
	_, err := m.Recall(ctx, in)
	_, listed := m.ListMessages(ctx, in)
	if codeOf(err) != codeOf(listed) {
		panic("Recall and ListMessages do not agree")
	}
	return err
}

func saved(m memory, set recall.NewMessage) error {
	_, err := m.SaveMessages(ctx, []recall.NewMessage{message(set)}, true)
	return err
}

func updated(m memory, update recall.MessageUpdate) error {
	if update.ID == "" {
		update.ID = "m1"
	}
	_, err := m.UpdateMessages(ctx, []recall.MessageUpdate{update}, "")
	return err
}

func cloned(m memory, in recall.ThreadClone) error {
	if in.SourceID == "" {
		in.SourceID = thread
	}
	_, err := m.CloneThread(ctx, in)
	return err
}

func where(key string, value any) recall.Request {
	return recall.Request{Filter: recall.Filter{Where: map[string]any{key: value}}}
}

// idCalls take an id: bounded by IDBytes, and by what PostgreSQL can store.
var idCalls = []call[string]{
	{"messages.0.id", func(m memory, v string) error { return saved(m, recall.NewMessage{ID: v}) }},
	{"messages.0.threadId", func(m memory, v string) error { return saved(m, recall.NewMessage{ThreadID: v}) }},
	{"messages.0.resourceId", func(m memory, v string) error { return saved(m, recall.NewMessage{ResourceID: v}) }},
	{"messages.0.role", func(m memory, v string) error { return saved(m, recall.NewMessage{Role: v}) }},
	{"messages.0.type", func(m memory, v string) error { return saved(m, recall.NewMessage{Type: v}) }},
	{"messages.0.id", func(m memory, v string) error { return updated(m, recall.MessageUpdate{ID: v, Role: "user"}) }},
	{"messages.0.role", func(m memory, v string) error { return updated(m, recall.MessageUpdate{Role: v}) }},
	{"messages.0.type", func(m memory, v string) error { return updated(m, recall.MessageUpdate{Type: v}) }},
	{"resourceId", func(m memory, v string) error {
		_, err := m.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "m1", Role: "user"}}, v)
		return err
	}},
	{"messageIds.1", func(m memory, v string) error {
		_, err := m.DeleteMessages(ctx, []string{"unknown", v}, "")
		return err
	}},
	{"resourceId", func(m memory, v string) error {
		_, err := m.DeleteMessages(ctx, []string{"m1"}, v)
		return err
	}},
	{"threadId", func(m memory, v string) error { _, err := m.DeleteThreadMessages(ctx, v, ""); return err }},
	{"resourceId", func(m memory, v string) error { _, err := m.DeleteThreadMessages(ctx, thread, v); return err }},
	{"threadId", func(m memory, v string) error {
		_, err := m.CreateThread(ctx, recall.NewThread{ID: v, ResourceID: resource})
		return err
	}},
	{"resourceId", func(m memory, v string) error {
		_, err := m.CreateThread(ctx, recall.NewThread{ResourceID: v})
		return err
	}},
	{"threadId", func(m memory, v string) error { _, err := m.Thread(ctx, v, ""); return err }},
	{"resourceId", func(m memory, v string) error { _, err := m.Thread(ctx, thread, v); return err }},
	{"resourceId", func(m memory, v string) error {
		_, err := m.ListThreads(ctx, recall.ThreadListing{ResourceID: v})
		return err
	}},
	{"threadId", func(m memory, v string) error {
		_, err := m.UpdateThread(ctx, recall.ThreadUpdate{ID: v})
		return err
	}},
	{"resourceId", func(m memory, v string) error {
		_, err := m.UpdateThread(ctx, recall.ThreadUpdate{ID: thread, ResourceID: v})
		return err
	}},
	{"threadId", func(m memory, v string) error { _, err := m.TransferThread(ctx, v, "", "bob"); return err }},
	{"resourceId", func(m memory, v string) error { _, err := m.TransferThread(ctx, thread, v, "bob"); return err }},
	{"resourceId", func(m memory, v string) error { _, err := m.TransferThread(ctx, thread, "", v); return err }},
	{"threadId", func(m memory, v string) error { return m.DeleteThread(ctx, v, "") }},
	{"resourceId", func(m memory, v string) error { return m.DeleteThread(ctx, thread, v) }},
	{"threadId", func(m memory, v string) error { return cloned(m, recall.ThreadClone{SourceID: v}) }},
	{"newThreadId", func(m memory, v string) error { return cloned(m, recall.ThreadClone{ID: v}) }},
	{"resourceId", func(m memory, v string) error { return cloned(m, recall.ThreadClone{SourceResourceID: v}) }},
	{"resourceId", func(m memory, v string) error { return cloned(m, recall.ThreadClone{ResourceID: v}) }},
	{"options.messageFilter.messageIds.1", func(m memory, v string) error {
		return cloned(m, recall.ThreadClone{MessageIDs: []string{"m1", v}})
	}},
	{"threadId", func(m memory, v string) error { _, err := m.Clones(ctx, v, ""); return err }},
	{"resourceId", func(m memory, v string) error { _, err := m.SourceThread(ctx, thread, v); return err }},
	{"threadId", func(m memory, v string) error { _, err := m.CloneHistory(ctx, v, ""); return err }},
	{"threadId", func(m memory, v string) error { return recalled(m, recall.Request{ThreadID: v}) }},
	{"resourceId", func(m memory, v string) error { return recalled(m, recall.Request{ResourceID: v}) }},
	{"include.1.id", func(m memory, v string) error {
		return recalled(m, recall.Request{Include: []recall.Include{{ID: "m1"}, {ID: v}}})
	}},
	{"include.0.threadId", func(m memory, v string) error {
		return recalled(m, recall.Request{Include: []recall.Include{{ID: "m1", ThreadID: v}}})
	}},
	{"filter.roles.1", func(m memory, v string) error {
		return recalled(m, recall.Request{Filter: recall.Filter{Roles: []string{"user", v}}})
	}},
}

// textCalls take a text with a bound of its own.
func textCalls(limits recall.Limits) map[int][]call[string] {
	return map[int][]call[string]{
		limits.IDBytes: idCalls,
		limits.TitleBytes: {
			{"title", func(m memory, v string) error {
				_, err := m.CreateThread(ctx, recall.NewThread{ResourceID: resource, Title: &v})
				return err
			}},
			{"title", func(m memory, v string) error {
				_, err := m.UpdateThread(ctx, recall.ThreadUpdate{ID: thread, Title: &v})
				return err
			}},
			{"title", func(m memory, v string) error { return cloned(m, recall.ThreadClone{Title: &v}) }},
		},
		limits.MetadataBytes: {
			{"filter.metadata.k", func(m memory, v string) error {
				return recalled(m, recall.Request{Filter: recall.Filter{Metadata: map[string]any{"k": v}}})
			}},
			{"metadata.k", func(m memory, v string) error {
				_, err := m.ListThreads(ctx, recall.ThreadListing{Metadata: map[string]any{"k": v}})
				return err
			}},
			{"filter.where.k", func(m memory, v string) error { return recalled(m, where("k", v)) }},
			{"filter.where.k.$gt", func(m memory, v string) error { return recalled(m, where("k", map[string]any{"$gt": v})) }},
			{"filter.where.$or.1.k.$nin.1", func(m memory, v string) error {
				return recalled(m, where("$or", []any{map[string]any{}, map[string]any{"k": map[string]any{"$nin": []any{1, v}}}}))
			}},
		},
	}
}

// seeded is a memory with a thread that has two messages.
func seeded(t *testing.T) memory {
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread, Title: of("title"), Metadata: json.RawMessage(`{"k":1}`)})
	m.save(t, series("m", 2, recall.NewMessage{Content: withMetadata(`{"k":1}`)})...)
	return m
}

func TestTextIsRefusedWhereItIsTooLongOrNoneCanStoreIt(t *testing.T) {
	t.Parallel()
	m := seeded(t)
	untouched := m.contents(t)
	for limit, calls := range textCalls(recall.DefaultLimits()) {
		for i, call := range calls {
			for _, one := range []struct {
				value string
				code  recall.Code
			}{
				{strings.Repeat("x", limit+1), recall.CodeInvalid},
				{strings.Repeat("é", limit/2+1), recall.CodeInvalid}, // bytes are counted
				{"a\x00b", recall.CodeUnstorable},
				{"\x00", recall.CodeUnstorable},
				{"a\xffb", recall.CodeInvalid},
				{"\xc0\x80", recall.CodeInvalid},         // a NUL, encoded too long
				{"\xed\xa0\x80", recall.CodeInvalid},     // a lone surrogate
				{"\xf4\x90\x80\x80", recall.CodeInvalid}, // beyond Unicode
				{"\xe2\x82", recall.CodeInvalid},
			} {
				err := call.do(m, one.value)
				require.Error(t, err, "%d: %s of %.20q", i, call.field, one.value)
				requireCode(t, err, one.code, call.field)
			}
		}
	}
	require.Equal(t, untouched, m.contents(t), "nothing changed")
}

func TestTextIsTakenUpToItsLimit(t *testing.T) {
	t.Parallel()
	m := seeded(t)
	for limit, calls := range textCalls(recall.DefaultLimits()) {
		for _, call := range calls {
			for _, value := range []string{
				strings.Repeat("x", limit), strings.Repeat("x", limit-1), strings.Repeat("é", limit/2), strings.Repeat("\U0010ffff", limit/4),
				"\x01\x7f\u0085\u2028\ufeff\ufffe\uffff", `"\'$1 -- %s {}`, " ",
			} {
				switch code := codeOf(call.do(m, value)); code {
				case "", recall.CodeNotFound, recall.CodeForbidden, recall.CodeConflict:
				default:
					t.Errorf("%s of %.20q: %s", call.field, value, code)
				}
			}
		}
	}
	m.requireCounted(t)
}

func TestTextThatMustBeGivenIsAskedFor(t *testing.T) {
	t.Parallel()
	m := seeded(t)
	untouched := m.contents(t)
	for _, call := range []call[string]{
		{"messages.0.role", func(m memory, v string) error {
			_, err := m.SaveMessages(ctx, []recall.NewMessage{{ThreadID: thread, ResourceID: resource, Role: v, Content: text("")}}, true)
			return err
		}},
		{"messages.0.content", func(m memory, v string) error {
			_, err := m.SaveMessages(ctx, []recall.NewMessage{{ThreadID: thread, ResourceID: resource, Role: "user", Content: []byte(v)}}, true)
			return err
		}},
		{"messages.0.id", func(m memory, v string) error {
			_, err := m.UpdateMessages(ctx, []recall.MessageUpdate{{ID: v, Role: "user"}}, "")
			return err
		}},
		{"messageIds.0", func(m memory, v string) error { _, err := m.DeleteMessages(ctx, []string{v}, ""); return err }},
		{"resourceId", func(m memory, v string) error {
			_, err := m.CreateThread(ctx, recall.NewThread{ID: "new", ResourceID: v})
			return err
		}},
		{"threadId", func(m memory, v string) error { _, err := m.Thread(ctx, v, ""); return err }},
		{"threadId", func(m memory, v string) error { _, err := m.UpdateThread(ctx, recall.ThreadUpdate{ID: v}); return err }},
		{"threadId", func(m memory, v string) error { return m.DeleteThread(ctx, v, "") }},
		{"threadId", func(m memory, v string) error { _, err := m.DeleteThreadMessages(ctx, v, ""); return err }},
		{"resourceId", func(m memory, v string) error { _, err := m.TransferThread(ctx, thread, "", v); return err }},
		{"threadId", func(m memory, v string) error {
			_, err := m.CloneThread(ctx, recall.ThreadClone{SourceID: v})
			return err
		}},
		{"options.messageFilter.messageIds.0", func(m memory, v string) error {
			return cloned(m, recall.ThreadClone{MessageIDs: []string{v}})
		}},
		{"threadId", func(m memory, v string) error { _, err := m.Recall(ctx, recall.Request{ThreadID: v}); return err }},
		{"include.0.id", func(m memory, v string) error {
			return recalled(m, recall.Request{Include: []recall.Include{{ID: v}}})
		}},
		{"filter.roles.0", func(m memory, v string) error {
			return recalled(m, recall.Request{Filter: recall.Filter{Roles: []string{v}}})
		}},
	} {
		err := call.do(m, "")
		require.Error(t, err, call.field)
		requireCode(t, err, recall.CodeInvalid, call.field)
	}
	for _, ownerless := range []recall.NewMessage{{ResourceID: resource}, {ThreadID: thread}, {}} {
		ownerless.Role, ownerless.Content = "user", text("")
		_, err := m.SaveMessages(ctx, []recall.NewMessage{ownerless}, true)
		requireCode(t, err, recall.CodeInvalid)
	}
	_, err := m.SaveMessages(ctx, []recall.NewMessage{
		message(recall.NewMessage{ThreadID: "new"}), message(recall.NewMessage{ThreadID: "new", ResourceID: "bob"}),
	}, true)
	requireCode(t, err, recall.CodeInvalid)
	require.Equal(t, untouched, m.contents(t))
}

// jsonCalls take a JSON object; content may be a string too.
var (
	contentCalls = []call[string]{
		{"messages.0.content", func(m memory, v string) error { return saved(m, recall.NewMessage{ID: "new", Content: []byte(v)}) }},
		{"messages.0.content", func(m memory, v string) error { return updated(m, recall.MessageUpdate{Content: []byte(v)}) }},
	}
	metadataCalls = []call[string]{
		{"metadata", func(m memory, v string) error {
			_, err := m.CreateThread(ctx, recall.NewThread{ResourceID: resource, Metadata: []byte(v)})
			return err
		}},
		{"metadata", func(m memory, v string) error {
			_, err := m.UpdateThread(ctx, recall.ThreadUpdate{ID: thread, Metadata: []byte(v)})
			return err
		}},
		{"metadata", func(m memory, v string) error { return cloned(m, recall.ThreadClone{Metadata: []byte(v)}) }},
	}
)

func TestJSONIsRefusedWhereItCannotBeStoredUnchanged(t *testing.T) {
	t.Parallel()
	m := seeded(t)
	untouched := m.contents(t)
	for _, one := range []struct {
		value string
		code  recall.Code
		place string // below the field
	}{
		{`{"a":"\u0000"}`, recall.CodeUnstorable, "a"},
		{`{"a":[0,"x\u0000y"]}`, recall.CodeUnstorable, "a.1"},
		{`{"a":"\ud800"}`, recall.CodeUnstorable, "a"},
		{`{"a":"\udc00x"}`, recall.CodeUnstorable, "a"},
		{`{"a":"\ud800\ud800"}`, recall.CodeUnstorable, "a"},
		{`{"a":{"b":"\ud83d\u0041"}}`, recall.CodeUnstorable, "a.b"},
		{`{"a":1,"a":2}`, recall.CodeInvalid, "a"},
		{`{"x":{"a":1,"\u0061":2}}`, recall.CodeInvalid, "x.a"},
		{"{\"a\":\"\xff\"}", recall.CodeInvalid, "a"},
		{"{\"a\":\"\xed\xa0\x80\"}", recall.CodeInvalid, "a"},
		{`{"a":1e130000}`, recall.CodeInvalid, "a"},
		{`{"a":[1e309]}`, recall.CodeInvalid, "a.0"},
		{`{"a":-1e309}`, recall.CodeInvalid, "a"},
		{`{"a":1e-400}`, recall.CodeInvalid, "a"},
		{`{"a":0e-16383}`, recall.CodeInvalid, "a"},
		{`{"a":0e-20000}`, recall.CodeInvalid, "a"},
		{`{"a":0e99999999999}`, recall.CodeInvalid, "a"},
		{`{"a":0.0E+99999999999}`, recall.CodeInvalid, "a"},
		{`{"a":` + strings.Repeat("1", 101) + `}`, recall.CodeInvalid, "a"},
		{`{"a":0.` + strings.Repeat("0", 100) + `1}`, recall.CodeInvalid, "a"},
		{nested(65), recall.CodeInvalid, strings.TrimSuffix(strings.Repeat("a.", 64), ".")},
		{`[]`, recall.CodeInvalid, ""},
		{`null`, recall.CodeInvalid, ""},
		{`1`, recall.CodeInvalid, ""},
		{`{} {}`, recall.CodeInvalid, ""},
		{" \n\t[{}]", recall.CodeInvalid, ""},
	} {
		for _, call := range append(append([]jsonCall{}, contentCalls...), metadataCalls...) {
			err := call.do(m, one.value)
			require.Error(t, err, "%s of %.40q", call.field, one.value)
			requireCode(t, err, one.code, strings.TrimSuffix(call.field+"."+one.place, "."))
		}
	}
	for _, broken := range []string{`{`, `{"a":`, `{"a":01}`, `{"a":1,}`, `{'a':1}`, `{"a":"` + "\n" + `"}`, `{"a":NaN}`, `{"a":tru}`, `{"a":"\x"}`, "\ufeff{}", `{"a":"\u12"}`, `nul`, `"`, `{"a" 1}`, "\x00", "{}\x00"} {
		for _, call := range append(append([]jsonCall{}, contentCalls...), metadataCalls...) {
			err := call.do(m, broken)
			require.Error(t, err, "%s of %q", call.field, broken)
			require.Contains(t, []recall.Code{recall.CodeInvalid, recall.CodeUnstorable}, codeOf(err), "%s of %q: %v", call.field, broken, err)
		}
	}
	// A string is a content, but no metadata.
	for _, call := range metadataCalls {
		requireCode(t, call.do(m, `"a"`), recall.CodeInvalid, "metadata")
	}
	for _, value := range []string{`"\u0000"`, `"\udfff"`} {
		for _, call := range contentCalls {
			requireCode(t, call.do(m, value), recall.CodeUnstorable, "messages.0.content")
		}
	}
	require.Equal(t, untouched, m.contents(t), "nothing changed")
}

type jsonCall = call[string]

// nested gives an object that is depth objects deep.
func nested(depth int) string {
	return strings.Repeat(`{"a":`, depth-1) + `{}` + strings.Repeat(`}`, depth-1)
}

func TestJSONIsTakenUpToItsLimits(t *testing.T) {
	t.Parallel()
	m := seeded(t)
	limits := recall.DefaultLimits()
	padded := func(n int) string { return `{"a":"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}` }
	for _, value := range []string{
		nested(64), `{}`, ` {"a" : 1e308, "b":-1.7976931348623157e308, "c":5e-324, "d":0e10, "e":-0.0}`,
		`{"a":` + strings.Repeat("1", 100) + `}`, `{"":1," ":2,"$a":3,"__proto__":4}`,
		`{"a":"\ud83d\ude00\u0001\u2028\ufffe"}`, "{\"a\":\"\U0010ffff\"}",
	} {
		for _, call := range append(append([]jsonCall{}, contentCalls...), metadataCalls...) {
			require.NoError(t, call.do(m, value), "%s of %.40q", call.field, value)
		}
	}
	for _, call := range contentCalls {
		require.NoError(t, call.do(m, padded(limits.ContentBytes)))
		requireCode(t, call.do(m, padded(limits.ContentBytes+1)), recall.CodeInvalid, call.field)
	}
	for _, call := range metadataCalls {
		require.NoError(t, call.do(m, padded(limits.MetadataBytes)))
		requireCode(t, call.do(m, padded(limits.MetadataBytes+1)), recall.CodeInvalid, call.field)
	}
}

func TestStoredJSONIsNoLongerThanWhatCameIn(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	for _, number := range []string{"1e308", "5e-324", "0e-324", "0e308", "1.7976931348623157e308", "123456789e-200"} {
		saved := m.save(t, message(recall.NewMessage{Content: withMetadata(`{"n":` + number + `}`)}))
		stored := m.recall(t, recall.Request{ThreadID: thread, Include: []recall.Include{{ID: saved[0].ID}}}).Messages[0]
		require.Less(t, len(stored.Content), 1000, number)
	}
}

func TestNumbersOfARequestAreBounded(t *testing.T) {
	t.Parallel()
	m := seeded(t)
	limits := recall.DefaultLimits()
	for _, one := range []struct {
		field     string
		low, high int
		do        func(n int) error
	}{
		{"perPage", recall.All, limits.PerPage, func(n int) error { return recalled(m, recall.Request{PerPage: &n}) }},
		{"page", 0, limits.Page, func(n int) error { return recalled(m, recall.Request{Page: &n}) }},
		{"page", 0, limits.Page, func(n int) error { return recalled(m, recall.Request{Page: &n, PerPage: of(limits.PerPage)}) }},
		{"include.0.withPreviousMessages", 0, limits.ContextWidth, func(n int) error {
			return recalled(m, recall.Request{Include: []recall.Include{{ID: "m1", Previous: &n}}})
		}},
		{"include.0.withNextMessages", 0, limits.ContextWidth, func(n int) error {
			return recalled(m, recall.Request{Include: []recall.Include{{ID: "m1", Next: &n}}})
		}},
		{"options.messageLimit", 0, 1000, func(n int) error {
			if n == 1001 {
				n = math.MaxInt
			}
			return cloned(m, recall.ThreadClone{MessageLimit: &n})
		}},
		{"perPage", recall.All, limits.PerPage, func(n int) error {
			_, err := m.ListThreads(ctx, recall.ThreadListing{PerPage: n})
			return err
		}},
		{"page", 0, limits.Page, func(n int) error {
			_, err := m.ListThreads(ctx, recall.ThreadListing{Page: n, PerPage: limits.PerPage})
			return err
		}},
	} {
		for _, good := range []int{one.low, one.low + 1, one.high - 1, one.high} {
			require.NoError(t, one.do(good), "%s %d", one.field, good)
		}
		for _, bad := range []int{one.low - 1, one.high + 1, math.MinInt, math.MaxInt} {
			err := one.do(bad)
			require.Error(t, err, "%s %d", one.field, bad)
			requireCode(t, err, recall.CodeInvalid, one.field)
		}
	}
}

func TestListsOfARequestAreBounded(t *testing.T) {
	t.Parallel()
	m := seeded(t)
	limits := recall.DefaultLimits()
	for _, one := range []struct {
		field string
		limit int
		do    func(n int) error
	}{
		{"messages", limits.Messages, func(n int) error {
			_, err := m.SaveMessages(ctx, series("n", n, recall.NewMessage{}), true)
			return err
		}},
		{"messages", limits.Messages, func(n int) error {
			var updates []recall.MessageUpdate
			for _, message := range series("n", n, recall.NewMessage{}) {
				updates = append(updates, recall.MessageUpdate{ID: message.ID, Role: "tool"})
			}
			_, err := m.UpdateMessages(ctx, updates, "")
			return err
		}},
		{"messageIds", limits.Messages, func(n int) error {
			_, err := m.DeleteMessages(ctx, newIDs(series("unknown", n, recall.NewMessage{})), "")
			return err
		}},
		{"options.messageFilter.messageIds", limits.Messages, func(n int) error {
			return cloned(m, recall.ThreadClone{MessageIDs: newIDs(series("n", n, recall.NewMessage{}))})
		}},
		{"include", limits.IncludeItems, func(n int) error {
			items := make([]recall.Include, n)
			for i := range items {
				items[i] = recall.Include{ID: "m1", Previous: of(200), Next: of(200)}
			}
			return recalled(m, recall.Request{Include: items})
		}},
		{"filter.roles", limits.MetadataPairs, func(n int) error {
			return recalled(m, recall.Request{Filter: recall.Filter{Roles: strings.Split(strings.Repeat("x", n), "")}})
		}},
		{"filter.metadata", limits.MetadataPairs, func(n int) error {
			return recalled(m, recall.Request{Filter: recall.Filter{Metadata: manyPairs(n)}})
		}},
		{"metadata", limits.MetadataPairs, func(n int) error {
			_, err := m.ListThreads(ctx, recall.ThreadListing{Metadata: manyPairs(n)})
			return err
		}},
		{"filter.where", limits.WhereOperators, func(n int) error {
			return recalled(m, recall.Request{Filter: recall.Filter{Where: manyPairs(n)}})
		}},
		{"filter.where", limits.WhereOperators, func(n int) error { return recalled(m, where("$or", manyObjects(n))) }},
		{"filter.where", limits.WhereOperators, func(n int) error { return recalled(m, where("$and", manyObjects(n))) }},
		{"filter.where.k.$in", limits.WhereOperators, func(n int) error {
			return recalled(m, where("k", map[string]any{"$in": make([]any, n)}))
		}},
		{"filter.where.k.$nin", limits.WhereOperators, func(n int) error {
			return recalled(m, where("k", map[string]any{"$nin": make([]any, n)}))
		}},
	} {
		for _, n := range []int{one.limit - 1, one.limit} {
			require.NoError(t, one.do(n), "%s of %d", one.field, n)
		}
		untouched := m.contents(t)
		for _, n := range []int{one.limit + 1, 3 * one.limit} {
			err := one.do(n)
			require.Error(t, err, "%s of %d", one.field, n)
			requireCode(t, err, recall.CodeInvalid, one.field)
		}
		require.Equal(t, untouched, m.contents(t))
	}
	m.requireCounted(t)
}

func manyPairs(n int) map[string]any {
	all := make(map[string]any)
	for _, message := range series("k", n, recall.NewMessage{}) {
		all[message.ID] = 1
	}
	return all
}

func manyObjects(n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = map[string]any{}
	}
	return list
}

// What passes the checks must not be too much for PostgreSQL, however the
// limits are used up together.
func TestLargestFilterIsAnswered(t *testing.T) {
	t.Parallel()
	m := seeded(t)
	values := make([]any, 64)
	for i := range values {
		values[i] = strings.Repeat("€", 100)
	}
	keys := make(map[string]any)
	for key := range manyPairs(64) {
		keys[key+strings.Repeat("_", 128-len(key))] = map[string]any{"$nin": values}
	}
	require.NoError(t, recalled(m, recall.Request{Filter: recall.Filter{Where: keys}}))
	require.NoError(t, recalled(m, recall.Request{Filter: recall.Filter{Where: map[string]any{"$not": keys}}}))
}

func TestWhereBoundsEmptyAlternatives(t *testing.T) {
	t.Parallel()
	m := seeded(t)
	for _, operator := range []string{"$and", "$or"} {
		requireCode(t, recalled(m, where(operator, manyObjects(20_000))), recall.CodeInvalid, "filter.where")
		inner := make([]any, 200)
		for i := range inner {
			inner[i] = map[string]any{operator: manyObjects(200)}
		}
		requireCode(t, recalled(m, where(operator, inner)), recall.CodeInvalid, "filter.where")
	}
}

func TestWhereIsBoundedInDepth(t *testing.T) {
	t.Parallel()
	m := seeded(t)
	deep := func(n int, wrap func(inner map[string]any) map[string]any) recall.Request {
		inner := map[string]any{}
		for range n - 1 {
			inner = wrap(inner)
		}
		return recall.Request{Filter: recall.Filter{Where: inner}}
	}
	wraps := map[string]func(inner map[string]any) map[string]any{
		"$not": func(inner map[string]any) map[string]any { return map[string]any{"$not": inner} },
		"$and": func(inner map[string]any) map[string]any { return map[string]any{"$and": []any{inner}} },
		"$or":  func(inner map[string]any) map[string]any { return map[string]any{"$or": []any{inner}} },
	}
	for name, wrap := range wraps {
		require.NoError(t, recalled(m, deep(recall.DefaultLimits().JSONDepth, wrap)), name)
		require.Equal(t, recall.CodeInvalid, codeOf(recalled(m, deep(100, wrap))), name)
		require.Equal(t, recall.CodeInvalid, codeOf(recalled(m, deep(100_000, wrap))), name)
	}
	var keyed any = map[string]any{"$eq": 1}
	for range 100 {
		keyed = map[string]any{"$not": keyed}
	}
	require.Equal(t, recall.CodeInvalid, codeOf(recalled(m, where("k", keyed))))
}

func TestFilterRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	m := seeded(t)
	for _, one := range []struct {
		where map[string]any
		field string
	}{
		{map[string]any{"$nor": []any{}}, "filter.where.$nor"},
		{map[string]any{"k": map[string]any{"$regex": "x"}}, "filter.where.k.$regex"},
		{map[string]any{"k": map[string]any{"plain": 1}}, "filter.where.k.plain"},
		{map[string]any{"k": map[string]any{}}, "filter.where.k"},
		{map[string]any{"$or": []any{map[string]any{}, map[string]any{"$not": map[string]any{"k": map[string]any{"$ne": []any{}}}}}}, "filter.where.$or.1.$not.k.$ne"},
		{map[string]any{"$and": map[string]any{}}, "filter.where.$and"},
		{map[string]any{"$or": "x"}, "filter.where.$or"},
		{map[string]any{"$or": []any{1}}, "filter.where.$or.0"},
		{map[string]any{"$not": []any{}}, "filter.where.$not"},
		{map[string]any{"$not": nil}, "filter.where.$not"},
		{map[string]any{"k": []any{1}}, "filter.where.k"},
		{map[string]any{"k": map[string]any{"$eq": map[string]any{}}}, "filter.where.k.$eq"},
		{map[string]any{"k": map[string]any{"$gt": nil}}, "filter.where.k.$gt"},
		{map[string]any{"k": map[string]any{"$lte": true}}, "filter.where.k.$lte"},
		{map[string]any{"k": map[string]any{"$in": 1}}, "filter.where.k.$in"},
		{map[string]any{"k": map[string]any{"$in": []any{1, []any{}}}}, "filter.where.k.$in.1"},
		{map[string]any{"k": map[string]any{"$exists": 1}}, "filter.where.k.$exists"},
		{map[string]any{"k": map[string]any{"$not": 1}}, "filter.where.k.$not"},
		{map[string]any{"k": map[string]any{"$eq": math.NaN()}}, "filter.where.k.$eq"},
		{map[string]any{"k": math.Inf(-1)}, "filter.where.k"},
		{map[string]any{"k": float32(math.Inf(1))}, "filter.where.k"},
		{map[string]any{"k": struct{}{}}, "filter.where.k"},
		{map[string]any{"k": complex(1, 1)}, "filter.where.k"},
		{map[string]any{"k": time.Second}, "filter.where.k"},
	} {
		err := recalled(m, recall.Request{Filter: recall.Filter{Where: one.where}})
		require.Error(t, err, one.field)
		requireCode(t, err, recall.CodeInvalid, one.field)
	}
	bad := []string{"", "1a", "a-b", "a.b", "a b", "é", `a"b`, `a\`, "a\x00", "\xff", "__proto__", "constructor", "prototype", strings.Repeat("k", 129), "$", "a$"}
	for _, key := range bad {
		require.Equal(t, recall.CodeInvalid, codeOf(recalled(m, where(key, 1))), "%q", key)
		require.Equal(t, recall.CodeInvalid, codeOf(recalled(m, where("$or", []any{map[string]any{key: 1}}))), "%q", key)
		err := recalled(m, recall.Request{Filter: recall.Filter{Metadata: map[string]any{key: 1}}})
		require.Equal(t, recall.CodeInvalid, codeOf(err), "%q", key)
		_, err = m.ListThreads(ctx, recall.ThreadListing{Metadata: map[string]any{key: 1}})
		require.Equal(t, recall.CodeInvalid, codeOf(err), "%q", key)
	}
	for _, key := range []string{"a", "_", "A1_", "true", "null", "last", "strict", "exists", "type", strings.Repeat("k", 128), "proto"} {
		require.NoError(t, recalled(m, where(key, 1)), key)
		require.NoError(t, recalled(m, recall.Request{Filter: recall.Filter{Metadata: map[string]any{key: nil}}}), key)
	}
}

func TestFilterNumbersAreBounded(t *testing.T) {
	t.Parallel()
	m := seeded(t)
	for _, bad := range []string{
		"1e130000", "1e-130000", "1e-20000", "0e-20000", "0e99999999999", "1e309", "-1e309", strings.Repeat("9", 1000),
		"", " 1", "01", "+1", "1.", ".5", "0x10", "1_000", "Infinity", "NaN", "1e", "--1", "1;", "1)", "true", "null", `"1"`, "1\x00", "²",
	} {
		require.Error(t, recalled(m, where("k", number(bad))), "%q", bad)
		requireCode(t, recalled(m, where("k", number(bad))), recall.CodeInvalid, "filter.where.k")
		requireCode(t, recalled(m, where("k", map[string]any{"$in": []any{number(bad)}})), recall.CodeInvalid, "filter.where.k.$in.0")
		requireCode(t, recalled(m, recall.Request{Filter: recall.Filter{Metadata: map[string]any{"k": number(bad)}}}), recall.CodeInvalid, "filter.metadata.k")
	}
	for _, good := range []string{"1e308", "-1e308", "5e-324", "0", "-0", "-0.0", "0e0", "1E+2", "1.50e-7", "123456789012345678901234567890", "-9007199254740993"} {
		require.NoError(t, recalled(m, where("k", number(good))), good)
		require.NoError(t, recalled(m, where("k", map[string]any{"$lt": number(good)})), good)
	}
}

func TestCursorsThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	m := seeded(t)
	issued := m.recall(t, recall.Request{ThreadID: thread, PerPage: of(1), Cursor: of("")}).NextCursor
	require.NotEmpty(t, issued)
	require.NoError(t, recalledAt(m, issued, recall.Descending))
	plain, err := base64.RawURLEncoding.DecodeString(issued)
	require.NoError(t, err)
	encode := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	altered := func(from, to string) string {
		require.Contains(t, string(plain), from)
		return encode(strings.Replace(string(plain), from, to, 1))
	}
	fields := map[string]json.RawMessage{}
	require.NoError(t, json.Unmarshal(plain, &fields))

	for name, cursor := range map[string]string{
		"no base64":            "!!!",
		"padded":               issued + "=",
		"cut":                  issued[:len(issued)-1],
		"longer":               issued + "A",
		"no JSON":              encode("hello"),
		"null":                 encode("null"),
		"empty object":         encode("{}"),
		"spaces":               encode(" " + string(plain)),
		"another field":        altered("{", `{"x":1,`),
		"another letter case":  altered(`"d"`, `"D"`),
		"negative position":    altered(`"s":`+string(fields["s"]), `"s":-1`),
		"position no number":   altered(`"s":`+string(fields["s"]), `"s":"1"`),
		"position beyond":      altered(`"s":`+string(fields["s"]), `"s":9223372036854775808`),
		"position a fraction":  altered(`"s":`+string(fields["s"]), `"s":1.0`),
		"time beyond years":    altered(`"t":`+string(fields["t"]), `"t":253402300800000`),
		"time before years":    altered(`"t":`+string(fields["t"]), `"t":-62135596800001`),
		"time beyond integers": altered(`"t":`+string(fields["t"]), `"t":1e130000`),
		"time at the brink":    altered(`"t":`+string(fields["t"]), `"t":9223372036854775807`),
		"no direction":         altered(`"DESC"`, `""`),
		"unknown direction":    altered(`"DESC"`, `"DOWN"`),
		"thread too long":      altered(`"`+thread+`"`, `"`+strings.Repeat("x", 513)+`"`),
		"invalid UTF-8":        altered(thread, "\xff"),
		"NUL":                  encode(string(plain) + "\x00"),
		"very long":            strings.Repeat("A", 100_000),
	} {
		err := recalledAt(m, cursor, recall.Descending)
		require.Error(t, err, name)
		requireCode(t, err, recall.CodeInvalid, "cursor")
	}
	// No one has a thread of this name.
	requireCode(t, recalledAt(m, altered(thread, `\u0000`), recall.Descending), recall.CodeUnstorable, "cursor")

	requireCode(t, recalledAt(m, issued, recall.Ascending), recall.CodeInvalid, "cursor")
	ascending, err := m.ListMessages(ctx, recall.Request{ThreadID: thread, PerPage: of(1)})
	require.NoError(t, err)
	requireCode(t, recalledAt(m, ascending.NextCursor, recall.Descending), recall.CodeInvalid, "cursor")
	requireCode(t, recalled(m, recall.Request{Cursor: &issued, Page: of(0)}), recall.CodeInvalid, "cursor")
	requireCode(t, recalled(m, recall.Request{Cursor: of(""), Page: of(1)}), recall.CodeInvalid, "cursor")
}

// recalledAt asks at a cursor, in a thread and in a resource, filtered and not.
func recalledAt(m memory, cursor string, direction recall.Direction) error {
	var first error
	for i, in := range []recall.Request{
		{ThreadID: thread}, {ResourceID: resource},
		{ThreadID: thread, Filter: recall.Filter{Roles: []string{"user"}}},
		{ResourceID: resource, Filter: recall.Filter{Roles: []string{"user"}}},
	} {
		in.Cursor, in.Direction = &cursor, direction
		err := recalled(m, in)
		if i == 0 {
			first = err
		} else if codeOf(err) != codeOf(first) {
			panic("the scopes do not agree")
		}
	}
	return first
}

// A cursor holds no right: it is a place, and what may be seen is asked anew.
func TestCursorOfAnotherScopeShowsNothingForeign(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.save(t, series("m", 5, recall.NewMessage{})...)
	m.save(t, series("n", 5, recall.NewMessage{ThreadID: "theirs", ResourceID: "bob"})...)
	mine := m.recall(t, recall.Request{ThreadID: thread, PerPage: of(2), Cursor: of("")})
	theirs := m.recall(t, recall.Request{ThreadID: "theirs", ResourceID: "bob", PerPage: of(9), Cursor: &mine.NextCursor})
	for _, message := range theirs.Messages {
		require.Equal(t, "bob", message.ResourceID)
	}
	_, err := m.Recall(ctx, recall.Request{ThreadID: thread, ResourceID: "bob", Cursor: &mine.NextCursor})
	requireCode(t, err, recall.CodeForbidden)
}

func TestDirectionsAndOrdersAreThoseThatExist(t *testing.T) {
	t.Parallel()
	m := seeded(t)
	for _, direction := range []recall.Direction{"asc", "desc", "UP", " ASC", "ASC;"} {
		requireCode(t, recalled(m, recall.Request{Direction: direction}), recall.CodeInvalid, "orderBy.direction")
		_, err := m.ListThreads(ctx, recall.ThreadListing{Direction: direction})
		requireCode(t, err, recall.CodeInvalid, "orderBy.direction")
	}
	_, err := m.ListThreads(ctx, recall.ThreadListing{OrderBy: "created_at; DROP TABLE recall.threads"})
	requireCode(t, err, recall.CodeInvalid, "orderBy.field")
}

func TestUpdateOfOneMessageTwiceIsRefused(t *testing.T) {
	t.Parallel()
	m := seeded(t)
	untouched := m.contents(t)
	_, err := m.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "m1", Role: "tool"}, {ID: "m2"}, {ID: "m1", Role: "user"}}, "")
	requireCode(t, err, recall.CodeInvalid, "messages.2.id")
	require.Equal(t, untouched, m.contents(t))
}

func TestEveryBadFieldIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	m := seeded(t)
	_, err := m.Recall(ctx, recall.Request{
		PerPage: of(-5), Page: of(-1), Direction: "UP",
		Filter: recall.Filter{
			Metadata: map[string]any{"a-b": 1, "c": []any{}},
			Where:    map[string]any{"$x": 1, "k": map[string]any{"$gt": true}},
			Roles:    []string{""},
		},
		Include: []recall.Include{{ID: "m1", Previous: of(-1)}, {Next: of(201)}},
	})
	requireCode(t, err, recall.CodeInvalid,
		"threadId", "perPage", "page", "orderBy.direction", "filter.metadata.a-b", "filter.metadata.c", "filter.where.$x",
		"filter.where.k.$gt", "filter.roles.0", "include.0.withPreviousMessages", "include.1.id", "include.1.withNextMessages")

	good, bad := message(recall.NewMessage{ID: "new"}), message(recall.NewMessage{ID: "\x00", Content: json.RawMessage(`{"a":"\u0000"}`)})
	untouched := m.contents(t)
	_, err = m.SaveMessages(ctx, []recall.NewMessage{good, bad}, true)
	requireCode(t, err, recall.CodeUnstorable, "messages.1.id", "messages.1.content.a")
	require.Equal(t, untouched, m.contents(t))
}

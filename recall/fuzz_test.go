package recall_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/recall"
)

// refusedOrAnswered checks that err is none, or says that the caller is wrong.
func refusedOrAnswered(t *testing.T, err error) {
	t.Helper()
	if code := codeOf(err); err != nil && code != recall.CodeInvalid && code != recall.CodeUnstorable {
		t.Errorf("%q: %v", code, err)
	}
}

// Whatever a client sends back as a cursor, it is refused or works.
func FuzzCursor(f *testing.F) {
	m := newMemory(f)
	_, err := m.SaveMessages(ctx, series("m", 3, recall.NewMessage{}), true)
	require.NoError(f, err)
	for _, direction := range []recall.Direction{recall.Ascending, recall.Descending} {
		page, err := m.Recall(ctx, recall.Request{ThreadID: thread, PerPage: of(1), Direction: direction, Cursor: of("")})
		require.NoError(f, err)
		f.Add(page.NextCursor)
	}
	f.Add("")
	f.Add("e30")
	f.Add("eyJkIjoiQVNDIiwidCI6MCwiaSI6IiIsInMiOjB9")
	f.Fuzz(func(t *testing.T, cursor string) {
		for _, direction := range []recall.Direction{recall.Ascending, recall.Descending} {
			for _, in := range []recall.Request{
				{ThreadID: thread}, {ResourceID: resource}, {ThreadID: thread, Filter: recall.Filter{Roles: []string{"user"}}},
			} {
				in.Cursor, in.Direction = &cursor, direction
				_, err := m.Recall(ctx, in)
				refusedOrAnswered(t, err)
			}
		}
	})
}

// PostgreSQL accepts every filter that the checks let pass, and finds what the
// naive evaluator finds.
func FuzzWhere(f *testing.F) {
	m := newMemory(f)
	evaluated := newModel()
	messages := series("m", len(scalarTexts)+2, recall.NewMessage{Content: withMetadata(`{"k":1}`)})
	for i := range messages {
		if i < len(scalarTexts) {
			messages[i].Content = withMetadata(`{"s":` + scalarTexts[i] + `}`)
		}
		evaluated.save(messages[i], messages[i].CreatedAt)
	}
	_, err := m.SaveMessages(ctx, messages, true)
	require.NoError(f, err)
	for _, seed := range []string{
		`{}`, `{"s":1}`, `{"s":{"$gte":10}}`, `{"s":{"$in":[1,"2",null,true]}}`, `{"s":{"$not":{"$lt":"é"}}}`,
		`{"$and":[{"s":{"$ne":-1.5e3}},{"$or":[{"k":{"$exists":false}},{"$not":{"s":"\"\\$'"}}]}]}`, `{"$or":[]}`, `{"$not":{"$and":[]}}`,
		`{"s":{"$eq":1e-130000}}`, `{"s":{"$eq":0e-20000}}`, `{"s":"\u0000"}`, `{"s":"\ud800"}`, `{"a b":1}`, `{"s":{"$gt":null}}`,
		`{"$not":{"s":{"$ne":2},"k":{"$exists":true}}}`, `{"s":[1]}`, `{"$where":"1"}`, `{"s":{"$nin":[]}}`, `{"last":{"$lte":9007199254740993}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		var where map[string]any
		if decoder.Decode(&where) != nil {
			return
		}
		in := recall.Request{ThreadID: thread, PerPage: of(recall.All), Filter: recall.Filter{Where: where}}
		got, err := m.Recall(ctx, in)
		if err != nil {
			refusedOrAnswered(t, err)
			return
		}
		var wanted []string
		for _, message := range evaluated.recall(in, nil, false).messages {
			wanted = append(wanted, message.id)
		}
		require.ElementsMatch(t, wanted, ids(got.Messages))
	})
}

// Whatever a message holds, it is refused or comes back as it was.
func FuzzContent(f *testing.F) {
	m := newMemory(f)
	for _, seed := range []string{
		`{}`, `{"format":2,"parts":[{"type":"text","text":"hi"}],"metadata":{"k":[1,2.50,-0.0,1e2]}}`, `"text"`, `"\u0000"`, `{"a":"\ud83d\ude00"}`,
		`{"a":1,"a":2}`, `{"a":0e-324}`, `{"a":1e400}`, "{\"a\":\"\xff\"}", `{"":{"":[[],{}]}}`, `{"a":"\ud800"}`, ` {"a" : null } `, `[1]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		saved, err := m.SaveMessages(ctx, []recall.NewMessage{message(recall.NewMessage{Content: content})}, true)
		if err != nil {
			refusedOrAnswered(t, err)
			return
		}
		got, err := m.Recall(ctx, recall.Request{ThreadID: thread, Include: []recall.Include{{ID: saved[0].ID}}})
		require.NoError(t, err)
		require.Equal(t, canonical(saved[0].Content), canonical(got.Messages[0].Content))
		if bytes.TrimLeft(content, " \t\r\n")[0] == '{' {
			require.Equal(t, canonical(content), canonical(got.Messages[0].Content))
		}
	})
}

package recall_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/recall"
)

const personSchema = `{"type":"object","additionalProperties":false,"required":["name"],"properties":{
	"name":{"type":"string"},
	"age":{"type":"integer","minimum":0},
	"address":{"type":"object","properties":{"city":{"type":"string"},"zip":{"type":"string","pattern":"^[0-9]+$"}},"required":["city"]},
	"likes":{"type":"array","items":{"type":"string"}}}}`

// ofThread and ofResource name the working memories that the tests are about.
func ofThread(id string) recall.WorkingMemoryOf {
	return recall.WorkingMemoryOf{ThreadID: id, Config: recall.WorkingMemoryConfig{Scope: recall.ScopeThread}}
}

func ofResource(id string) recall.WorkingMemoryOf { return recall.WorkingMemoryOf{ThreadID: id} }

func withSchema(working recall.WorkingMemoryOf, schema string) recall.WorkingMemoryOf {
	working.Config.Schema = json.RawMessage(schema)
	return working
}

func (m memory) remember(t must, working recall.WorkingMemoryOf, text string) recall.WorkingMemory {
	t.Helper()
	changed, err := m.UpdateWorkingMemory(ctx, recall.WorkingMemoryUpdate{WorkingMemoryOf: working, Text: &text})
	require.NoError(t, err)
	return changed
}

func (m memory) merge(working recall.WorkingMemoryOf, patch string, versions []int64) (recall.WorkingMemory, error) {
	return m.UpdateWorkingMemory(ctx, recall.WorkingMemoryUpdate{WorkingMemoryOf: working, Merge: json.RawMessage(patch), Versions: versions})
}

func (m memory) remembered(t must, working recall.WorkingMemoryOf) recall.WorkingMemory {
	t.Helper()
	memory, err := m.WorkingMemory(ctx, working)
	require.NoError(t, err)
	return memory
}

// history gives the texts of all versions, oldest first.
func (m memory) history(t must, working recall.WorkingMemoryOf) []string {
	t.Helper()
	versions, err := m.WorkingMemoryVersions(ctx, working, 0, recall.KeptVersions)
	require.NoError(t, err)
	texts := make([]string, len(versions))
	for i, version := range versions {
		texts[len(texts)-1-i] = version.Text
		require.Equal(t, versions[0].Version-int64(i), version.Version, "newest first, without a gap")
	}
	return texts
}

func exactly(version int64) []int64 { return []int64{version} }

func TestWorkingMemoryIsOfTheResourceOrOfTheThread(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: "one"})
	m.create(t, recall.NewThread{ID: "two"})
	m.create(t, recall.NewThread{ID: "bob's", ResourceID: "bob"})

	require.Equal(t, recall.WorkingMemory{ThreadExists: true}, m.remembered(t, ofResource("one")), "nothing yet")
	m.remember(t, ofResource("one"), "Likes tea.")
	m.remember(t, ofThread("one"), "Plans a trip.")
	require.Equal(t, "Likes tea.", m.remembered(t, ofResource("two")).Text)
	require.Equal(t, "Plans a trip.", m.remembered(t, ofThread("one")).Text)
	for _, working := range []recall.WorkingMemoryOf{ofThread("two"), ofThread("bob's"), ofResource("bob's")} {
		require.Empty(t, m.remembered(t, working).Text)
	}
}

func TestWorkingMemoryOfAThreadThatIsNotThereYetIsThatOfTheResource(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread})
	m.remember(t, ofResource(thread), "Likes tea.")
	working := recall.WorkingMemoryOf{ThreadID: "later", ResourceID: resource}
	require.Equal(t, "Likes tea.", m.remembered(t, working).Text)
	require.False(t, m.remembered(t, working).ThreadExists)
	require.Empty(t, m.remembered(t, ofThread("later")).Text)

	_, err := m.UpdateWorkingMemory(ctx, recall.WorkingMemoryUpdate{WorkingMemoryOf: working, Text: of("x")})
	requireCode(t, err, recall.CodeNotFound)
	_, err = m.RestoreWorkingMemory(ctx, working, 1, nil)
	requireCode(t, err, recall.CodeNotFound)
	_, err = m.WorkingMemoryVersions(ctx, working, 0, 1)
	requireCode(t, err, recall.CodeNotFound)
}

func TestWorkingMemoryIsForTheOwnerOnly(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread})
	m.remember(t, ofResource(thread), "Likes tea.")
	thief := recall.WorkingMemoryOf{ThreadID: thread, ResourceID: "thief"}
	_, err := m.WorkingMemory(ctx, thief)
	requireCode(t, err, recall.CodeForbidden)
	_, err = m.WorkingMemoryVersions(ctx, thief, 0, 1)
	requireCode(t, err, recall.CodeForbidden)
	_, err = m.UpdateWorkingMemory(ctx, recall.WorkingMemoryUpdate{WorkingMemoryOf: thief, Text: of("x")})
	requireCode(t, err, recall.CodeForbidden)
	_, err = m.RestoreWorkingMemory(ctx, thief, 1, nil)
	requireCode(t, err, recall.CodeForbidden)
	require.Equal(t, []string{"Likes tea."}, m.history(t, ofResource(thread)))
}

func TestEveryChangeIsAVersionThatCanBeReadAndRestored(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread})
	for _, working := range []recall.WorkingMemoryOf{ofResource(thread), ofThread(thread)} {
		for i, text := range []string{"one", "two", "three"} {
			changed := m.remember(t, working, text)
			require.Equal(t, int64(i+1), changed.Version)
			require.Equal(t, changed, m.remembered(t, working))
		}
		require.Equal(t, int64(3), m.remember(t, working, "three").Version, "nothing has changed")

		restored, err := m.RestoreWorkingMemory(ctx, working, 1, nil)
		require.NoError(t, err)
		require.Equal(t, int64(4), restored.Version)
		require.Equal(t, []string{"one", "two", "three", "one"}, m.history(t, working))
		for _, version := range []int64{5, 1 << 40} {
			_, err = m.RestoreWorkingMemory(ctx, working, version, nil)
			requireCode(t, err, recall.CodeNotFound)
		}

		page, err := m.WorkingMemoryVersions(ctx, working, 4, 2)
		require.NoError(t, err)
		require.Len(t, page, 2)
		require.Equal(t, "three", page[0].Text)
		require.Equal(t, "two", page[1].Text)
	}
}

func TestAFailedRestoreOfNoWorkingMemoryLeavesNone(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread})
	_, err := m.RestoreWorkingMemory(ctx, ofThread(thread), 1, nil)
	requireCode(t, err, recall.CodeNotFound)
	require.Equal(t, []int{0}, column[int](t, m, `SELECT count(*) FROM recall.working_memories`))
}

func TestTheNewestVersionsAreKept(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread})
	for n := 1; n <= recall.KeptVersions+5; n++ {
		m.remember(t, ofResource(thread), strconv.Itoa(n))
	}
	history := m.history(t, ofResource(thread))
	require.Len(t, history, recall.KeptVersions)
	require.Equal(t, "6", history[0])
	_, err := m.RestoreWorkingMemory(ctx, ofResource(thread), 5, nil)
	requireCode(t, err, recall.CodeNotFound)
	_, err = m.RestoreWorkingMemory(ctx, ofResource(thread), 6, nil)
	require.NoError(t, err)
}

func TestAnEmptyTextClearsWorkingMemoryAndIsInTheHistory(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread})
	working := withSchema(ofResource(thread), personSchema)
	m.remember(t, working, `{"name":"Ana"}`)
	require.Equal(t, int64(2), m.remember(t, working, "").Version)
	merged, err := m.merge(working, `{"name":"Bea"}`, nil)
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"Bea"}`, merged.Text)
	require.Equal(t, []string{`{"name":"Ana"}`, "", `{"name":"Bea"}`}, m.history(t, working))
}

func TestAMergeIsOfTheTextThatIsThere(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread})
	working := withSchema(ofResource(thread), personSchema)
	for _, step := range []struct{ patch, want string }{
		{`{"name": "Ana", "address": {"city": "Kyoto", "zip": "6008216"}, "likes": ["tea"]}`, `{"name":"Ana","address":{"city":"Kyoto","zip":"6008216"},"likes":["tea"]}`},
		{`{"age":40,"address":{"city":"Nara","zip":null}}`, `{"name":"Ana","address":{"city":"Nara"},"likes":["tea"],"age":40}`},
		{`{"likes":["coffee"],"address":null}`, `{"name":"Ana","likes":["coffee"],"age":40}`},
		{`{}`, `{"name":"Ana","likes":["coffee"],"age":40}`},
	} {
		merged, err := m.merge(working, step.patch, nil)
		require.NoError(t, err)
		require.Equal(t, step.want, merged.Text)
	}
	require.Equal(t, int64(3), m.remembered(t, working).Version, "the last one changed nothing")
}

func TestAMergeIntoMarkdownBeginsAnew(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread})
	for _, text := range []string{"# Notes", `["a"]`, `{"a":1,"a":2}`} {
		m.remember(t, ofThread(thread), text)
		merged, err := m.merge(withSchema(ofThread(thread), personSchema), `{"name":"Ana"}`, nil)
		require.NoError(t, err)
		require.JSONEq(t, `{"name":"Ana"}`, merged.Text)
	}
	require.Len(t, m.history(t, ofThread(thread)), 6, "what was there is in the history")
}

func TestWhatTheSchemaDoesNotAdmitIsRefusedByItsPlacesAndChangesNothing(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread})
	working := withSchema(ofResource(thread), personSchema)
	m.remember(t, working, `{"name":"Ana"}`)
	for text, fields := range map[string][]string{
		`# Notes`:                             {"workingMemory"},
		`["Ana"]`:                             {"workingMemory"},
		`{}`:                                  {"workingMemory.name"},
		`{"a":1}`:                             {"workingMemory.name", "workingMemory.a"},
		`{"name":`:                            {"workingMemory.name"},
		`{"name":"Ana","address":{"city":7}}`: {"workingMemory.address.city"},
		`{"name":"Ana","address":{"zip":"x"},"age":-1}`:     {"workingMemory.address.city", "workingMemory.address.zip", "workingMemory.age"},
		`{"name":"Ana","likes":["tea",1,null]}`:             {"workingMemory.likes.1", "workingMemory.likes.2"},
		`{"name":"Ana","name":"Bea"}`:                       {"workingMemory.name"},
		`{"name":"\u0000"}`:                                 {"workingMemory.name"},
		`{"name":"Ana","likes":` + deep(80) + `}`:           {"workingMemory.likes" + strings.Repeat(".0", 63)},
		`{"name":"Ana","age":1e400}`:                        {"workingMemory.age"},
		`{"name":"Ana","` + strings.Repeat("x", 9) + `":1}`: {"workingMemory.xxxxxxxxx"},
	} {
		_, err := m.UpdateWorkingMemory(ctx, recall.WorkingMemoryUpdate{WorkingMemoryOf: working, Text: &text})
		requireCode(t, err, recall.CodeUnprocessable, fields...)
	}
	for patch, field := range map[string]string{
		`{"name":null}`:               "workingMemory.name",
		`{"address":{"city":7}}`:      "workingMemory.address.city",
		`{"address":{}}`:              "workingMemory.address.city",
		`{"likes":"tea"}`:             "workingMemory.likes",
		`{"hobby":"tea"}`:             "workingMemory.hobby",
		`{"address":{"city":[null]}}`: "workingMemory.address.city",
		`{"age":1.5}`:                 "workingMemory.age",
		`{"age":` + `100000000000.5}`: "workingMemory.age",
	} {
		_, err := m.merge(working, patch, nil)
		requireCode(t, err, recall.CodeUnprocessable, field)
	}
	require.Equal(t, []string{`{"name":"Ana"}`}, m.history(t, working))
}

func deep(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

func TestAVersionThatTheSchemaDoesNotAdmitIsNotRestored(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread})
	m.remember(t, ofResource(thread), "# Notes")
	working := withSchema(ofResource(thread), personSchema)
	m.remember(t, working, `{"name":"Ana"}`)
	_, err := m.RestoreWorkingMemory(ctx, working, 1, nil)
	requireCode(t, err, recall.CodeUnprocessable, "workingMemory")
	require.Equal(t, int64(2), m.remembered(t, working).Version)
}

func TestWorkingMemoryUpdatesAreChecked(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread})
	limit := recall.DefaultLimits().WorkingMemoryBytes
	plain, person := ofResource(thread), withSchema(ofResource(thread), `{"type":"object"}`)
	long := func(n int) *string { return of(strings.Repeat("x", n)) }
	for _, test := range []struct {
		in    recall.WorkingMemoryUpdate
		code  recall.Code
		field string
	}{
		{recall.WorkingMemoryUpdate{WorkingMemoryOf: plain}, recall.CodeInvalid, "workingMemory"},
		{recall.WorkingMemoryUpdate{WorkingMemoryOf: person, Text: of("{}"), Merge: []byte("{}")}, recall.CodeInvalid, "workingMemory"},
		{recall.WorkingMemoryUpdate{WorkingMemoryOf: plain, Merge: []byte("{}")}, recall.CodeInvalid, "merge"},
		{recall.WorkingMemoryUpdate{WorkingMemoryOf: person, Merge: []byte("[]")}, recall.CodeInvalid, "merge"},
		{recall.WorkingMemoryUpdate{WorkingMemoryOf: person, Merge: []byte("{")}, recall.CodeInvalid, "merge"},
		{recall.WorkingMemoryUpdate{WorkingMemoryOf: person, Merge: []byte(`{"a":"\u0000"}`)}, recall.CodeUnstorable, "merge.a"},
		{recall.WorkingMemoryUpdate{WorkingMemoryOf: plain, Text: of("\x00")}, recall.CodeUnstorable, "workingMemory"},
		{recall.WorkingMemoryUpdate{WorkingMemoryOf: plain, Text: of("\xff")}, recall.CodeInvalid, "workingMemory"},
		{recall.WorkingMemoryUpdate{WorkingMemoryOf: plain, Text: long(limit + 1)}, recall.CodeInvalid, "workingMemory"},
		{recall.WorkingMemoryUpdate{WorkingMemoryOf: person, Merge: []byte(`{"a":"` + *long(limit) + `"}`)}, recall.CodeInvalid, "merge"},
		{recall.WorkingMemoryUpdate{WorkingMemoryOf: withSchema(plain, `{"type":"thing"}`), Text: of("{}")}, recall.CodeInvalid, "memoryConfig.workingMemory.schema"},
		{recall.WorkingMemoryUpdate{Text: of("x")}, recall.CodeInvalid, "threadId"},
	} {
		_, err := m.UpdateWorkingMemory(ctx, test.in)
		requireCode(t, err, test.code, test.field)
	}
	require.Len(t, m.remember(t, plain, *long(limit)).Text, limit)

	half := func(key string) string { return `{"` + key + `":"` + *long(limit / 2) + `"}` }
	m.remember(t, person, "{}")
	_, err := m.merge(person, half("a"), nil)
	require.NoError(t, err)
	_, err = m.merge(person, half("b"), nil)
	requireCode(t, err, recall.CodeInvalid, "merge")
}

func TestAChangeForAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread})
	working := ofResource(thread)
	set := func(text string, versions []int64) error {
		_, err := m.UpdateWorkingMemory(ctx, recall.WorkingMemoryUpdate{WorkingMemoryOf: working, Text: &text, Versions: versions})
		return err
	}
	requireCode(t, set("early", exactly(1)), recall.CodeVersionMismatch)
	require.NoError(t, set("first", exactly(0)), "0 is the absence of any")
	requireCode(t, set("first too", exactly(0)), recall.CodeVersionMismatch)
	require.NoError(t, set("second", nil))
	require.NoError(t, set("third", []int64{7, 2}))
	_, err := m.RestoreWorkingMemory(ctx, working, 1, exactly(2))
	requireCode(t, err, recall.CodeVersionMismatch)
	_, err = m.RestoreWorkingMemory(ctx, working, 1, exactly(3))
	require.NoError(t, err)
	require.Equal(t, []string{"first", "second", "third", "first"}, m.history(t, working))
}

// Two writers through pools of their own, as two processes have.
func TestOfTwoMergesForOneVersionOneIsToTryAgain(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	other := memoryOn(newPool(t, m))
	m.create(t, recall.NewThread{ID: thread})
	working := withSchema(ofResource(thread), `{"type":"object"}`)
	for round := range 20 {
		working.Config.Scope = []recall.Scope{recall.ScopeResource, recall.ScopeThread}[round%2]
		start := m.remember(t, working, `{"round":`+strconv.Itoa(round)+`}`).Version
		writers := map[string]memory{`{"name":"A"}`: m, `{"city":"B"}`: other}
		results := make(chan error, len(writers))
		for patch, writer := range writers {
			go func() {
				_, err := writer.merge(working, patch, exactly(start))
				if codeOf(err) == recall.CodeVersionMismatch {
					results <- err
					_, err = writer.merge(working, patch, exactly(start+1))
				}
				results <- err
			}()
		}
		lost, won := 0, 0
		for range 3 {
			if err := <-results; err == nil {
				won++
			} else {
				requireCode(t, err, recall.CodeVersionMismatch)
				lost++
			}
		}
		require.Equal(t, []int{1, 2}, []int{lost, won})
		now := m.remembered(t, working)
		require.Equal(t, start+2, now.Version)
		require.JSONEq(t, fmt.Sprintf(`{"round":%d,"name":"A","city":"B"}`, round), now.Text)
		history := m.history(t, working)
		require.Len(t, history[start-1:], 3)
	}
}

func TestMergesAtOnceAreAllKept(t *testing.T) {
	t.Parallel()
	const writers = 16
	m := newMemory(t)
	other := memoryOn(newPool(t, m))
	m.create(t, recall.NewThread{ID: "one"})
	m.create(t, recall.NewThread{ID: "two"})
	schema := `{"type":"object"}`
	errs := together(writers, func(i int) error {
		_, err := m.merge(withSchema(ofResource("one"), schema), fmt.Sprintf(`{"a%d":%d}`, i, i), nil)
		return err
	}, func(i int) error {
		_, err := other.merge(withSchema(ofResource("two"), schema), fmt.Sprintf(`{"b%d":%d}`, i, i), nil)
		return err
	})
	for _, err := range errs {
		require.NoError(t, err)
	}
	var merged map[string]int
	now := m.remembered(t, ofResource("one"))
	require.NoError(t, json.Unmarshal([]byte(now.Text), &merged))
	require.Len(t, merged, 2*writers)
	require.Equal(t, int64(2*writers), now.Version)
	require.Len(t, m.history(t, ofResource("one")), 2*writers)
}

func TestWorkingMemoryGoesWithItsThread(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread})
	m.create(t, recall.NewThread{ID: "other"})
	m.remember(t, ofThread(thread), "of the thread")
	m.remember(t, ofResource(thread), "of the resource")

	_, err := m.TransferThread(ctx, thread, "", "bob")
	require.NoError(t, err)
	require.Equal(t, "of the thread", m.remembered(t, ofThread(thread)).Text, "a transfer takes it along")
	require.Empty(t, m.remembered(t, ofResource(thread)).Text)
	require.Equal(t, "of the resource", m.remembered(t, ofResource("other")).Text)
	require.Equal(t, []string{"bob"}, column[string](t, m, `SELECT v.resource_id FROM recall.working_memory_versions AS v WHERE v.content = 'of the thread'`))
	m.remember(t, ofThread(thread), "still changed")

	require.NoError(t, m.DeleteThread(ctx, thread, ""))
	require.Equal(t, []string{"of the resource"}, column[string](t, m, `SELECT v.content FROM recall.working_memory_versions AS v`))
}

func TestTransfersAndDeletionsAmongWritersOfWorkingMemoryEndWell(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread})
	m.remember(t, ofThread(thread), "begin")
	errs := together(10, func(i int) error {
		_, err := m.UpdateWorkingMemory(ctx, recall.WorkingMemoryUpdate{WorkingMemoryOf: ofThread(thread), Text: of("w" + strconv.Itoa(i))})
		return err
	}, func(i int) error {
		_, err := m.TransferThread(ctx, thread, "", "owner"+strconv.Itoa(i))
		return err
	}, func(i int) error {
		return saved(m, recall.NewMessage{ID: "m" + strconv.Itoa(i), ResourceID: "owner" + strconv.Itoa(i)})
	})
	for _, err := range errs {
		if err != nil {
			requireCode(t, err, recall.CodeForbidden) // a message for an owner it has no more
		}
	}
	require.Equal(t, int64(11), m.remembered(t, ofThread(thread)).Version)
	m.requireIdle(t)
}

// told saves a message after what was done before it, and leaves time for what is
// done after it: times count milliseconds.
func (m memory) told(t must, id string) {
	t.Helper()
	time.Sleep(3 * time.Millisecond)
	m.save(t, message(recall.NewMessage{ID: id}))
	time.Sleep(3 * time.Millisecond)
}

func TestWorkingMemoryOfACloneIsThatOfTheForkPoint(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread})
	working := ofThread(thread)
	m.told(t, "m1")
	m.remember(t, working, "after m1")
	m.told(t, "m2")
	m.remember(t, working, "after m2")
	m.remember(t, working, "after m2 too")
	m.told(t, "m3")
	m.told(t, "m4")
	m.remember(t, working, "after m4")

	for _, test := range []struct {
		name string
		in   recall.ThreadClone
		want string
	}{
		{"the whole has what there is now", recall.ThreadClone{}, "after m4"},
		{"so has its end", recall.ThreadClone{MessageLimit: of(1)}, "after m4"},
		{"a part has what there was at its last message", recall.ThreadClone{MessageIDs: []string{"m1", "m3"}}, "after m2 too"},
		{"and nothing newer", recall.ThreadClone{MessageIDs: []string{"m1", "m2"}}, "after m1"},
		{"or the first text, if that came before the next message", recall.ThreadClone{MessageIDs: []string{"m1"}}, "after m1"},
		{"none of the messages, nothing", recall.ThreadClone{MessageLimit: of(0)}, ""},
	} {
		test.in.SourceID = thread
		clone, err := m.CloneThread(ctx, test.in)
		require.NoError(t, err, test.name)
		got := m.remembered(t, ofThread(clone.Thread.ID))
		require.Equal(t, test.want, got.Text, test.name)
		if test.want != "" {
			require.Equal(t, int64(1), got.Version, "with a history of its own")
		}
	}
	require.Len(t, m.history(t, working), 4, "the source's is as it was")
}

func TestACloneOfAPartWhoseVersionIsForgottenHasTheOldestThatIsKept(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.create(t, recall.NewThread{ID: thread})
	m.told(t, "m1")
	m.told(t, "m2")
	for n := 1; n <= recall.KeptVersions+2; n++ {
		m.remember(t, ofThread(thread), strconv.Itoa(n))
	}
	clone, err := m.CloneThread(ctx, recall.ThreadClone{SourceID: thread, MessageIDs: []string{"m1"}})
	require.NoError(t, err)
	require.Equal(t, "3", m.remembered(t, ofThread(clone.Thread.ID)).Text)
}

func TestACloneForAnotherTakesTheResourcesMemoryWhereAskedTo(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.told(t, "m1")
	m.remember(t, ofResource(thread), "Ana's")
	m.told(t, "m2")
	m.remember(t, ofResource(thread), "Ana's newer")
	for _, test := range []struct {
		name string
		in   recall.ThreadClone
		want string
	}{
		{"not asked to", recall.ThreadClone{ResourceID: "bea"}, ""},
		{"asked to", recall.ThreadClone{ResourceID: "bob", ResourceMemory: true}, "Ana's newer"},
		{"as of the fork point", recall.ThreadClone{ResourceID: "cem", ResourceMemory: true, MessageIDs: []string{"m1"}}, "Ana's"},
		{"who has one keeps it", recall.ThreadClone{ResourceID: "cem", ResourceMemory: true}, "Ana's"},
		{"for the same owner", recall.ThreadClone{ResourceMemory: true, MessageIDs: []string{"m1"}}, "Ana's newer"},
	} {
		test.in.SourceID = thread
		clone, err := m.CloneThread(ctx, test.in)
		require.NoError(t, err, test.name)
		require.Equal(t, test.want, m.remembered(t, ofResource(clone.Thread.ID)).Text, test.name)
	}
}

func TestACallKeepsWhatItDoesNotSayOfItsAgentsWorkingMemory(t *testing.T) {
	t.Parallel()
	agent := recall.Config{WorkingMemory: &recall.WorkingMemoryConfig{Enabled: true, Scope: recall.ScopeThread, Schema: json.RawMessage(`{}`)}}
	merged := agent.With(recall.Config{WorkingMemory: &recall.WorkingMemoryConfig{Scope: recall.ScopeResource}}).WorkingMemory
	require.Equal(t, recall.ScopeResource, merged.Scope)
	require.Equal(t, `{}`, string(merged.Schema))
	merged = agent.With(recall.Config{WorkingMemory: &recall.WorkingMemoryConfig{Template: "# Mine"}}).WorkingMemory
	require.Equal(t, recall.WorkingMemoryConfig{Scope: recall.ScopeThread, Template: "# Mine"}, *merged)
	require.Equal(t, agent.WorkingMemory, recall.Config{}.With(agent).WorkingMemory)
}

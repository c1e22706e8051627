package recall_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/pgrecall/pgrecall/recall"
)

// threadState is what is known of one thread: its owner and its message ids,
// in their order.
type threadState struct {
	owner string
	ids   []string
}

// machine does random things to a memory and remembers what must have come of
// them.
type machine struct {
	memory
	own     string
	owners  []string
	threads map[string]*threadState
	clones  int
}

func TestMessageCountIsTheNumberOfMessagesWhateverHappened(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	rapid.Check(t, func(t *rapid.T) {
		own := prefix()
		machine := &machine{memory: m, own: own, owners: []string{own + "ana", own + "bob"}, threads: make(map[string]*threadState)}
		t.Repeat(map[string]func(*rapid.T){
			"save":           machine.saveSome,
			"save again":     machine.saveSome,
			"update":         machine.update,
			"delete":         machine.delete,
			"empty":          machine.empty,
			"delete thread":  machine.deleteThread,
			"clone":          machine.clone,
			"transfer":       machine.transfer,
			"create or keep": machine.createThread,
			"":               machine.require,
		})
	})
	m.requireCounted(t)
}

func (s *machine) drawThread(t *rapid.T) string {
	return s.own + rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "thread")
}

// drawExisting draws one of the threads there are; of none it skips the step.
func (s *machine) drawExisting(t *rapid.T) string {
	if len(s.threads) == 0 {
		t.Skip("no thread")
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(s.threads))).Draw(t, "existing")
}

func (s *machine) drawIDs(t *rapid.T) []string {
	all := []string{s.own + "unknown"}
	for i := range 12 {
		all = append(all, s.own+strconv.Itoa(i))
	}
	for _, id := range slices.Sorted(maps.Keys(s.threads)) {
		all = append(all, s.threads[id].ids...) // those of clones too
	}
	slices.Sort(all)
	return rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Compact(all)), 1, 4, rapid.ID).Draw(t, "ids")
}

// home gives the thread that holds a message.
func (s *machine) home(id string) (string, *threadState) {
	for threadID, state := range s.threads {
		if slices.Contains(state.ids, id) {
			return threadID, state
		}
	}
	return "", nil
}

func (s *machine) saveSome(t *rapid.T) {
	threadID := s.drawThread(t)
	create := rapid.Bool().Draw(t, "createThreads")
	owner := rapid.SampledFrom(s.owners).Draw(t, "owner")
	state := s.threads[threadID]
	if state != nil && rapid.IntRange(0, 9).Draw(t, "rightOwner") > 0 {
		owner = state.owner
	}
	var messages []recall.NewMessage
	for _, id := range s.drawIDs(t) {
		messages = append(messages, message(recall.NewMessage{
			ID: id, ThreadID: threadID, ResourceID: owner, CreatedAt: second(1),
			Role: rapid.SampledFrom([]string{"user", "assistant"}).Draw(t, "role"),
		}))
	}
	_, err := s.SaveMessages(ctx, messages, create)
	switch {
	case state == nil && !create:
		requireCode(t, err, recall.CodeNotFound)
		return
	case state != nil && state.owner != owner:
		requireCode(t, err, recall.CodeForbidden)
		return
	}
	for i, message := range messages {
		if at, _ := s.home(message.ID); at != "" && at != threadID {
			requireCode(t, err, recall.CodeConflict, "messages."+strconv.Itoa(i)+".id")
			return
		}
	}
	require.NoError(t, err)
	if state == nil {
		state = &threadState{owner: owner}
		s.threads[threadID] = state
	}
	for _, message := range messages {
		if !slices.Contains(state.ids, message.ID) {
			state.ids = append(state.ids, message.ID)
		}
	}
}

func (s *machine) update(t *rapid.T) {
	owner := rapid.SampledFrom(append(s.owners, "")).Draw(t, "owner")
	known := true
	var updates []recall.MessageUpdate
	for _, id := range s.drawIDs(t) {
		updates = append(updates, recall.MessageUpdate{ID: id, Content: json.RawMessage(`{"metadata":{"n":1}}`)})
		_, state := s.home(id)
		known = known && state != nil && (owner == "" || state.owner == owner)
	}
	_, err := s.UpdateMessages(ctx, updates, owner)
	if known {
		require.NoError(t, err)
	} else {
		requireCode(t, err, recall.CodeNotFound)
	}
}

func (s *machine) delete(t *rapid.T) {
	owner := rapid.SampledFrom(append(s.owners, "")).Draw(t, "owner")
	gone := s.drawIDs(t)
	if rapid.Bool().Draw(t, "twice") {
		gone = append(gone, gone[0])
	}
	var wanted int64
	for _, state := range s.threads {
		if owner == "" || state.owner == owner {
			before := len(state.ids)
			state.ids = slices.DeleteFunc(state.ids, func(id string) bool { return slices.Contains(gone, id) })
			wanted += int64(before - len(state.ids))
		}
	}
	n, err := s.DeleteMessages(ctx, gone, owner)
	require.NoError(t, err)
	require.Equal(t, wanted, n)
}

func (s *machine) empty(t *rapid.T) {
	threadID := s.drawExisting(t)
	n, err := s.DeleteThreadMessages(ctx, threadID, s.threads[threadID].owner)
	require.NoError(t, err)
	require.Equal(t, int64(len(s.threads[threadID].ids)), n)
	s.threads[threadID].ids = nil
}

func (s *machine) deleteThread(t *rapid.T) {
	threadID := s.drawExisting(t)
	require.NoError(t, s.DeleteThread(ctx, threadID, s.threads[threadID].owner))
	delete(s.threads, threadID)
	require.Empty(t, column[string](t, s.memory, `SELECT id FROM recall.messages WHERE thread_id = $1`, threadID))
}

func (s *machine) clone(t *rapid.T) {
	if s.clones == 4 {
		t.Skip("clones enough")
	}
	threadID := s.drawExisting(t)
	limit := optional(t, "limit", rapid.IntRange(0, 3))
	owner := rapid.SampledFrom(s.owners).Draw(t, "owner")
	s.clones++
	clone, err := s.CloneThread(ctx, recall.ThreadClone{
		SourceID: threadID, ID: s.own + "clone-" + strconv.Itoa(s.clones), ResourceID: owner, MessageLimit: limit,
	})
	require.NoError(t, err)
	wanted := s.threads[threadID].ids
	if limit != nil {
		wanted = wanted[max(0, len(wanted)-*limit):]
	}
	require.Equal(t, append([]string{}, wanted...), append([]string{}, clone.SourceIDs...))
	s.threads[clone.Thread.ID] = &threadState{owner: owner, ids: ids(clone.Messages)}
}

func (s *machine) transfer(t *rapid.T) {
	threadID := s.drawExisting(t)
	to := rapid.SampledFrom(s.owners).Draw(t, "to")
	_, err := s.TransferThread(ctx, threadID, s.threads[threadID].owner, to)
	require.NoError(t, err)
	s.threads[threadID].owner = to
}

func (s *machine) createThread(t *rapid.T) {
	threadID := s.drawThread(t)
	owner := rapid.SampledFrom(s.owners).Draw(t, "owner")
	_, err := s.CreateThread(ctx, recall.NewThread{ID: threadID, ResourceID: owner})
	switch state := s.threads[threadID]; {
	case state == nil:
		require.NoError(t, err)
		s.threads[threadID] = &threadState{owner: owner}
	case state.owner == owner:
		require.NoError(t, err)
	default:
		requireCode(t, err, recall.CodeConflict)
	}
}

// require compares the tables with what is remembered.
func (s *machine) require(t *rapid.T) {
	var wanted []string
	for _, threadID := range slices.Sorted(maps.Keys(s.threads)) {
		state := s.threads[threadID]
		wanted = append(wanted, threadID+" of "+state.owner+" has "+strconv.Itoa(len(state.ids)))
		for _, id := range state.ids {
			wanted = append(wanted, id+" of "+state.owner)
		}
	}
	require.Equal(t, wanted, column[string](t, s.memory, `
		SELECT line FROM (
			SELECT t.id, 0 AS seq, t.id || ' of ' || t.resource_id || ' has ' || t.message_count AS line
			FROM recall.threads AS t
			WHERE t.id ^@ $1
			UNION ALL
			SELECT m.thread_id, m.seq, m.id || ' of ' || m.resource_id
			FROM recall.messages AS m
			WHERE m.thread_id ^@ $1
		) AS lines
		ORDER BY id COLLATE "C", seq`, s.own))
}

package recall_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/chat"
	"github.com/pgrecall/pgrecall/recall/embed"
)

// titles gives every thread a title.
type titles struct{}

func (titles) Complete(context.Context, chat.Prompt) (string, error) { return "A title", nil }

// reachOf says what a method is for callers that are bound.
type reachOf int

const (
	ownOnly  reachOf = iota // others' are as absent
	ofAll                   // it is about nobody's
	operator                // it is not for them
)

// asking is a method with what it is asked for: what is of "their", or "absent".
type asking struct {
	reach  reachOf
	writes bool
	do     func(ctx context.Context, m *recall.Memory, whose string) (any, error)
}

func only(err error) (any, error) { return nil, err }

// askings has every method of a memory.
var askings = map[string]asking{
	"AgentConfig":     {ofAll, false, func(ctx context.Context, m *recall.Memory, _ string) (any, error) { return m.AgentConfig(ctx, "a") }},
	"AgentConfigJSON": {ofAll, false, func(ctx context.Context, m *recall.Memory, _ string) (any, error) { return m.AgentConfigJSON(ctx, "a") }},
	"Agents":          {ofAll, false, func(ctx context.Context, m *recall.Memory, _ string) (any, error) { return m.Agents(ctx) }},
	"SaveAgent": {operator, true, func(ctx context.Context, m *recall.Memory, _ string) (any, error) {
		return only(m.SaveAgent(ctx, "a", []byte(`{}`)))
	}},
	"DeleteAgent": {operator, true, func(ctx context.Context, m *recall.Memory, _ string) (any, error) {
		return only(m.DeleteAgent(ctx, "a"))
	}},

	"BackfillIndex": {operator, true, func(ctx context.Context, m *recall.Memory, _ string) (any, error) {
		return m.BackfillIndex(ctx, "static", func(string, int, int) {})
	}},
	"Promote": {operator, true, func(ctx context.Context, m *recall.Memory, _ string) (any, error) {
		return only(m.Promote(ctx, "", func(string, int, int) {}))
	}},
	"CreateAPIKey": {operator, true, func(ctx context.Context, m *recall.Memory, _ string) (any, error) {
		_, key, err := m.CreateAPIKey(ctx, recall.NewAPIKey{})
		return key, err
	}},
	"APIKeys": {operator, false, func(ctx context.Context, m *recall.Memory, _ string) (any, error) { return m.APIKeys(ctx) }},
	"RevokeAPIKey": {operator, true, func(ctx context.Context, m *recall.Memory, _ string) (any, error) {
		return only(m.RevokeAPIKey(ctx, 1))
	}},

	"Indexes": {ofAll, false, func(ctx context.Context, m *recall.Memory, _ string) (any, error) { return m.Indexes(ctx) }},
	"IndexCoverage": {operator, false, func(ctx context.Context, m *recall.Memory, _ string) (any, error) {
		return m.IndexCoverage(ctx, "static")
	}},
	"CreateIndex": {operator, true, func(ctx context.Context, m *recall.Memory, _ string) (any, error) {
		return m.CreateIndex(ctx, recall.NewIndex{Name: "new", Model: "m", Dimensions: 3})
	}},
	"CutOver": {operator, true, func(ctx context.Context, m *recall.Memory, _ string) (any, error) {
		return only(m.CutOver(ctx, "static", true))
	}},
	"RollBack": {operator, true, func(ctx context.Context, m *recall.Memory, _ string) (any, error) { return m.RollBack(ctx, "static") }},
	"DropIndex": {operator, true, func(ctx context.Context, m *recall.Memory, _ string) (any, error) {
		return only(m.DropIndex(ctx, "static", true))
	}},
	"LiveIndex":     {ofAll, false, func(ctx context.Context, m *recall.Memory, _ string) (any, error) { return m.LiveIndex(ctx) }},
	"CheckEmbedder": {ofAll, false, func(ctx context.Context, m *recall.Memory, _ string) (any, error) { return only(m.CheckEmbedder(ctx)) }},
	"HasEmbedder":   {ofAll, false, func(_ context.Context, m *recall.Memory, _ string) (any, error) { return m.HasEmbedder(), nil }},
	"Ready":         {ofAll, false, func(ctx context.Context, m *recall.Memory, _ string) (any, error) { return only(m.Ready(ctx)) }},
	"Backlog":       {ofAll, false, func(ctx context.Context, m *recall.Memory, _ string) (any, error) { return m.Backlog(ctx) }},
	"ForgetKeys":    {operator, true, func(ctx context.Context, m *recall.Memory, _ string) (any, error) { return only(m.ForgetKeys(ctx)) }},
	"Retain":        {operator, true, func(ctx context.Context, m *recall.Memory, _ string) (any, error) { return only(m.Retain(ctx)) }},
	"TokenCaller":   {ofAll, false, func(context.Context, *recall.Memory, string) (any, error) { return nil, nil }},
	"For":           {ofAll, false, func(context.Context, *recall.Memory, string) (any, error) { return nil, nil }},
	"ReadConfig": {ofAll, false, func(_ context.Context, m *recall.Memory, _ string) (any, error) {
		return m.ReadConfig("config", []byte(`{}`))
	}},

	"Jobs": {ownOnly, false, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		list, err := m.Jobs(ctx, recall.JobListing{})
		for _, job := range list {
			if job.ResourceID == whose {
				return list, err
			}
		}
		return nil, err
	}},
	"RetryJobs": {ownOnly, true, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.RetryJobs(ctx, []int64{map[string]int64{"their": 1, "mine": 2, "absent": 3}[whose] + 1_000_000})
	}},
	"WaitEmbedded": {ownOnly, false, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		return m.WaitEmbedded(ctx, []string{whose + "1"})
	}},
	"EmbedMessages": {ownOnly, true, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return only(m.EmbedMessages(ctx, []string{whose + "1"}))
	}},
	"GenerateTitle": {ownOnly, true, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return only(m.GenerateTitle(ctx, whose, "a"))
	}},

	"CreateThread": {ownOnly, true, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.CreateThread(ctx, recall.NewThread{ID: whose, ResourceID: whose})
	}},
	"Thread": {ownOnly, false, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.Thread(ctx, whose, "")
	}},
	"ThreadTitles": {ownOnly, false, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.ThreadTitles(ctx, []string{whose})
	}},
	"ListThreads": {ownOnly, false, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.ListThreads(ctx, recall.ThreadListing{ResourceID: whose, PerPage: recall.All})
	}},
	"UpdateThread": {ownOnly, true, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.UpdateThread(ctx, recall.ThreadUpdate{ID: whose, Title: of("new"), Versions: []int64{7}})
	}},
	"TransferThread": {ownOnly, true, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.TransferThread(ctx, whose, "", "mine", 7)
	}},
	"DeleteThread": {ownOnly, true, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return only(m.DeleteThread(ctx, whose, "", 7))
	}},
	"CloneThread": {ownOnly, true, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.CloneThread(ctx, recall.ThreadClone{SourceID: whose, ResourceID: "mine", ResourceMemory: true})
	}},
	"Clones": {ownOnly, false, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.Clones(ctx, whose, "")
	}},
	"SourceThread": {ownOnly, false, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.SourceThread(ctx, whose, "")
	}},
	"CloneHistory": {ownOnly, false, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.CloneHistory(ctx, whose, "")
	}},

	"SaveMessages": {ownOnly, true, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.SaveMessages(ctx, []recall.NewMessage{message(recall.NewMessage{ID: whose + "1", ThreadID: whose, ResourceID: whose})}, false)
	}},
	"UpdateMessages": {ownOnly, true, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.UpdateMessages(ctx, []recall.MessageUpdate{{ID: whose + "1", Role: "system"}}, "")
	}},
	"DeleteMessages": {ownOnly, true, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.DeleteMessages(ctx, []string{whose + "1"}, "")
	}},
	"DeleteThreadMessages": {ownOnly, true, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.DeleteThreadMessages(ctx, whose, "")
	}},
	"Recall": {ownOnly, false, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.Recall(ctx, recall.Request{ThreadID: "mine", Include: []recall.Include{{ID: whose + "1", Previous: of(3), Next: of(3)}}})
	}},
	"ListMessages": {ownOnly, false, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.ListMessages(ctx, recall.Request{ResourceID: whose})
	}},
	"Context": {ownOnly, false, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.Context(ctx, recall.ContextRequest{ThreadID: whose, ResourceID: whose, Query: "hello", Config: remembering})
	}},
	"RecallForTurn":      {ownOnly, false, ofTurn((*recall.Memory).RecallForTurn)},
	"HistoryForTurn":     {ownOnly, false, ofTurn((*recall.Memory).HistoryForTurn)},
	"InstructionForTurn": {ownOnly, false, ofTurn((*recall.Memory).InstructionForTurn)},
	"SaveTurn": {ownOnly, true, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.SaveTurn(ctx, recall.Turn{ThreadID: whose, ResourceID: whose, Messages: []recall.NewMessage{message(recall.NewMessage{ID: whose + "1", ThreadID: whose})}})
	}},

	"WorkingMemory": {ownOnly, false, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.WorkingMemory(ctx, recall.WorkingMemoryOf{ThreadID: whose, ResourceID: whose})
	}},
	"WorkingMemoryVersions": {ownOnly, false, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.WorkingMemoryVersions(ctx, recall.WorkingMemoryOf{ThreadID: whose}, 0, 10)
	}},
	"UpdateWorkingMemory": {ownOnly, true, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.UpdateWorkingMemory(ctx, recall.WorkingMemoryUpdate{WorkingMemoryOf: recall.WorkingMemoryOf{ThreadID: whose}, Text: of("x"), Versions: []int64{7}})
	}},
	"RestoreWorkingMemory": {ownOnly, true, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.RestoreWorkingMemory(ctx, recall.WorkingMemoryOf{ThreadID: whose}, 1, nil)
	}},
	"Resource": {ownOnly, false, func(ctx context.Context, m *recall.Memory, whose string) (any, error) { return m.Resource(ctx, whose) }},
	"EraseResource": {ownOnly, true, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.EraseResource(ctx, whose)
	}},

	// The memory that they give what they run is bound as they are.
	"Once": {ownOnly, true, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.Once(ctx, recall.Key{Name: "k", Target: "POST /", ThreadID: whose}, threadOf(ctx, whose))
	}},
	"OnceRead": {ownOnly, false, func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return m.OnceRead(ctx, recall.Key{Name: "k", Target: "POST /", ThreadID: whose}, threadOf(ctx, whose))
	}},
}

// remembering wants all that there is to be recalled.
var remembering = recall.Config{
	LastMessages: of(10), SemanticRecall: &recall.SemanticRecall{}, WorkingMemory: &recall.WorkingMemoryConfig{Enabled: true},
}

func ofTurn(do func(*recall.Memory, context.Context, recall.Turn) (recall.Recalled, error)) func(context.Context, *recall.Memory, string) (any, error) {
	return func(ctx context.Context, m *recall.Memory, whose string) (any, error) {
		return do(m, ctx, recall.Turn{ThreadID: whose, ResourceID: whose, Config: remembering, Messages: []recall.NewMessage{message(recall.NewMessage{})}})
	}
}

func threadOf(ctx context.Context, id string) func(*recall.Memory) (recall.Answer, error) {
	return func(m *recall.Memory) (recall.Answer, error) {
		_, err := m.Thread(ctx, id, "")
		return recall.Answer{Status: 200, Body: []byte(`{}`)}, err
	}
}

// ofTwo is a memory of what "their" and "mine" have.
func ofTwo(t *testing.T) memory {
	pool := dbtest.New(t)
	m := memory{recall.New(pool, recall.DefaultLimits(), recall.WithRemoteEmbedder(embed.Static{}), recall.WithChat(titles{})), pool}
	require.NoError(t, m.SaveAgent(t.Context(), "a", []byte(`{"generateTitle":true}`)))
	for id, whose := range map[int]string{1_000_001: "their", 1_000_002: "mine"} {
		m.save(t, series(whose, 3, recall.NewMessage{ThreadID: whose, ResourceID: whose})...)
		for _, scope := range []recall.Scope{recall.ScopeResource, recall.ScopeThread} {
			of := recall.WorkingMemoryOf{ThreadID: whose, Config: recall.WorkingMemoryConfig{Scope: scope}}
			_, err := m.UpdateWorkingMemory(t.Context(), recall.WorkingMemoryUpdate{WorkingMemoryOf: of, Text: &whose})
			require.NoError(t, err)
		}
		_, err := pool.Exec(t.Context(), `
			INSERT INTO recall.river_job (id, kind, queue, args, max_attempts, state, finalized_at)
			VALUES ($1, 'embed', 'other', jsonb_build_object('resourceId', $2::text), 5, 'discarded', now())`, id, whose)
		require.NoError(t, err)
	}
	return m
}

// outcome is what a method gave, without whose it is.
func outcome(value any, err error, whose string) string {
	given, _ := json.Marshal(value)
	text := string(given)
	var known *recall.Error
	if errors.As(err, &known) {
		text = string(known.Code) + " " + known.Error()
	} else if err != nil {
		text = err.Error()
	}
	return strings.ReplaceAll(text, whose, "x")
}

func TestEveryMethodFindsOnlyWhatItsCallerReaches(t *testing.T) {
	t.Parallel()
	for i := range reflect.TypeFor[*recall.Memory]().NumMethod() {
		require.Contains(t, askings, reflect.TypeFor[*recall.Memory]().Method(i).Name, "say in askings how it can be asked for what is another's")
	}
	for name, caller := range map[string]recall.Caller{"resource": {Resource: "mine"}, "prefix": {Prefix: "min"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := ofTwo(t)
			bound, before := m.For(caller), m.everyRow(t)
			for name, method := range askings {
				if method.reach == ofAll {
					continue
				}
				value, err := method.do(t.Context(), bound, "their")
				if method.reach == operator {
					requireCode(t, err, recall.CodeForbidden)
				} else {
					theirs := outcome(value, err, "their")
					value, err = method.do(t.Context(), bound, "absent")
					require.Equal(t, outcome(value, err, "absent"), theirs, name)
				}
				require.Equal(t, before, m.everyRow(t), "%s changed something", name)
			}
		})
	}
}

func TestACallerThatMayOnlyReadChangesNothing(t *testing.T) {
	t.Parallel()
	for name, caller := range map[string]recall.Caller{"unbound": {ReadOnly: true}, "bound": {Resource: "mine", ReadOnly: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := ofTwo(t)
			reader, before := m.For(caller), m.everyRow(t)
			for name, method := range askings {
				_, err := method.do(t.Context(), reader, "mine")
				if method.writes {
					require.Equal(t, recall.CodeForbidden, codeOf(err), "%s: %v", name, err)
				} else if method.reach != operator || !caller.Bound() {
					require.NotEqual(t, recall.CodeForbidden, codeOf(err), "%s: %v", name, err)
				}
				require.Equal(t, before, m.everyRow(t), "%s changed something", name)
			}
		})
	}
}

package db_test

import (
	"context"
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/bench/dataset"
	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
)

const (
	perPage   = 20
	batchSize = 20
	// deepPage is a page near the end of the large thread, whichever end the walk
	// began at.
	deepPage = 950

	// What a look-up by a key touches: a page a level, and the row's.
	lookUp = 5
	// nearCall is how far before a result its call is first looked for.
	nearCall = 50
	// matches is how many messages of the large thread the rare values have, and
	// matchesOfOthers how many of a small thread have one of the two.
	matches         = dataset.LargestThread / dataset.RareEvery
	matchesOfOthers = dataset.ThreadMessages / 2
	// smallThreadsOfResource is how many small threads the large one's owner has.
	smallThreadsOfResource = 5

	// wholeThread serves a statement that reads all messages of a thread: sorting
	// some hundred rows costs no more than reading them in order.
	wholeThread = "messages_thread_order_idx|messages_thread_id_seq_key"
	// ofResource likewise all threads of a resource, which their total counts.
	ofResource = "threads_resource_created_at_idx|threads_resource_updated_at_idx"
)

var (
	large    = dataset.ThreadID(0)
	small    = dataset.ThreadID(7)
	resource = dataset.ResourceID(0)
)

// operationsOn gives the operations that are judged, each of which leaves the data
// as they were, but for a key.
func operationsOn(t *testing.T, url string) []operation {
	memory := recall.New(dbtest.Open(t, url), recall.DefaultLimits())
	var all []operation
	for _, list := range [][]operation{
		pages(t, memory), filters(t, memory), includes(t, memory), threadLists(), writes(), workingMemories(), clones(t, memory), keyed(),
		erasures(memory), retentions(memory),
	} {
		all = append(all, list...)
	}
	return all
}

func doing(name string, do func(context.Context, *recall.Memory) error, costs ...cost) operation {
	return operation{name: name, do: do, cost: costs}
}

// operating is what is not for bound callers.
func operating(name string, do func(context.Context, *recall.Memory) error, costs ...cost) operation {
	return operation{name: name, do: do, cost: costs, operates: true}
}

func recalling(name string, request recall.Request, costs ...cost) operation {
	return operation{name: name, cost: costs, do: func(ctx context.Context, m *recall.Memory) error {
		_, err := m.Recall(ctx, request)
		return err
	}}
}

// cursorAt gives the cursor that follows a page far from where the walk began.
func cursorAt(t *testing.T, memory *recall.Memory, request recall.Request) recall.Request {
	deep := request
	deep.PerPage, deep.Page = ptr(perPage), ptr(deepPage)
	result, err := memory.Recall(t.Context(), deep)
	require.NoError(t, err)
	require.NotEmpty(t, result.NextCursor)
	request.PerPage, request.Cursor = ptr(perPage), &result.NextCursor
	return request
}

// pageCost is that of a page alone: a row more than asked for, and the thread.
func pageCost() cost {
	return cost{
		statement: "MessagePage", indexes: []string{"messages_thread_order_idx", byThreadID},
		rows: perPage + 2, blocks: perPage + 4*lookUp,
	}
}

// recallCost is that of a recall with found positions and shown messages: each
// position is an entry of an index, each message a look-up.
func recallCost(found, shown int, indexes ...string) cost {
	return cost{
		statement: "MessageRecall", indexes: append(indexes, "messages_thread_id_seq_key"),
		rows: found + 2*shown + lookUp, blocks: 2*found + 2*lookUp*shown + 4*lookUp,
	}
}

func pages(t *testing.T, memory *recall.Memory) []operation {
	sized := func(r recall.Request) recall.Request { r.PerPage = ptr(perPage); return r }
	deep := func(r recall.Request) recall.Request { return cursorAt(t, memory, r) }
	ascending := func(r recall.Request) recall.Request { r.Direction = recall.Ascending; return r }
	// Something beside the page sends it through the statement for everything.
	paired := func(r recall.Request) recall.Request { r.KeepToolPairs = true; return r }
	byThread, byResource := recall.Request{ThreadID: large}, recall.Request{ResourceID: resource, SkipTotal: true}

	// A call is looked for just before its result, of which a page has two.
	pairs := recallCost(perPage+1+3*nearCall, 2*perPage, "messages_thread_order_idx")
	pageOfResource := recallCost(perPage+1, perPage, "messages_resource_order_idx")
	skipping := recallCost(deepPage*perPage+perPage+1, perPage, "messages_thread_order_idx")
	return []operation{
		recalling("newest page", sized(byThread), pageCost()),
		recalling("oldest page", sized(ascending(byThread)), pageCost()),
		recalling("page of a small thread", recall.Request{ThreadID: small, PerPage: ptr(perPage)}, pageCost()),
		recalling("deep page by cursor", deep(byThread), pageCost()),
		recalling("deep page by cursor from the oldest", deep(ascending(byThread)), pageCost()),
		recalling("tool pairs of a page", paired(sized(byThread)), pairs),
		recalling("tool pairs of a deep page by cursor", paired(deep(byThread)), pairs),
		recalling("tool pairs of a deep page by cursor from the oldest", paired(deep(ascending(byThread))), pairs),
		recalling("deep page by number", recall.Request{ThreadID: large, PerPage: ptr(perPage), Page: ptr(deepPage)}, skipping),
		recalling("page of a resource", sized(byResource), pageOfResource),
		recalling("oldest page of a resource", sized(ascending(byResource)), pageOfResource),
		recalling("deep page of a resource by cursor", deep(byResource), pageOfResource),
		recalling("deep page of a resource by cursor from the oldest", deep(ascending(byResource)), pageOfResource),
	}
}

func filters(t *testing.T, memory *recall.Memory) []operation {
	filtered := func(filter recall.Filter) recall.Request {
		return recall.Request{ThreadID: large, PerPage: ptr(perPage), Filter: filter}
	}
	pair := func(key, value string) recall.Filter { return recall.Filter{Metadata: map[string]any{key: value}} }
	where := func(key string, condition any) recall.Filter {
		return recall.Filter{Where: map[string]any{key: condition}}
	}
	inResource := recall.Request{ResourceID: resource, PerPage: ptr(perPage), Filter: pair(dataset.TopicKey, dataset.TopicValue)}

	// The index itself is read in the lists of its keys, whose pages hold thousands.
	matching := func(matches int) cost { return recallCost(matches+20, perPage, "messages_content_idx") }
	either := []any{
		map[string]any{dataset.FlagKey: dataset.FlagValue},
		map[string]any{dataset.TopicKey: dataset.TopicValue},
	}
	old := atPosition(t, memory, deepPage*perPage)
	dates := recalling("dates", filtered(recall.Filter{DateRange: recall.DateRange{
		Start: ptr(old.Messages[0].CreatedAt), End: ptr(old.Messages[perPage-1].CreatedAt),
	}}), recallCost(3*perPage, perPage, "messages_thread_order_idx"))
	dates.estimated = true // the count: both indexes of a thread will do
	return []operation{
		dates,
		recalling("metadata", filtered(pair(dataset.FlagKey, dataset.FlagValue)), matching(matches)),
		recalling("metadata that is rare in the thread only", filtered(pair(dataset.TopicKey, dataset.TopicValue)), matching(matches)),
		recalling("metadata in a resource", inResource, matching(matches+smallThreadsOfResource*matchesOfOthers)),
		recalling("where equal", filtered(where(dataset.FlagKey, dataset.FlagValue)), matching(matches)),
		recalling("where one of", filtered(where(dataset.TopicKey, map[string]any{"$in": []any{"none", dataset.TopicValue}})), matching(matches)),
		recalling("where either", filtered(where("$or", either)), matching(2*matches)),
		// No index knows more than the scope here, but the scope it knows.
		recalling("where greater", filtered(where("n", map[string]any{"$gte": 10})), matching(dataset.LargestThread)),
		recalling("role", filtered(recall.Filter{Roles: []string{"user"}}), matching(dataset.LargestThread)),
		recalling("what is older than a date", recall.Request{
			ThreadID: large, PerPage: ptr(perPage), SkipTotal: true,
			Filter: recall.Filter{DateRange: recall.DateRange{End: ptr(old.Messages[0].CreatedAt)}},
		}, recallCost(perPage+1, perPage, "messages_thread_order_idx")),
		recalling("what is newer than a date, oldest first", recall.Request{
			ThreadID: large, PerPage: ptr(perPage), SkipTotal: true, Direction: recall.Ascending,
			Filter: recall.Filter{DateRange: recall.DateRange{Start: ptr(old.Messages[0].CreatedAt)}},
		}, recallCost(perPage+1, perPage, "messages_thread_order_idx")),
	}
}

// atPosition gives a page of the large thread, newest first from a position.
func atPosition(t *testing.T, memory *recall.Memory, position int) recall.Result {
	page, err := memory.Recall(t.Context(), recall.Request{ThreadID: large, PerPage: ptr(perPage), Page: ptr(position / perPage)})
	require.NoError(t, err)
	require.Len(t, page.Messages, perPage)
	return page
}

func includes(t *testing.T, memory *recall.Memory) []operation {
	old := atPosition(t, memory, deepPage*perPage).Messages
	including := func(width, items int) recall.Request {
		request := recall.Request{ThreadID: large}
		for _, message := range old[:items] {
			request.Include = append(request.Include, recall.Include{ID: message.ID, Previous: ptr(width), Next: ptr(width)})
		}
		return request
	}
	// Both ways the index gives one entry more than is asked for.
	around := func(width, items int) cost {
		found := items * (lookUp + 2*(width+1+lookUp))
		return recallCost(found, items*(2*width+1), "messages_thread_order_idx")
	}
	withPage := including(2, 1)
	withPage.PerPage = ptr(perPage)
	pagedToo := around(2, 1)
	pagedToo.rows += 4 * perPage
	pagedToo.blocks += 2 * lookUp * perPage
	return []operation{
		recalling("include", including(2, 1), around(2, 1)),
		recalling("include ten", including(2, 10), around(2, 10)),
		recalling("include with the widest context", including(200, 2), around(200, 2)),
		recalling("include beside a page", withPage, pagedToo),
		recalling("tool call far before its result", recall.Request{
			ThreadID: large, KeepToolPairs: true, Include: []recall.Include{{ID: dataset.MessageID(large, dataset.FarResult)}},
		}, recallCost(2*nearCall, 2, "messages_content_idx")),
	}
}

func threadLists() []operation {
	var operations []operation
	for _, order := range []struct {
		by    recall.ThreadOrder
		index string
	}{
		{recall.ByCreatedAt, "threads_created_at_idx"},
		{recall.ByUpdatedAt, "threads_updated_at_idx"},
	} {
		for _, direction := range []recall.Direction{recall.Ascending, recall.Descending} {
			threads := skewed.Threads + skewed.EmptyThreads + 1
			ofOne := threads/skewed.Resources + 1
			operations = append(operations,
				listing(recall.ThreadListing{OrderBy: order.by, Direction: direction, PerPage: perPage}, cost{
					statement: "ThreadList", indexes: []string{order.index}, countsThreads: true,
					rows: threads + perPage + 100, blocks: threads/10 + 2*perPage,
				}),
				listing(recall.ThreadListing{OrderBy: order.by, Direction: direction, PerPage: perPage, ResourceID: resource}, cost{
					statement: "ThreadList", indexes: []string{ofResource},
					rows: 2*ofOne + perPage, blocks: 2*ofOne + 2*perPage + 4*lookUp,
				}),
			)
		}
	}
	return operations
}

func listing(in recall.ThreadListing, c cost) operation {
	name := "threads of " + in.ResourceID + " by " + string(in.OrderBy) + " " + string(in.Direction)
	return operation{name: name, cost: []cost{c}, do: func(ctx context.Context, m *recall.Memory) error {
		_, err := m.ListThreads(ctx, in)
		return err
	}}
}

func lookUps(statement string, n int, indexes ...string) cost {
	return cost{statement: statement, indexes: indexes, rows: 2*n + 2, blocks: (n + 2) * 2 * lookUp}
}

// storing is the cost of rows that go into all indexes.
func storing(statement string, n int, indexes ...string) cost {
	c := lookUps(statement, n, indexes...)
	c.rows, c.blocks = 3*n+2, (n+1)*60
	return c
}

// ofVectors is the cost of a function on the vectors of messages: what it does
// inside is not explained, only what it reads in all.
func ofVectors(statement string, messages int) cost {
	return cost{statement: statement, rows: 4, blocks: (messages + 2) * 60}
}

func writes() []operation {
	saved := newMessages("saved", large)
	var ids []string
	var updates []recall.MessageUpdate
	for _, message := range saved {
		ids = append(ids, message.ID)
		updates = append(updates, recall.MessageUpdate{ID: message.ID, Content: []byte(`{"metadata":{"name":"Sam"}}`)})
	}
	lock := lookUps("ThreadLockMany", 1, byThreadID)
	lockOfMessages := lookUps("ThreadLockManyOfMessages", batchSize, "messages_pkey", byThreadID)
	return []operation{
		doing("save", func(ctx context.Context, m *recall.Memory) error {
			_, err := m.SaveMessages(ctx, saved, true)
			return err
		}, lookUps("ThreadCreateMissing", 1), lock, storing("MessageSaveMany", batchSize, "messages_pkey", byThreadID)),
		doing("save again", func(ctx context.Context, m *recall.Memory) error {
			_, err := m.SaveMessages(ctx, saved, false)
			return err
		}, lock, storing("MessageSaveMany", batchSize, "messages_pkey", byThreadID)),
		doing("update messages", func(ctx context.Context, m *recall.Memory) error {
			_, err := m.UpdateMessages(ctx, updates, "")
			return err
		}, lockOfMessages, storing("MessageUpdateMany", batchSize, "messages_pkey", byThreadID),
			ofVectors("EmbeddingForgetMany", batchSize)),
		doing("delete messages", func(ctx context.Context, m *recall.Memory) error {
			_, err := m.DeleteMessages(ctx, ids, "")
			return err
		}, lockOfMessages, lookUps("MessageDeleteMany", batchSize, "messages_pkey", byThreadID)),
		doing("update a thread", func(ctx context.Context, m *recall.Memory) error {
			_, err := m.UpdateThread(ctx, recall.ThreadUpdate{ID: small, Title: ptr("Conversation 7")})
			return err
		}, storing("ThreadUpdate", 1, byThreadID)),
		doing("create a thread that exists", func(ctx context.Context, m *recall.Memory) error {
			_, err := m.CreateThread(ctx, recall.NewThread{ID: large, ResourceID: resource})
			return err
		}, lookUps("ThreadCreate", 1), storing("ThreadOverwrite", 1, byThreadID)),
	}
}

// rememberEverything gives every thread and every resource a working memory of ten
// versions.
func rememberEverything(t *testing.T, conn *pgx.Conn) {
	exec(t, conn, `INSERT INTO recall.working_memories (resource_id, thread_id, version)
		SELECT t.resource_id, t.id, 10 FROM recall.threads AS t
		UNION ALL SELECT DISTINCT t.resource_id, NULL, 10 FROM recall.threads AS t`)
	exec(t, conn, `INSERT INTO recall.working_memory_versions (working_memory_id, resource_id, version, content, created_at)
		SELECT w.id, w.resource_id, n, 'version ' || n, now() FROM recall.working_memories AS w, generate_series(1, 10) AS n`)
	exec(t, conn, `VACUUM (ANALYZE) recall.working_memories, recall.working_memory_versions`)
}

// forgetVersions takes the versions back that were added since.
func forgetVersions(t *testing.T, conn *pgx.Conn) {
	exec(t, conn, `DELETE FROM recall.working_memory_versions AS v WHERE v.version > 10`)
	exec(t, conn, `UPDATE recall.working_memories AS w SET version = 10 WHERE w.version > 10`)
	exec(t, conn, `VACUUM (ANALYZE) recall.working_memories, recall.working_memory_versions`)
}

const (
	byOwner   = "working_memories_resource_id_thread_id_key"
	byVersion = "working_memory_versions_pkey"
	// byMemoryID serve a look-up by the id of a working memory alike.
	byMemoryID = "working_memories_pkey|working_memories_id_resource_id_key"
)

func workingMemories() []operation {
	ofThread := recall.WorkingMemoryOf{ThreadID: large, Config: recall.WorkingMemoryConfig{Scope: recall.ScopeThread}}
	ofResource := recall.WorkingMemoryOf{ThreadID: large}
	withSchema := ofResource
	withSchema.Config.Schema = []byte(`{"type":"object"}`)
	get := lookUps("WorkingMemoryGet", 3, byOwner, byVersion, byThreadID)
	lock := []cost{
		lookUps("ThreadHold", 1, byThreadID), lookUps("WorkingMemoryLock", 1), lookUps("WorkingMemoryVersionGet", 1, byVersion),
	}
	// All but the newest hundred go: those that are there are looked at.
	add := lookUps("WorkingMemoryVersionAdd", 12, byMemoryID, byVersion)
	getting := func(name string, of recall.WorkingMemoryOf) operation {
		return doing(name, func(ctx context.Context, m *recall.Memory) error {
			_, err := m.WorkingMemory(ctx, of)
			return err
		}, get)
	}
	setting := func(name string, update recall.WorkingMemoryUpdate) operation {
		return doing(name, func(ctx context.Context, m *recall.Memory) error {
			_, err := m.UpdateWorkingMemory(ctx, update)
			return err
		}, append(slices.Clone(lock), add)...)
	}
	return []operation{
		getting("working memory of a thread", ofThread),
		getting("working memory of a resource", ofResource),
		setting("replace the working memory of a thread", recall.WorkingMemoryUpdate{WorkingMemoryOf: ofThread, Text: ptr("new")}),
		setting("replace the working memory of a resource", recall.WorkingMemoryUpdate{WorkingMemoryOf: ofResource, Text: ptr("new")}),
		setting("merge into a working memory", recall.WorkingMemoryUpdate{WorkingMemoryOf: withSchema, Merge: []byte(`{"new":1}`)}),
		doing("restore a working memory", func(ctx context.Context, m *recall.Memory) error {
			_, err := m.RestoreWorkingMemory(ctx, ofThread, 3, nil)
			return err
		}, append(slices.Clone(lock), lookUps("WorkingMemoryVersionGet", 1, byVersion), add)...),
		doing("versions of a working memory", func(ctx context.Context, m *recall.Memory) error {
			_, err := m.WorkingMemoryVersions(ctx, ofThread, 8, 3)
			return err
		}, get, lookUps("WorkingMemoryVersionList", 3, byVersion)),
	}
}

func clones(t *testing.T, memory *recall.Memory) []operation {
	const clone = "clone"
	var some []string
	for _, message := range atPosition(t, memory, deepPage*perPage).Messages {
		some = append(some, message.ID)
	}
	remembered := lookUps("WorkingMemoryGet", 3, byOwner, byVersion, byThreadID)
	copiedMemory := lookUps("WorkingMemoryCopy", 14, "messages_pkey", byVersion)
	copiedMemory.blocks += 300 // it looks for newer messages, where those deleted before still lie
	copying := func(name string, in recall.ThreadClone, c cost, messages int) operation {
		in.ID = clone
		return doing(name, func(ctx context.Context, m *recall.Memory) error {
			_, err := m.CloneThread(ctx, in)
			return err
		}, c, remembered, copiedMemory, ofVectors("EmbeddingCopyMany", messages))
	}
	remove := doing("delete a thread", func(ctx context.Context, m *recall.Memory) error {
		return m.DeleteThread(ctx, clone, "")
	}, lookUps("ThreadDelete", 1, byThreadID))
	copied := storing("ThreadClone", dataset.ThreadMessages, wholeThread, byThreadID)
	copiedSome := storing("ThreadClone", perPage, "messages_pkey", byThreadID)
	get := lookUps("ThreadGet", 1, byThreadID)
	return []operation{
		copying("clone", recall.ThreadClone{SourceID: small}, copied, dataset.ThreadMessages),
		doing("transfer", func(ctx context.Context, m *recall.Memory) error {
			_, err := m.TransferThread(ctx, clone, "", dataset.ResourceID(1))
			return err
		}, lookUps("ThreadLockMany", 1, byThreadID), storing("ThreadTransfer", 1, byThreadID),
			lookUps("JobTransfer", 1, "river_job_args_index")),
		doing("list clones", func(ctx context.Context, m *recall.Memory) error {
			_, err := m.Clones(ctx, small, "")
			return err
		}, get, lookUps("ThreadListClones", 1, "threads_source_thread_id_idx")),
		doing("clone history", func(ctx context.Context, m *recall.Memory) error {
			_, err := m.CloneHistory(ctx, clone, "")
			return err
		}, get, lookUps("ThreadListCloneHistory", 4, byThreadID)),
		doing("empty a thread", func(ctx context.Context, m *recall.Memory) error {
			_, err := m.DeleteThreadMessages(ctx, clone, "")
			return err
		}, lookUps("ThreadLockMany", 1, byThreadID), get,
			lookUps("MessageDeleteByThread", dataset.ThreadMessages, wholeThread, byThreadID)),
		remove,
		copying("clone the newest of a large thread",
			recall.ThreadClone{SourceID: large, MessageLimit: ptr(dataset.ThreadMessages)}, copied, dataset.ThreadMessages),
		remove,
		copying("clone chosen messages of a large thread", recall.ThreadClone{SourceID: large, MessageIDs: some}, copiedSome, perPage),
		remove,
	}
}

// keys is how many keys are in use when plans are judged.
const keys = 10_000

// insertKeys fills the table of keys, each with the request of keyOf.
const insertKeys = `INSERT INTO recall.idempotency_keys (key, request_hash, status, answer, resource_ids, created_at)
	SELECT 'key-' || n, sha256(E'POST /\n{}'), 200, '{}', ARRAY['resource-' || n % 1000], now() - n * interval '1 second'
	FROM generate_series(1, $1::integer) AS n`

func keyOf(name string) recall.Key {
	return recall.Key{Name: name, Target: "POST /", Input: []byte("{}")}
}

func answering(*recall.Memory) (recall.Answer, error) {
	return recall.Answer{Status: 200, Body: []byte(`{"resourceId":"resource-0"}`)}, nil
}

func keyed() []operation {
	const byKey = "idempotency_keys_pkey"
	get := lookUps("IdempotencyKeyGet", 1, byKey)
	return []operation{
		doing("a first answer under a key", func(ctx context.Context, m *recall.Memory) error {
			_, err := m.Once(ctx, keyOf(rand.Text()), answering)
			return err
		}, storing("IdempotencyKeyClaim", 1), storing("IdempotencyKeySettle", 1, byKey, byThreadID)),
		doing("a first answer of a read under a key", func(ctx context.Context, m *recall.Memory) error {
			_, err := m.OnceRead(ctx, keyOf(rand.Text()), answering)
			return err
		}, get, lookUps("ErasureCount", 1), storing("IdempotencyKeyClaim", 1), lookUps("ErasureCountHold", 1),
			storing("IdempotencyKeySettle", 1, byKey, byThreadID)),
		doing("a replay", func(ctx context.Context, m *recall.Memory) error {
			_, err := m.Once(ctx, keyOf("key-5000"), nil)
			return err
		}, storing("IdempotencyKeyClaim", 1), get),
		doing("a replay of a read", func(ctx context.Context, m *recall.Memory) error {
			_, err := m.OnceRead(ctx, keyOf("key-5000"), nil)
			return err
		}, get),
		operating("forget keys", func(ctx context.Context, m *recall.Memory) error {
			return m.ForgetKeys(ctx)
		}, lookUps("IdempotencyKeyDeleteExpired", 1, "idempotency_keys_created_at_idx")),
	}
}

// onThree calls do once others' threads, three with a batch each, are in, of a
// resource and an agent of their own.
func onThree(memory *recall.Memory, owner, agent string, do func(context.Context, *recall.Memory) error) func(context.Context, *recall.Memory) error {
	return func(ctx context.Context, m *recall.Memory) error {
		for _, id := range []string{"one", "two", "three"} {
			messages := newMessages(owner+id, owner+id)
			for i := range messages {
				messages[i].ResourceID, messages[i].CreatedAt = owner, time.Now().Add(-10*24*time.Hour)
			}
			if _, err := memory.SaveMessages(ctx, messages, true, recall.ForAgent(agent)); err != nil {
				return err
			}
		}
		return do(ctx, m)
	}
}

// ofResourceOnly serves look-ups of the threads of a resource.
const ofResourceOnly = ofResource + "|threads_id_resource_id_key"

func erasures(memory *recall.Memory) []operation {
	const owner, ofKeys = "resource-erased", "idempotency_keys_resource_ids_idx"
	three := 3 * batchSize
	return []operation{
		doing("what is held", onThree(memory, owner, "", func(ctx context.Context, m *recall.Memory) error {
			_, err := m.Resource(ctx, owner)
			return err
		}), ofVectors("ResourceHeld", three), cost{
			statement: "ResourceActivity", indexes: []string{"threads_resource_created_at_idx", "threads_resource_updated_at_idx", "messages_resource_order_idx"},
			rows: 4, blocks: 8 * lookUp,
		}),
		doing("erase a resource", onThree(memory, owner, "", func(ctx context.Context, m *recall.Memory) error {
			_, err := m.EraseResource(ctx, owner)
			return err
		}),
			cost{statement: "ErasureLock", rows: 1},
			lookUps("IdempotencyKeyLockManyOfResource", 1, ofKeys),
			lookUps("ThreadLockManyOfResource", 3, ofResourceOnly, "threads_source_thread_id_idx", byThreadID),
			lookUps("ThreadCountClonesBeside", 3, "threads_source_thread_id_idx"),
			lookUps("ThreadForgetSources", 3),
			lookUps("WorkingMemoryLockManyOfResource", 1, byOwner),
			lookUps("WorkingMemoryVersionDeleteMany", 1, byVersion),
			lookUps("WorkingMemoryDeleteMany", 1, byMemoryID),
			ofVectors("EmbeddingDeleteByThreads", three),
			lookUps("MessageDeleteByThreads", three, wholeThread),
			lookUps("ResourceDelete", 1, "resources_pkey"),
			lookUps("ThreadDeleteMany", 3, byThreadID),
			lookUps("ErasureCountUp", 1),
			lookUps("IdempotencyKeyDeleteByResource", 1, ofKeys),
			lookUps("JobDeleteByResource", 1, "river_job_args_index"),
		),
	}
}

func retentions(memory *recall.Memory) []operation {
	const agent = "agent"
	retaining := func(name, retention string, costs ...cost) operation {
		return operating(name, onThree(memory, "retained", agent, func(ctx context.Context, m *recall.Memory) error {
			if err := memory.SaveAgent(ctx, agent, []byte(`{"retention":`+retention+`}`)); err != nil {
				return err
			}
			if err := m.Retain(ctx); err != nil {
				return err
			}
			if _, err := memory.EraseResource(ctx, "retained"); err != nil {
				return err
			}
			return memory.DeleteAgent(ctx, agent)
		}), append([]cost{lookUps("AgentList", 1)}, costs...)...)
	}
	three := 3 * batchSize
	list := lookUps("MessageListExpired", three, "threads_agent_updated_at_idx", wholeThread)
	return []operation{
		retaining("expire messages", `{"messages":{"maxAge":"9d"}}`, list,
			lookUps("ThreadLockMany", 3, byThreadID),
			lookUps("MessageDeleteExpired", three, "messages_pkey", byThreadID), list),
		retaining("expire messages that are too new", `{"messages":{"maxAge":"11d"}}`, list),
		retaining("expire threads that are in use", `{"threads":{"maxAge":"1d"}}`, lookUps("ThreadListExpired", 3, "threads_agent_updated_at_idx")),
	}
}

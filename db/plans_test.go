package db_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/bench/dataset"
	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
)

// skewed is the data set that plans are judged on. The many threads without
// messages make a sequential scan of threads a mistake, as it is in life.
var skewed = func() dataset.Shape {
	shape := dataset.Scaled(dataset.DefaultMessages)
	shape.EmptyThreads = 10_000
	return shape
}()

// planCacheModes are the ways to plan a statement, and how often one is run: of
// its own choice PostgreSQL may take a generic plan from the sixth time on.
var planCacheModes = map[string]int{"force_generic_plan": 2, "force_custom_plan": 2, "auto": 10}

func TestStatementsReadByIndexHoweverTheyArePlanned(t *testing.T) {
	t.Parallel()
	url := dbtest.Seeded(t, skewed)
	owner := connect(t, url)
	exec(t, owner, insertKeys, keys)
	exec(t, owner, `VACUUM ANALYZE recall.idempotency_keys`)
	rememberEverything(t, owner)
	exec(t, owner, manyJobs)
	exec(t, owner, "VACUUM ANALYZE recall.river_job")
	// Of its one row, once analyzed, PostgreSQL makes a sequential scan.
	exec(t, owner, "ALTER TABLE recall.erasures SET (autovacuum_enabled = off)")
	operations := operationsOn(t, url)
	for _, c := range []struct {
		name   string
		ours   bool
		caller recall.Caller
	}{
		{"our settings", true, recall.Caller{}},
		{"our settings for a bound caller", true, boundCaller},
		{"the server's settings", false, recall.Caller{}},
	} {
		for mode, runs := range planCacheModes {
			t.Run(c.name+" with "+mode, func(t *testing.T) {
				explainer := dbtest.NewExplainer(t, runs)
				pool := explained(t, url, c.ours, mode, explainer)
				judgeAll(t, pool, c.caller, mode, explainer, operations)
				assert.Zero(t, scansOfMessages(t, pool), "sequential scans of messages, those for foreign keys among them")
				// What was rolled back lies in the way of the next.
				require.NoError(t, dataset.Vacuum(t.Context(), owner))
				forgetVersions(t, owner)
			})
		}
	}
}

func TestAPlanMadeOnEmptyTablesIsRightWhenTheyHaveGrown(t *testing.T) {
	t.Parallel()
	const mode = "force_generic_plan"
	for _, state := range []string{"never vacuumed", "vacuumed"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			url := dbtest.URL(t)
			owner := connect(t, url)
			// Nothing may renew the statistics, and with them the plans, meanwhile.
			for _, table := range []string{"threads", "messages", "idempotency_keys"} {
				exec(t, owner, "ALTER TABLE recall."+table+" SET (autovacuum_enabled = off)")
			}
			if state == "vacuumed" {
				require.NoError(t, dataset.Vacuum(t.Context(), owner))
				forgetVersions(t, owner)
			}
			explainer := dbtest.NewExplainer(t, 1)
			pool := explained(t, url, true, mode, explainer)
			prepareAll(t, recall.New(pool, recall.DefaultLimits()))
			explainer.Take()
			require.NoError(t, dataset.Load(t.Context(), owner, skewed, nil))
			exec(t, owner, insertKeys, keys)
			rememberEverything(t, owner)
			judgeAll(t, pool, recall.Caller{}, mode, explainer, slices.DeleteFunc(operationsOn(t, url), func(o operation) bool { return o.estimated }))
		})
	}
}

// manyJobs are those of many threads.
const manyJobs = `
	INSERT INTO recall.river_job (kind, queue, args, max_attempts)
	SELECT 'embed', 'embed_other', jsonb_build_object('resourceId', 'u' || n % 100, 'threadId', 't' || n % 1000, 'messageIds', jsonb_build_array('m' || n)), 5
	FROM generate_series(1, 5000) AS n`

// boundCaller reaches all that the operations are about.
var boundCaller = recall.Caller{Prefix: "resource-"}

func judgeAll(t *testing.T, pool *pgxpool.Pool, caller recall.Caller, mode string, explainer *dbtest.Explainer, operations []operation) {
	memory := recall.New(pool, recall.DefaultLimits()).For(caller)
	for _, operation := range operations {
		if operation.operates && caller.Bound() {
			continue
		}
		require.NoError(t, operation.do(t.Context(), memory), operation.name)
		operation.judge(t, mode, explainer.Take())
	}
}

// prepareAll runs every statement, which finds nothing.
func prepareAll(t *testing.T, memory *recall.Memory) {
	ctx := t.Context()
	saved := newMessages("early", "early")
	_, err := memory.SaveMessages(ctx, saved, true)
	require.NoError(t, err)
	_, err = memory.UpdateMessages(ctx, []recall.MessageUpdate{{ID: saved[0].ID, Role: "user"}}, "")
	require.NoError(t, err)
	_, err = memory.Recall(ctx, recall.Request{ThreadID: "early"})
	require.NoError(t, err)
	_, err = memory.Recall(ctx, recall.Request{ThreadID: "early", KeepToolPairs: true})
	require.NoError(t, err)
	_, err = memory.ListThreads(ctx, recall.ThreadListing{PerPage: 1})
	require.NoError(t, err)
	for range 2 {
		_, err = memory.Once(ctx, keyOf("early"), answering)
		require.NoError(t, err)
	}
	require.NoError(t, memory.ForgetKeys(ctx))
	prepareWorkingMemory(t, memory)
	clone, err := memory.CloneThread(ctx, recall.ThreadClone{SourceID: "early"})
	require.NoError(t, err)
	_, err = memory.Clones(ctx, "early", "")
	require.NoError(t, err)
	_, err = memory.CloneHistory(ctx, clone.Thread.ID, "")
	require.NoError(t, err)
	_, err = memory.TransferThread(ctx, clone.Thread.ID, "", "other")
	require.NoError(t, err)
	_, err = memory.Resource(ctx, "other")
	require.NoError(t, err)
	_, err = memory.EraseResource(ctx, "nobody")
	require.NoError(t, err)
	for _, kept := range []string{`{"messages":{"maxAge":"1d"}}`, `{"threads":{"maxAge":"1d"}}`} {
		require.NoError(t, memory.SaveAgent(ctx, "early", []byte(`{"retention":`+kept+`}`)))
		require.NoError(t, memory.Retain(ctx))
	}
	require.NoError(t, memory.DeleteAgent(ctx, "early"))
	_, err = memory.DeleteMessages(ctx, []string{saved[0].ID}, "")
	require.NoError(t, err)
	for _, id := range []string{"early", clone.Thread.ID} {
		_, err = memory.DeleteThreadMessages(ctx, id, "")
		require.NoError(t, err)
		require.NoError(t, memory.DeleteThread(ctx, id, ""))
	}
}

// prepareWorkingMemory runs the statements of working memory on the thread "early".
func prepareWorkingMemory(t *testing.T, memory *recall.Memory) {
	of := recall.WorkingMemoryOf{ThreadID: "early", Config: recall.WorkingMemoryConfig{Scope: recall.ScopeThread}}
	for _, text := range []string{"one", "two"} {
		_, err := memory.UpdateWorkingMemory(t.Context(), recall.WorkingMemoryUpdate{WorkingMemoryOf: of, Text: &text})
		require.NoError(t, err)
	}
	_, err := memory.RestoreWorkingMemory(t.Context(), of, 1, nil)
	require.NoError(t, err)
	_, err = memory.WorkingMemoryVersions(t.Context(), of, 0, 1)
	require.NoError(t, err)
}

// explained gives a pool of one connection, whose statements are explained: with
// the program's settings or those of the server.
func explained(t *testing.T, url string, ours bool, mode string, explainer *dbtest.Explainer) *pgxpool.Pool {
	config, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	if ours {
		config = dbtest.Open(t, url).Config()
	}
	config.MaxConns = 1
	config.ConnConfig.Tracer = explainer
	config.ConnConfig.RuntimeParams["plan_cache_mode"] = mode
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// scansOfMessages counts the sequential scans since the database was made.
func scansOfMessages(t *testing.T, pool *pgxpool.Pool) (scans int) {
	_, err := pool.Exec(t.Context(), `SELECT pg_stat_force_next_flush()`)
	require.NoError(t, err)
	const query = `SELECT seq_scan FROM pg_stat_user_tables WHERE relid = 'recall.messages'::regclass`
	require.NoError(t, pool.QueryRow(t.Context(), query).Scan(&scans))
	return scans
}

// operation is one method of the memory with what its statements may cost.
type operation struct {
	name string
	do   func(context.Context, *recall.Memory) error
	cost []cost
	// operates is true of what bound callers may not do.
	operates bool
	// estimated needs statistics for the right choice between two indexes.
	estimated bool
}

// cost is what one statement must read and may touch.
type cost struct {
	statement string
	// indexes are those that must be read; "a|b" is either of two.
	indexes []string
	// rows bounds the entries of indexes and rows of tables that are looked at,
	// blocks the pages.
	rows, blocks int
	// countsThreads allows the one sequential scan that counts all threads.
	countsThreads bool
}

// judge compares what was explained with the costs.
func (o operation) judge(t *testing.T, mode string, explained []dbtest.Explained) {
	t.Helper()
	var names, want []string
	for _, statement := range explained {
		names = append(names, statement.Name)
	}
	for _, cost := range o.cost {
		want = append(want, cost.statement)
	}
	if !assert.Equal(t, want, names, "%s: the statements, one round trip each", o.name) {
		return
	}
	for i, statement := range explained {
		for run, plan := range statement.Plans {
			if !o.cost[i].holds(t, plan) {
				t.Errorf("%s: run %d of %s: %s", o.name, run+1, statement.Name, plan)
				break
			}
		}
		first, last := statement.Plans[0], statement.Plans[len(statement.Plans)-1]
		if mode != "auto" {
			assert.Equal(t, first.Shape(), last.Shape(), "%s: the plan of %s flips", o.name, statement.Name)
		}
		assert.Equal(t, o.cost[i].read(first), o.cost[i].read(last), "%s: the indexes of %s flip", o.name, statement.Name)
	}
}

func (c cost) holds(t *testing.T, plan dbtest.Plan) bool {
	ok := assert.Subset(t, c.read(plan), c.indexes)
	ok = assert.LessOrEqual(t, plan.Visited(), float64(c.rows), "rows visited") && ok
	ok = assert.LessOrEqual(t, plan.Blocks(), c.blocks, "blocks touched") && ok
	for _, node := range plan.Ran() {
		counting := c.countsThreads && node.Relation == "threads"
		// A handful of rows on one page.
		registry := node.Relation == "embedding_indexes" || node.Relation == "agents"
		ok = assert.False(t, node.Node == "Seq Scan" && node.Relation != "" && !counting && !registry, "sequential scan of %s", node.Relation) && ok
		ok = assert.NotContains(t, []string{"recall_positions", "context_positions"}, node.Function, "not planned as part of the statement") && ok
	}
	return ok
}

// read names the indexes that a plan reads, each in sorted order once, and those
// that will do alike by what the cost calls them.
func (c cost) read(plan dbtest.Plan) []string {
	names := plan.Indexes()
	for i, name := range names {
		for _, either := range slices.Concat(c.indexes, []string{byThreadID}) {
			if slices.Contains(strings.Split(either, "|"), name) {
				names[i] = either
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// byThreadID are the two indexes that begin with a thread's id, which serve a
// look-up by it alike.
const byThreadID = "threads_pkey|threads_id_resource_id_key"

func ptr[T any](value T) *T { return &value }

func connect(t *testing.T, url string) *pgx.Conn {
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql, args...)
	require.NoError(t, err, sql)
}

// newMessages makes a batch of a thread.
func newMessages(prefix, thread string) []recall.NewMessage {
	var messages []recall.NewMessage
	for i := range batchSize {
		messages = append(messages, recall.NewMessage{
			ID: fmt.Sprintf("%s-%d", prefix, i), ThreadID: thread, ResourceID: dataset.ResourceID(0), Role: "user",
			Content: []byte(`{"format":2,"parts":[{"type":"text","text":"Hello."}],"metadata":{"channel":"chat"}}`),
		})
	}
	return messages
}

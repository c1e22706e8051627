package db_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"

	"github.com/pgrecall/pgrecall/bench/dataset"
	"github.com/pgrecall/pgrecall/db/dbtest"
)

// sqlCall is a query as an analyst asks it, with what it may cost. $1, $2 stand
// for its parameters, which are text.
type sqlCall struct {
	query string
	args  []string
	cost  cost
}

// sqlCalls are calls of each function, and conditions on each view, that read by
// index. The statement of a cost is "".
func sqlCalls() []sqlCall {
	const around, top = 2, 5
	message := dataset.MessageID(large, 5000)
	return []sqlCall{
		{"recall.recall(thread_id => $1, per_page => 20)", []string{large}, recallCost(perPage+1, perPage, "messages_thread_order_idx")},
		{"recall.recall(thread_id => $1, per_page => 20, newest => false)", []string{large}, recallCost(perPage+1, perPage, "messages_thread_order_idx")},
		{"recall.recall(resource_id => $1, per_page => 20)", []string{resource}, recallCost(perPage+1, perPage, "messages_resource_order_idx")},
		{
			"recall.recall(thread_id => $1, metadata => jsonb_build_object($2::text, $3::text))",
			[]string{large, dataset.TopicKey, dataset.TopicValue}, recallCost(2*matches, perPage, "messages_content_idx"),
		},
		{"recall.context(ARRAY[$1], 2, 2)", []string{message}, recallCost(1+2*around, 1+2*around, "messages_pkey", "messages_thread_order_idx")},
		{"recall.search($1, resource_id => $2, top_k => 5)", []string{"quarterly report", dataset.ResourceID(9)}, cost{rows: 2 * top, blocks: 40_000}},
		{"recall.similar_to($1)", []string{message}, cost{rows: 2 * top, blocks: 200_000}},
		{"recall.message_text WHERE thread_id = $1 ORDER BY created_at DESC, position DESC LIMIT 20", []string{large}, cost{
			indexes: []string{"messages_thread_order_idx"}, rows: perPage + 1, blocks: 4 * perPage,
		}},
		{"recall.thread_summary WHERE thread_id = $1", []string{large}, cost{
			indexes: []string{"messages_thread_order_idx", byThreadID}, rows: 3, blocks: 4 * lookUp,
		}},
		{"recall.daily_activity WHERE resource_id = $1", []string{dataset.ResourceID(9)}, cost{
			indexes: []string{"messages_resource_order_idx"}, rows: 10 * dataset.ThreadMessages, blocks: 20 * dataset.ThreadMessages,
		}},
	}
}

// inlined are the functions that are planned as part of their caller. What they
// call in PL/pgSQL, search_positions and the like, is judged by its own test.
var inlined = []string{"recall", "context", "hits", "search", "nearest", "similar_to", "recall_positions", "context_positions"}

func TestCallsInSQLReadByIndexHoweverTheyArePlanned(t *testing.T) {
	t.Parallel()
	conn := connect(t, dbtest.Seeded(t, skewed))
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		exec(t, conn, "SET plan_cache_mode = "+mode)
		judgeCalls(t, conn, mode)
	}
}

func judgeCalls(t *testing.T, conn *pgx.Conn, mode string) {
	for i, call := range sqlCalls() {
		name := fmt.Sprintf("%s_%d", mode, i)
		types := strings.TrimSuffix(strings.Repeat("text, ", len(call.args)), ", ")
		exec(t, conn, fmt.Sprintf("PREPARE %s (%s) AS SELECT * FROM %s", identifier(name), types, call.query))
		var args []string
		for _, arg := range call.args {
			args = append(args, "'"+arg+"'")
		}
		plan := dbtest.Explain(t.Context(), t, conn, fmt.Sprintf("EXECUTE %s (%s)", identifier(name), strings.Join(args, ", ")))
		ok := call.cost.holds(t, plan)
		for _, node := range plan.Ran() {
			// similar_to asks nearest with a vector that it looks up.
			if node.Function != "nearest" || !strings.Contains(call.query, "similar_to") {
				ok = assert.NotContains(t, inlined, node.Function, "not planned as part of its caller") && ok
			}
		}
		if !ok {
			t.Errorf("%s, %s: %s", mode, call.query, plan)
		}
	}
}

func TestEveryPublicFunctionAndViewIsAskedWithLittle(t *testing.T) {
	t.Parallel()
	conn := connect(t, dbtest.URL(t))
	fill(t, conn)
	exec(t, conn, `SELECT recall.create_embedding_table(i) FROM recall.embedding_indexes AS i WHERE i.name = 'second'`)
	for name, asked := range map[string]struct {
		arguments string
		rows      int
	}{
		"function recall":         {"('t')", 1},
		"function context":        {"('{m}')", 1},
		"function search":         {"('tea', 't')", 1},
		"function nearest":        {"(array_fill(1, ARRAY[256])::vector, 't')", 1},
		"function similar_to":     {"('m', 't')", 0},
		"view message_text":       {"", 1},
		"view thread_summary":     {"", 1},
		"view daily_activity":     {"", 1},
		"view embedding_coverage": {"", 2},
	} {
		assert.Contains(t, public, name)
		_, name, _ := strings.Cut(name, " ")
		assert.Len(t, texts(t, conn, "SELECT r::text FROM recall."+name+asked.arguments+" AS r"), asked.rows, name)
	}
}

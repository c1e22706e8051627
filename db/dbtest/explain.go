package dbtest

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// Explainer explains every named statement of a connection just before it runs,
// in the state it will find and with the parameters it will get. It is a
// [pgx.QueryTracer]; set it on a pool of one connection.
//
// A statement is prepared once and explained as EXPLAIN ANALYZE EXECUTE, so that
// the choice between a generic and a custom plan is made as for the statement
// itself. What it changes is undone before it runs.
type Explainer struct {
	t testing.TB
	// Times is how often each statement is explained.
	Times int

	explained []Explained
}

// NewExplainer gives an explainer that fails the test when it cannot explain.
func NewExplainer(t testing.TB, times int) *Explainer { return &Explainer{t: t, Times: times} }

// Explained is one statement with its plans, one for each time.
type Explained struct {
	Name  string
	Plans []Plan
}

// Take gives what was explained since the last call.
func (e *Explainer) Take() []Explained {
	taken := e.explained
	e.explained = nil
	return taken
}

// statementName finds the name that sqlc writes above a statement.
var statementName = regexp.MustCompile(`^-- name: (\w+) `)

// TraceQueryStart explains the statement that is about to run.
func (e *Explainer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	name := statementName.FindStringSubmatch(data.SQL)
	if name == nil {
		return ctx
	}
	explained := Explained{Name: name[1]}
	prepared, err := conn.Prepare(ctx, "explained_"+name[1], data.SQL)
	require.NoError(e.t, err)
	execute := "EXECUTE " + pgx.Identifier{prepared.Name}.Sanitize() + literals(e.t, conn, prepared.ParamOIDs, data.Args)
	for range e.Times {
		explained.Plans = append(explained.Plans, Explain(ctx, e.t, conn, execute))
	}
	e.explained = append(e.explained, explained)
	return ctx
}

// TraceQueryEnd does nothing.
func (*Explainer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// literals writes the parameters of EXECUTE.
func literals(t testing.TB, conn *pgx.Conn, types []uint32, args []any) string {
	require.Len(t, args, len(types))
	var list []string
	for i, arg := range args {
		text, err := conn.TypeMap().Encode(types[i], pgx.TextFormatCode, arg, []byte{})
		require.NoError(t, err)
		if text == nil {
			list = append(list, "NULL")
			continue
		}
		list = append(list, "'"+strings.ReplaceAll(string(text), "'", "''")+"'")
	}
	if list == nil {
		return ""
	}
	return "(" + strings.Join(list, ", ") + ")"
}

// Explain runs EXPLAIN ANALYZE on a statement and takes back what that changed.
func Explain(ctx context.Context, t testing.TB, conn *pgx.Conn, statement string) Plan {
	begin, rollback := "BEGIN", "ROLLBACK"
	if conn.PgConn().TxStatus() == 'T' {
		begin, rollback = "SAVEPOINT explain", "ROLLBACK TO SAVEPOINT explain; RELEASE SAVEPOINT explain"
	}
	run := func(sql string) [][]byte {
		results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
		require.NoError(t, err, sql)
		if len(results[0].Rows) == 0 {
			return nil
		}
		return results[0].Rows[0]
	}
	run(begin)
	text := run("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) " + statement)[0]
	run(rollback)
	var plans []struct{ Plan Plan }
	require.NoError(t, json.Unmarshal(text, &plans), "%s", text)
	return plans[0].Plan
}

// Plan is a node of a plan that was executed, with the nodes below it.
type Plan struct {
	Node     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Index    string  `json:"Index Name"`
	Function string  `json:"Function Name"`
	Loops    float64 `json:"Actual Loops"`
	// The rows are means of the loops.
	Rows          float64 `json:"Actual Rows"`
	RowsFiltered  float64 `json:"Rows Removed by Filter"`
	RowsRechecked float64 `json:"Rows Removed by Index Recheck"`
	// The blocks are those of the node and all below it.
	BlocksHit  int    `json:"Shared Hit Blocks"`
	BlocksRead int    `json:"Shared Read Blocks"`
	Plans      []Plan `json:"Plans"`

	// For people.
	Subplan   string `json:"Subplan Name"`
	IndexCond string `json:"Index Cond"`
	Filter    string `json:"Filter"`
}

// String gives the nodes that ran, one a line.
func (p Plan) String() string {
	var text strings.Builder
	p.print(&text, "\n")
	return text.String()
}

func (p Plan) print(text *strings.Builder, indent string) {
	if p.Loops == 0 {
		return
	}
	if p.Subplan != "" {
		fmt.Fprintf(text, "%s%s:", indent, p.Subplan)
	}
	fmt.Fprintf(text, "%s%s %s %s rows=%g loops=%g blocks=%d", indent, p.Node, p.Relation, p.Index, p.Rows, p.Loops, p.Blocks())
	if p.RowsFiltered+p.RowsRechecked > 0 {
		fmt.Fprintf(text, " removed=%g", p.RowsFiltered+p.RowsRechecked)
	}
	if p.IndexCond != "" {
		fmt.Fprintf(text, " cond=%s", p.IndexCond)
	}
	if p.Filter != "" {
		fmt.Fprintf(text, " filter=%s", p.Filter)
	}
	for _, child := range p.Plans {
		child.print(text, indent+"  ")
	}
}

// Ran gives the nodes that ran, the root first.
func (p Plan) Ran() []Plan {
	if p.Loops == 0 {
		return nil
	}
	nodes := []Plan{p}
	for _, child := range p.Plans {
		nodes = append(nodes, child.Ran()...)
	}
	return nodes
}

// Visited counts the rows that scans of tables looked at. Blocks counts what is
// read of an index without a row.
func (p Plan) Visited() float64 {
	var rows float64
	for _, node := range p.Ran() {
		if strings.HasSuffix(node.Node, "Scan") && node.Relation != "" {
			rows += node.Loops * (node.Rows + node.RowsFiltered + node.RowsRechecked)
		}
	}
	return rows
}

// Blocks counts the pages that the statement touched, a page as often as it did.
func (p Plan) Blocks() int { return p.BlocksHit + p.BlocksRead }

// Indexes names the indexes that were read.
func (p Plan) Indexes() []string {
	var names []string
	seen := map[string]bool{}
	for _, node := range p.Ran() {
		if node.Index != "" && !seen[node.Index] {
			seen[node.Index] = true
			names = append(names, node.Index)
		}
	}
	return names
}

// Shape tells plans apart by their nodes, tables and indexes.
func (p Plan) Shape() string {
	var children []string
	for _, child := range p.Plans {
		children = append(children, child.Shape())
	}
	return fmt.Sprintf("%s %s %s(%s)", p.Node, p.Relation, p.Index, strings.Join(children, ", "))
}

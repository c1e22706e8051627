package bench_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/bench"
	"github.com/pgrecall/pgrecall/bench/dataset"
	"github.com/pgrecall/pgrecall/db/dbtest"
)

func TestARunMeasuresEveryOperationAndLeavesNothing(t *testing.T) {
	t.Parallel()
	address := dbtest.EmptyURL(t)
	name := newName()
	phases := map[string]int{}
	report, err := bench.Run(t.Context(), bench.Options{
		DatabaseURL: address,
		Database:    name,
		Messages:    dataset.MinMessages,
		Duration:    10 * time.Millisecond,
		Rounds:      2,
		Progress: func(phase string, done, total int) {
			assert.LessOrEqual(t, done, total)
			phases[phase] = done
		},
	})
	require.NoError(t, err)
	assert.Equal(t, dataset.MinMessages, report.Messages)
	texts := dataset.MinMessages * 4 / 5 // the others call tools
	assert.Equal(t, map[string]int{"load": dataset.MinMessages, "embed": texts, "measure": 2 * len(report.Operations)}, phases)
	assert.Positive(t, report.Machine.CPUs)
	assert.NotEmpty(t, report.Machine.Postgres)
	assert.Len(t, report.Operations, 15)
	recalled := 0
	for _, r := range report.Operations {
		for side, times := range map[string]bench.Times{"HTTP": r.HTTP, "SQL": r.SQL} {
			assert.GreaterOrEqual(t, times.Calls, 2, "%s over %s", r.Name, side)
			assert.Positive(t, times.P50, "%s over %s", r.Name, side)
			assert.LessOrEqual(t, times.P50, times.P95, "%s over %s", r.Name, side)
			assert.LessOrEqual(t, times.P95, times.P99, "%s over %s", r.Name, side)
			assert.Positive(t, times.PerSecond, "%s over %s", r.Name, side)
		}
		assert.InDelta(t, r.HTTP.P50/r.SQL.P50, r.Ratio, 1e-9, r.Name)
		if r.CheckRecall > 0 {
			recalled++
			assert.InDelta(t, 1, r.Recall, 1e-9, "%s: all vectors were compared", r.Name)
		}
	}
	assert.Equal(t, 2, recalled)
	assert.NotContains(t, databases(t, address), name, "its database is gone")
}

func TestARunThatIsInterruptedLeavesNothing(t *testing.T) {
	t.Parallel()
	address := dbtest.EmptyURL(t)
	name := newName()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := bench.Run(ctx, bench.Options{
		DatabaseURL: address,
		Database:    name,
		Messages:    dataset.MinMessages,
		Duration:    time.Hour,
		Rounds:      1,
		Progress:    func(string, int, int) { cancel() },
	})
	require.ErrorIs(t, err, context.Canceled)
	assert.NotContains(t, databases(t, address), name, "its database is gone")
}

func newName() string { return "bench_" + strings.ToLower(rand.Text()) }

func databases(t *testing.T, address string) []string {
	conn, err := pgx.Connect(t.Context(), address)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	rows, err := conn.Query(t.Context(), `SELECT datname::text FROM pg_database`)
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return names
}

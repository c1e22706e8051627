package recall_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/dbgen"
)

const (
	doneJobs    = 40_000
	deadJobs    = 4_000
	waitingJobs = 400 // of each of two queues
	listedJobs  = 20
)

// insertManyJobs fills the table of jobs: the dead and the waiting are the oldest,
// before many that are completed.
const insertManyJobs = `
	INSERT INTO recall.river_job (kind, args, max_attempts, queue, state, finalized_at, created_at)
	SELECT
		'embed',
		jsonb_build_object('resourceId', 'r', 'messageIds', (SELECT jsonb_agg(j.state || '-' || i || '-' || k) FROM generate_series(1, 8) AS k)),
		5, j.queue, j.state::recall.river_job_state, CASE WHEN j.state <> 'available' THEN now() END,
		now() - interval '1 day' + j.place * interval '1 hour' + i * interval '1 millisecond'
	FROM (VALUES
		(1, 'discarded', 'a', $1::integer), (2, 'available', 'a', $2::integer), (3, 'available', 'b', $2), (4, 'completed', 'a', $3::integer)
	) AS j (place, state, queue, n)
	CROSS JOIN LATERAL generate_series(1, j.n) AS i
	ORDER BY j.place, i`

// jobStatement is one with the index that it must read, the most rows that it may
// look at, and the most pages that it may touch.
type jobStatement struct {
	name         string
	index        string // "a|b" is either of two
	rows, blocks int
	do           func(*pgxpool.Pool, *dbgen.Queries) error
}

// everything is the reach of a caller that nothing is kept from.
var everything = []string{"", ""}

// jobIDs gives message ids of jobs of a state, of a job in every so many.
func jobIDs(state string, every int) []string {
	var ids []string
	for i := range 1000 {
		ids = append(ids, fmt.Sprintf("%s-%d-1", state, 1+i*every))
	}
	return ids
}

func jobStatements(t must) []jobStatement {
	list := func(dead bool) func(*pgxpool.Pool, *dbgen.Queries) error {
		return func(pool *pgxpool.Pool, q *dbgen.Queries) error {
			rows, err := q.JobList(ctx, pool, dbgen.JobListParams{Dead: dead, BeforeID: math.MaxInt64, MaxRows: listedJobs, Reach: everything})
			assert.Len(t, rows, listedJobs)
			return err
		}
	}
	countGivenUp := func(ids []string, want int) func(*pgxpool.Pool, *dbgen.Queries) error {
		return func(pool *pgxpool.Pool, q *dbgen.Queries) error {
			n, err := q.JobCountGivenUp(ctx, pool, dbgen.JobCountGivenUpParams{MessageIds: ids, Queue: "a"})
			assert.Equal(t, int64(want), n)
			return err
		}
	}
	retry := func(ids []int64, want int) func(*pgxpool.Pool, *dbgen.Queries) error {
		return func(pool *pgxpool.Pool, q *dbgen.Queries) error {
			n, err := q.JobRetryMany(ctx, pool, dbgen.JobRetryManyParams{Ids: ids, Reach: everything})
			assert.Equal(t, int64(want), n)
			return err
		}
	}
	const (
		looked  = waitingJobs + 50
		changed = 120 // pages for a row that goes into all indexes
		// Of an empty table the planner does not mind which of the two it reads.
		byJobID = "river_job_pkey|river_job_prioritized_fetching_index"
	)
	return []jobStatement{
		{"JobBacklog", "river_job_waiting_idx", 2*waitingJobs + deadJobs, 2*waitingJobs + deadJobs, func(pool *pgxpool.Pool, q *dbgen.Queries) error {
			row, err := q.JobBacklog(ctx, pool)
			assert.Equal(t, [2]int64{2 * waitingJobs, deadJobs}, [2]int64{row.Waiting, row.Dead})
			return err
		}},
		{"JobList", "river_job_dead_idx", listedJobs, 3 * listedJobs, list(true)},
		{"JobList", "river_job_unfinished_idx", listedJobs, 3 * listedJobs, list(false)},
		{"JobCountGivenUp", "river_job_dead_message_ids_idx", 10, 5_000, countGivenUp(jobIDs("available", 1), 0)},
		{"JobCountGivenUp", "river_job_dead_message_ids_idx", 1000 + looked, 5_000 + looked, countGivenUp(jobIDs("discarded", 4), 1000)},
		{"JobListWaiting", "river_job_unfinished_idx", 2 * waitingJobs, 3 * waitingJobs, func(pool *pgxpool.Pool, q *dbgen.Queries) error {
			rows, err := q.JobListWaiting(ctx, pool, dbgen.JobListWaitingParams{Queue: "b", MaxRows: listedJobs})
			assert.Len(t, rows, listedJobs)
			return err
		}},
		{"JobCompleteMany", byJobID, 10, 10 * changed, func(pool *pgxpool.Pool, q *dbgen.Queries) error {
			return q.JobCompleteMany(ctx, pool, []int64{deadJobs + 3, deadJobs + 4})
		}},
		{"JobRetryMany", byJobID, 10, 10 * changed, retry([]int64{7, 9, 9, deadJobs + 1}, 2)},
		{"JobRetryMany", byJobID, 3 * deadJobs, deadJobs * changed, retry([]int64{}, deadJobs-2)},
		{"JobDeleteByQueue", "river_job_prioritized_fetching_index", 2 * waitingJobs, waitingJobs * 10, func(pool *pgxpool.Pool, q *dbgen.Queries) error {
			return q.JobDeleteByQueue(ctx, pool, "b")
		}},
	}
}

func TestJobsAreLookedUpByIndexHoweverManyAreCompleted(t *testing.T) {
	t.Parallel()
	for _, statistics := range []string{"none", "of an empty table", "of the completed", "fresh"} {
		t.Run("statistics "+statistics, func(t *testing.T) {
			t.Parallel()
			url := dbtest.URL(t)
			owner := dbtest.Open(t, url)
			exec := func(sql string, args ...any) {
				_, err := owner.Exec(ctx, sql, args...)
				require.NoError(t, err)
			}
			exec("ALTER TABLE recall.river_job SET (autovacuum_enabled = off)")
			explainer := dbtest.NewExplainer(t, 2)
			config := dbtest.Open(t, url).Config() // with the generic plan
			config.MaxConns = 1
			config.ConnConfig.Tracer = explainer
			pool, err := pgxpool.NewWithConfig(ctx, config)
			require.NoError(t, err)
			t.Cleanup(pool.Close)
			queries := dbgen.New()
			switch statistics {
			case "of an empty table": // and plans
				exec("VACUUM (ANALYZE) recall.river_job")
				prepareJobs(t, pool, queries)
				explainer.Take()
			case "of the completed":
				exec(insertManyJobs, 0, 0, doneJobs)
				exec("VACUUM (ANALYZE) recall.river_job")
				exec("TRUNCATE recall.river_job RESTART IDENTITY")
			}
			exec(insertManyJobs, deadJobs, waitingJobs, doneJobs)
			if statistics == "fresh" {
				exec("VACUUM (ANALYZE) recall.river_job")
			}
			var version int
			require.NoError(t, owner.QueryRow(ctx, `SELECT current_setting('server_version_num')::integer`).Scan(&version))
			for _, statement := range jobStatements(t) {
				if statistics == "of an empty table" && statement.name == "JobRetryMany" && version < 180_000 {
					continue // both indexes look equally good then; an operator's command, and slower only until ANALYZE
				}
				require.NoError(t, statement.do(pool, queries), statement.name)
				for _, explained := range explainer.Take() {
					for _, plan := range explained.Plans {
						assert.Equal(t, statement.name, explained.Name)
						read := slices.ContainsFunc(plan.Indexes(), func(index string) bool {
							return slices.Contains(strings.Split(statement.index, "|"), index)
						})
						assert.True(t, read, "%s: not by %s: %s", explained.Name, statement.index, plan)
						assert.LessOrEqual(t, plan.Visited(), float64(statement.rows), "%s: rows: %s", explained.Name, plan)
						assert.LessOrEqual(t, plan.Blocks(), statement.blocks, "%s: blocks: %s", explained.Name, plan)
					}
				}
			}
		})
	}
}

// prepareJobs plans every statement on jobs.
func prepareJobs(t *testing.T, pool *pgxpool.Pool, queries *dbgen.Queries) {
	_, err := queries.JobBacklog(ctx, pool)
	require.NoError(t, err)
	_, err = queries.JobList(ctx, pool, dbgen.JobListParams{MaxRows: listedJobs, Reach: everything})
	require.NoError(t, err)
	_, err = queries.JobCountGivenUp(ctx, pool, dbgen.JobCountGivenUpParams{MessageIds: []string{}})
	require.NoError(t, err)
	_, err = queries.JobRetryMany(ctx, pool, dbgen.JobRetryManyParams{Ids: []int64{}, Reach: everything})
	require.NoError(t, err)
	_, err = queries.JobListWaiting(ctx, pool, dbgen.JobListWaitingParams{MaxRows: listedJobs})
	require.NoError(t, err)
	require.NoError(t, queries.JobCompleteMany(ctx, pool, []int64{}))
	require.NoError(t, queries.JobDeleteByQueue(ctx, pool, ""))
}

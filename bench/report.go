package bench

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgrecall/pgrecall/bench/dataset"
)

// Report is the outcome of a run.
type Report struct {
	Machine    Machine       `json:"machine"`
	Data       dataset.Shape `json:"data"`
	Messages   int           `json:"messages"`
	Operations []Result      `json:"operations"`
}

// Machine is what the times depend on.
type Machine struct {
	CPUs     int    `json:"cpus"`
	System   string `json:"system"`
	Go       string `json:"go"`
	Postgres string `json:"postgres"`
	// The settings of PostgreSQL on which writes depend, and its cache.
	Fsync             string `json:"fsync"`
	SynchronousCommit string `json:"synchronousCommit"`
	SharedBuffers     string `json:"sharedBuffers"`
}

// Result is the outcome of one operation.
type Result struct {
	Name string `json:"name"`
	HTTP Times  `json:"http"`
	SQL  Times  `json:"sql"`
	// Ratio is the median over HTTP by that of the bare SQL. TargetRatio is what
	// it should stay under, CheckRatio what it must on any machine; 0 where there
	// is none.
	Ratio       float64 `json:"ratio"`
	TargetRatio float64 `json:"targetRatio,omitempty"`
	CheckRatio  float64 `json:"checkRatio,omitempty"`
	// Growth is the median over HTTP by that of a page of a small thread, which
	// needs no more than this; CheckGrowth is what it must stay under. A ratio
	// cannot tell that an index is gone, for the bare SQL misses it too.
	Growth      float64 `json:"growth"`
	CheckGrowth float64 `json:"checkGrowth,omitempty"`
	// Recall is the share of the nearest messages that a search by meaning gives,
	// CheckRecall what it must be at least; 0 of what is none.
	Recall      float64 `json:"recall,omitempty"`
	CheckRecall float64 `json:"checkRecall,omitempty"`
	// Information has the targets that only mean something on the machine they
	// were set for: 2 cores, 60,000 messages.
	Information *Information `json:"information,omitempty"`
}

// Information is an absolute target with what was measured.
type Information struct {
	Unit     string  `json:"unit"`
	Target   float64 `json:"target"`
	Measured float64 `json:"measured"`
	Met      bool    `json:"met"`
}

// Met says whether the ratio meets its target; true where there is none.
func (r Result) Met() bool { return r.TargetRatio == 0 || r.Ratio <= r.TargetRatio }

// Check names what is out of all proportion, or not found, which no noise of a
// machine explains; nil where nothing is.
func (r Result) Check() error {
	switch {
	case r.CheckRatio > 0 && r.Ratio > r.CheckRatio:
		return fmt.Errorf("%s takes %.1f times its bare SQL, more than %.0f", r.Name, r.Ratio, r.CheckRatio)
	case r.CheckGrowth > 0 && r.Growth > r.CheckGrowth:
		return fmt.Errorf("%s takes %.1f times a page of a small thread, more than %.0f", r.Name, r.Growth, r.CheckGrowth)
	case r.Recall < r.CheckRecall:
		return fmt.Errorf("%s finds %.3f of the nearest messages, less than %.2f", r.Name, r.Recall, r.CheckRecall)
	}
	return nil
}

// Times sums up the calls of one side, in milliseconds.
type Times struct {
	Calls     int     `json:"calls"`
	P50       float64 `json:"p50"`
	P95       float64 `json:"p95"`
	P99       float64 `json:"p99"`
	PerSecond float64 `json:"perSecond"`
}

// targets are what is expected of an operation; zero values expect nothing.
type targets struct {
	ratio, checkRatio, checkGrowth, checkRecall float64
	time                                        time.Duration
	// messages a call stores, and how many a second.
	messages          int
	messagesPerSecond float64
}

// pageTargets hold for every page, however deep and in however large a thread.
var pageTargets = targets{ratio: 3, checkRatio: 8, checkGrowth: 3, time: time.Millisecond}

// results gives those of all operations.
func results(operations []operation, samples []pair) []Result {
	var all []Result
	var small float64
	for i, operation := range operations {
		all = append(all, operation.result(samples[i]))
		if operation.small {
			small = all[i].HTTP.P50
		}
	}
	for i := range all {
		all[i].Growth = all[i].HTTP.P50 / small
	}
	return all
}

func (o operation) result(samples pair) Result {
	r := Result{
		Name: o.name, HTTP: summarise(samples.http), SQL: summarise(samples.sql),
		TargetRatio: o.targets.ratio, CheckRatio: o.targets.checkRatio, CheckGrowth: o.targets.checkGrowth,
		Recall: o.recall, CheckRecall: o.targets.checkRecall,
	}
	r.Ratio = r.HTTP.P50 / r.SQL.P50
	switch t := o.targets; {
	case t.time > 0:
		limit := milliseconds(t.time)
		r.Information = &Information{Unit: "ms", Target: limit, Measured: r.HTTP.P50, Met: r.HTTP.P50 <= limit}
	case t.messagesPerSecond > 0:
		rate := r.HTTP.PerSecond * float64(t.messages)
		r.Information = &Information{Unit: "messages/s", Target: t.messagesPerSecond, Measured: rate, Met: rate >= t.messagesPerSecond}
	}
	return r
}

func summarise(samples []time.Duration) Times {
	sorted := slices.Sorted(slices.Values(samples))
	var sum time.Duration
	for _, sample := range sorted {
		sum += sample
	}
	return Times{
		Calls: len(sorted), P50: percentile(sorted, 50), P95: percentile(sorted, 95), P99: percentile(sorted, 99),
		PerSecond: float64(len(sorted)) / sum.Seconds(),
	}
}

// percentile gives the least sample that so many in a hundred do not exceed.
func percentile(sorted []time.Duration, p float64) float64 {
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return milliseconds(sorted[max(rank, 1)-1])
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

func describe(ctx context.Context, conn *pgx.Conn) (Machine, error) {
	m := Machine{CPUs: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
	const query = `
		SELECT current_setting('server_version'), current_setting('fsync'),
		       current_setting('synchronous_commit'), current_setting('shared_buffers')`
	err := conn.QueryRow(ctx, query).Scan(&m.Postgres, &m.Fsync, &m.SynchronousCommit, &m.SharedBuffers)
	return m, err
}

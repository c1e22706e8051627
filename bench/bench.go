// Package bench measures the operations of the server over HTTP, each beside the
// bare SQL that it cannot do without.
//
// The two are called in turn, so that whatever else the machine does slows both,
// and the ratio of their medians tells what the server adds. Absolute times are
// those of the machine they were taken on.
package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pgrecall/pgrecall/bench/dataset"
	"github.com/pgrecall/pgrecall/db"
)

// Options say what to measure on.
type Options struct {
	// DatabaseURL is a server on which a database can be created. The benchmark
	// works in one of its own, which it drops, and does not touch the one named.
	DatabaseURL string
	// Database is the name of its own; one of chance where empty.
	Database string
	// Messages is about how many messages there are; at least
	// [dataset.MinMessages].
	Messages int
	// Duration is how long each operation is measured, in Rounds turns.
	Duration time.Duration
	Rounds   int
	// Progress, where not nil, hears how far a phase of the run is.
	Progress func(phase string, done, total int)
}

// warmUpCalls of an operation are not counted.
const warmUpCalls = 10

// Run loads the data, measures every operation and removes all it made.
func Run(ctx context.Context, options Options) (report Report, err error) {
	if options.Progress == nil {
		options.Progress = func(string, int, int) {}
	}
	shape := dataset.Scaled(options.Messages)
	database, err := db.CreateScratch(ctx, options.DatabaseURL, "pgrecall_bench_", options.Database)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, database.Drop(ctx)) }()
	if err := load(ctx, database.URL, shape, options.Progress); err != nil {
		return Report{}, err
	}
	rig, err := newRig(ctx, database.URL, shape)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, rig.close(context.WithoutCancel(ctx))) }()
	machine, err := describe(ctx, rig.conn)
	if err != nil {
		return Report{}, err
	}
	operations, err := rig.operations(ctx)
	if err != nil {
		return Report{}, err
	}
	samples, err := measure(ctx, operations, options)
	if err != nil {
		return Report{}, err
	}
	return Report{
		Machine: machine, Data: shape, Messages: shape.Messages(), Operations: results(operations, samples),
	}, nil
}

// pair holds the times of the two sides of an operation.
type pair struct{ http, sql []time.Duration }

// measure gives each operation its share of every round. Those that write come
// after all that read, which are then of the data that were loaded.
func measure(ctx context.Context, operations []operation, options Options) ([]pair, error) {
	samples := make([]pair, len(operations))
	rounds := max(1, options.Rounds)
	share := options.Duration / time.Duration(rounds)
	done, total := 0, rounds*len(operations)
	for _, writes := range []bool{false, true} {
		for round := range rounds {
			for i, operation := range operations {
				if operation.writes != writes {
					continue
				}
				if err := operation.round(ctx, &samples[i], round == 0, share); err != nil {
					return nil, fmt.Errorf("%s: %w", operation.name, err)
				}
				done++
				options.Progress("measure", done, total)
			}
		}
	}
	return samples, nil
}

func (o operation) round(ctx context.Context, into *pair, first bool, share time.Duration) error {
	if first {
		if err := o.turns(ctx, &pair{}, time.Now(), warmUpCalls); err != nil {
			return err
		}
	}
	return o.turns(ctx, into, time.Now().Add(share), 1)
}

// turns calls both sides in turn until a time, and at least so often.
func (o operation) turns(ctx context.Context, into *pair, until time.Time, least int) error {
	for i := 0; i < least || time.Now().Before(until); i++ {
		took, err := clock(ctx, o.http)
		if err != nil {
			return err
		}
		into.http = append(into.http, took)
		if took, err = clock(ctx, o.sql); err != nil {
			return err
		}
		into.sql = append(into.sql, took)
	}
	return nil
}

// call prepares one call, which is not measured, and gives what is.
type call func() func(context.Context) error

func clock(ctx context.Context, prepare call) (time.Duration, error) {
	do := prepare()
	start := time.Now()
	err := do(ctx)
	return time.Since(start), err
}

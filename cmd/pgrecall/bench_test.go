package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pgrecall/pgrecall/bench"
	"github.com/pgrecall/pgrecall/db/dbtest"
)

func TestBenchPrintsItsReportAndTellsHowFarItIs(t *testing.T) {
	t.Parallel()
	args := []string{"bench", "--database-url=" + dbtest.EmptyURL(t), "--scale=600", "--duration=10ms", "--rounds=1"}
	got := execute(t, args...)
	if got.code != exitOK {
		t.Fatalf("exit code %d: %s", got.code, got.log)
	}
	for _, want := range []string{"600 messages", "metadata filter", "hybrid, resource of", "recall 1.000", "clone 200", "ratio"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is missing: %s", want, got.out)
		}
	}
	for _, want := range []string{"load: 600 of 600\n", "embed: 480 of 480\n", "measure: 15 of 15\n"} {
		if !strings.Contains(got.log, want) {
			t.Errorf("%q is missing: %s", want, got.log)
		}
	}

	got = execute(t, append(args, "--json")...)
	var report bench.Report
	if err := json.Unmarshal([]byte(got.out), &report); err != nil || len(report.Operations) == 0 {
		t.Errorf("exit code %d, %v: %s", got.code, err, got.out)
	}
}

func TestBenchChecksRatiosAgainstTheirBounds(t *testing.T) {
	t.Parallel()
	report := bench.Report{Operations: []bench.Result{
		{Name: "in bounds", Ratio: 4, TargetRatio: 3, CheckRatio: 8},
		{Name: "without", Ratio: 100},
	}}
	if err := checkBench(report); err != nil {
		t.Errorf("%v, want none: a missed target is no failure", err)
	}
	report.Operations[0].Ratio = 9
	if err := checkBench(report); err == nil || !strings.Contains(err.Error(), "in bounds") || strings.Contains(err.Error(), "without") {
		t.Errorf("%v, want one that names the operation", err)
	}
}

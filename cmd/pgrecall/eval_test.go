package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/eval"
)

func TestEvalPrintsItsReportAndTellsHowFarItIs(t *testing.T) {
	t.Parallel()
	args := []string{"eval", "../../eval/testdata/samples.json", "--database-url=" + dbtest.EmptyURL(t)}
	got := execute(t, args...)
	if got.code != exitOK {
		t.Fatalf("exit code %d: %s", got.code, got.log)
	}
	for _, want := range []string{"2 conversations, 18 messages, 6 questions (2 left out", "characters/4", "±2 r@10", "any@10", "hybrid", "semantic", "lexical"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is missing: %s", want, got.out)
		}
	}
	for _, want := range []string{"load: 18 of 18\n", "lexical: 6 of 6\n"} {
		if !strings.Contains(got.log, want) {
			t.Errorf("%q is missing: %s", want, got.log)
		}
	}

	got = execute(t, append(args, "--json", "--embedder=none", "--modes=lexical", "--k=7")...)
	var report eval.Report
	if err := json.Unmarshal([]byte(got.out), &report); err != nil {
		t.Fatalf("exit code %d, %v: %s %s", got.code, err, got.out, got.log)
	}
	if _, ok := report.Modes[0].Scores[0].Hits.Recall["7"]; !ok || len(report.Modes) != 1 || report.K != 7 || report.Tokenizer != eval.Tokenizer {
		t.Errorf("the report is %s", got.out)
	}
}

func TestEvalRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.jsonl")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const url = "--database-url=postgres://127.0.0.1:1/none"
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"eval", url}, exitUsage, "file"},
		{[]string{"eval", "nowhere.json", url}, exitUsage, "nowhere.json"},
		{[]string{"eval", empty, url, "--k=201"}, exitUsage, "PGRECALL_K"},
		{[]string{"eval", empty, url, "--modes=magic"}, exitUsage, "--modes"},
		{[]string{"eval", empty, url, "--modes=hybrid,hybrid"}, exitUsage, "twice"},
		{[]string{"eval", empty, url, "--embedder=none"}, exitUsage, "PGRECALL_MODES"},
		{[]string{"eval", empty, url}, exitFailed, "empty.jsonl"},
	} {
		if got := execute(t, test.args...); got.code != test.code || !strings.Contains(got.log, test.says) {
			t.Errorf("%q: %d %s, want %d with %q", test.args, got.code, got.log, test.code, test.says)
		}
	}
}

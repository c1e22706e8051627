package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pgrecall/pgrecall/db"
	"github.com/pgrecall/pgrecall/db/dbtest"
)

// outcome is what a run of the program left.
type outcome struct {
	code     int
	out, log string
}

func execute(t *testing.T, args ...string) outcome {
	t.Helper()
	var out, log bytes.Buffer
	code := run(t.Context(), args, terminal{out: &out, log: &log})
	return outcome{code, out.String(), log.String()}
}

// No t.Parallel here: these tests set variables.
func TestWrongSettingsAreUsageErrorsThatNameTheVariable(t *testing.T) {
	for _, test := range []struct{ variable, value, flag string }{
		{"DATABASE_URL", "", "--database-url"},
		{"DATABASE_URL", "postgres://host:port/", "--database-url"},
		{"PGRECALL_ADDR", "8080", "--addr"},
		{"PGRECALL_ADDR", "127.0.0.1:99999", "--addr"},
		{"PGRECALL_INSECURE", "maybe", "--insecure"},
		{"PGRECALL_JWT_SECRET", "", "--jwt-secret"},
		{"PGRECALL_JWT_SECRET", "of 31 bytes, which is too short", "--jwt-secret"},
		{"PGRECALL_JWKS_URL", "", "--jwks-url"},
		{"PGRECALL_JWKS_URL", "example.com/jwks", "--jwks-url"},
		{"PGRECALL_JWT_CLAIM", "", "--jwt-claim"},
		{"PGRECALL_JWT_AUDIENCE", "us", "--jwt-audience"},
		{"PGRECALL_JWT_ISSUER", "", "--jwt-issuer"},
		{"PGRECALL_RATE_LIMIT", "0", "--rate-limit"},
		{"PGRECALL_RATE_BURST", "10", "--rate-burst"},
		{"PGRECALL_CORS_ORIGINS", "", "--cors-origins"},
		{"PGRECALL_CORS_ORIGINS", "https://*.example.com", "--cors-origins"},
		{"PGRECALL_CORS_ORIGINS", "https://example.com/", "--cors-origins"},
		{"PGRECALL_CORS_ORIGINS", "https://example.com,example.org", "--cors-origins"},
		{"PGRECALL_MIGRATE", "maybe", "--migrate"},
		{"PGRECALL_EMBEDDER", "cohere", "--embedder"},
		{"PGRECALL_EMBEDDER_URL", "http://localhost/v1", "--embedder-url"},
		{"PGRECALL_EMBEDDER_MODEL", "nomic-embed-text", "--embedder-model"},
		{"PGRECALL_EMBEDDER_DIMENSIONS", "0", "--embedder-dimensions"},
		{"PGRECALL_EMBEDDER_TIMEOUT", "10", "--embedder-timeout"},
		{"PGRECALL_EMBEDDER_TRIES", "0", "--embedder-tries"},
		{"PGRECALL_EMBEDDER", "", "--embedder"},
		{"PGRECALL_CHAT_URL", "http://localhost/v1", "--chat-model"},
		{"PGRECALL_CHAT_KEY", "key", "--chat-url"},
		{"PGRECALL_CHAT_MODEL", "small", "--chat-url"},
		{"PGRECALL_CHAT_TIMEOUT", "30", "--chat-timeout"},
		{"PGRECALL_CHAT_TRIES", "0", "--chat-tries"},
		{"PGRECALL_MAX_TOP_K", "0", "--max-top-k"},
		{"PGRECALL_MAX_QUESTION_BYTES", "1k", "--max-question-bytes"},
		{"PGRECALL_MAX_BODY_BYTES", "0", "--max-body-bytes"},
		{"PGRECALL_MAX_BODY_BYTES", "10MB", "--max-body-bytes"},
		{"PGRECALL_MAX_MESSAGES", "-1", "--max-messages"},
		{"PGRECALL_MAX_PER_PAGE", "3000000000", "--max-per-page"},
		{"PGRECALL_MAX_CONTENT_BYTES", "", "--max-content-bytes"},
		{"PGRECALL_MAX_REQUEST_TIME", "30", "--max-request-time"},
		{"PGRECALL_MAX_REQUEST_TIME", "0s", "--max-request-time"},
		{"PGRECALL_MAX_CONNECTIONS", "many", "--max-connections"},
	} {
		t.Run(test.variable+"="+test.value, func(t *testing.T) {
			t.Setenv("DATABASE_URL", "postgres://localhost/none")
			t.Setenv(test.variable, test.value)
			got := execute(t, "serve")
			if got.code != exitUsage {
				t.Errorf("exit code %d, want %d", got.code, exitUsage)
			}
			if strings.Contains(got.log, "of 31 bytes") {
				t.Errorf("the log has a secret: %s", got.log)
			}
			for _, name := range []string{test.variable, test.flag} {
				if !strings.Contains(got.log, name) {
					t.Errorf("%s is not named: %s", name, got.log)
				}
			}
		})
	}
}

func TestUnknownCommandsAndFlagsAreUsageErrors(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"dance"}, {"migrate"}, {"version", "--yaml"}, {"version", "now"}} {
		if got := execute(t, args...); got.code != exitUsage || got.log == "" {
			t.Errorf("pgrecall %q: exit code %d, %q, want %d with a message", args, got.code, got.log, exitUsage)
		}
	}
}

func TestAnUnreachableDatabaseFails(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"serve", "doctor", "migrate up", "migrate down", "migrate status"} {
		args := append(strings.Fields(command), "--database-url=postgres://user:secret@127.0.0.1:1/none")
		got := execute(t, args...)
		if got.code != exitFailed || got.log == "" || strings.Contains(got.log+got.out, "secret") {
			t.Errorf("%s: exit code %d, %q, %q, want %d with a message and no password", command, got.code, got.out, got.log, exitFailed)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if got := execute(t, "version"); got.code != exitOK || !strings.HasPrefix(got.out, "pgrecall ") {
		t.Errorf("version: %d %q", got.code, got.out)
	}
	decode(t, execute(t, "version", "--json"))
}

func decode(t *testing.T, got outcome) map[string]any {
	t.Helper()
	var result map[string]any
	if err := json.Unmarshal([]byte(got.out), &result); err != nil {
		t.Fatalf("%q is not JSON: %v", got.out, err)
	}
	return result
}

func TestMigrateThereAndBack(t *testing.T) {
	t.Parallel()
	flags := []string{"--json", "--database-url=" + dbtest.EmptyURL(t)}
	migrate := func(verb string) map[string]any {
		t.Helper()
		got := execute(t, append([]string{"migrate", verb}, flags...)...)
		if got.code != exitOK {
			t.Fatalf("migrate %s: %d %s", verb, got.code, got.log)
		}
		return decode(t, got)
	}
	count := func(list any) int { return len(list.([]any)) }

	pending := count(migrate("status")["pending"])
	if applied := count(migrate("up")["applied"]); pending == 0 || applied != pending {
		t.Errorf("up applied %d of %d pending migrations", applied, pending)
	}
	if applied := count(migrate("up")["applied"]); applied != 0 {
		t.Errorf("a second up applied %d migrations", applied)
	}
	if undone := migrate("down")["undone"]; undone == nil {
		t.Error("down took nothing back")
	}
	if status := migrate("status"); count(status["pending"]) != 1 {
		t.Errorf("after down the status is %v", status)
	}
	if got := execute(t, "serve", "--addr=127.0.0.1:0", flags[1]); got.code != exitFailed || !strings.Contains(got.log, "--migrate") {
		t.Errorf("serve on a schema that is behind: %d %s", got.code, got.log)
	}
}

func TestDoctorOnAFitDatabase(t *testing.T) {
	t.Parallel()
	url := "--database-url=" + dbtest.URL(t)
	got := execute(t, "doctor", "--json", url)
	if result := decode(t, got); got.code != exitOK || result["ok"] != true || len(result["checks"].([]any)) != 8 {
		t.Errorf("doctor: %d %s %s", got.code, got.out, got.log)
	}
	if text := execute(t, "doctor", url); text.code != exitOK || !strings.Contains(text.out, "PostgreSQL 1") {
		t.Errorf("doctor: %d %s %s", text.code, text.out, text.log)
	}
}

func TestDoctorSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ damage, check string }{
		"behind":  {`DELETE FROM recall.goose_db_version WHERE version_id = (SELECT max(version_id) FROM recall.goose_db_version)`, "schema"},
		"index":   {`UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'recall.threads_created_at_idx'::regclass`, "indexes"},
		"missing": {`DROP SCHEMA recall CASCADE`, "rights"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := dbtest.URL(t)
			if _, err := dbtest.Open(t, url).Exec(t.Context(), test.damage); err != nil {
				t.Fatal(err)
			}
			found := false
			for _, check := range db.Diagnose(t.Context(), url) {
				if check.Name == test.check {
					found = check.Verdict == db.Failed && check.Advice != ""
				}
			}
			if !found {
				t.Errorf("the check %q did not fail", test.check)
			}
			if got := execute(t, "doctor", "--database-url="+url); got.code != exitFailed {
				t.Errorf("doctor: exit code %d, want %d", got.code, exitFailed)
			}
		})
	}
}

func TestAnIndexForOtherVectorsIsRefused(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	if _, err := dbtest.Open(t, url).Exec(t.Context(), `UPDATE recall.embedding_indexes SET model = 'another'`); err != nil {
		t.Fatal(err)
	}
	serve := execute(t, "serve", "--addr=127.0.0.1:0", "--database-url="+url)
	for _, want := range []string{"PGRECALL_EMBEDDER (--embedder)", `"another"`, `"potion-base-8M"`} {
		if serve.code != exitFailed || !strings.Contains(serve.log, want) {
			t.Errorf("serve: %d %s, want %d with %s", serve.code, serve.log, exitFailed, want)
		}
	}
	doctor := execute(t, "doctor", "--database-url="+url)
	if doctor.code != exitFailed || !strings.Contains(doctor.out, "--embedder=none") {
		t.Errorf("doctor: %d %s", doctor.code, doctor.out)
	}
	if none := execute(t, "doctor", "--embedder=none", "--database-url="+url); none.code != exitOK {
		t.Errorf("doctor without an embedder: %d %s", none.code, none.out)
	}
}

package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// backlog gives what /readyz says is still to be done.
func (r remotely) backlog(t *testing.T) map[string]any {
	t.Helper()
	return must(t, r.Server, http.MethodGet, "/readyz", "")["backlog"].(map[string]any)
}

// jobs lists jobs.
func (r remotely) jobs(t *testing.T, query string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for _, job := range must(t, r.Server, http.MethodGet, "/api/memory/jobs"+query, "")["jobs"].([]any) {
		all = append(all, job.(map[string]any))
	}
	return all
}

// column gives a text of each job.
func column(jobs []map[string]any, name string) []string {
	values := []string{}
	for _, job := range jobs {
		values = append(values, job[name].(string))
	}
	return values
}

// kill gives resources a dead job each, one after another, and stops the workers.
func (r remotely) kill(t *testing.T, resources ...string) {
	t.Helper()
	stop := r.work(t, 1)
	r.stub.RejectTexts(poison)
	for i, resource := range resources {
		say(t, r.Server, resource, resource, poison+" of "+resource)
		eventually(t, func() bool { return r.backlog(t)["dead"] == float64(i+1) })
	}
	stop()
	r.stub.RejectTexts("")
}

// age makes the jobs of a resource an hour old.
func (r remotely) age(t *testing.T, resource string) {
	t.Helper()
	if _, err := r.pool.Exec(t.Context(),
		`UPDATE recall.river_job SET created_at = created_at - interval '1 hour' WHERE args ->> 'resourceId' = $1`, resource); err != nil {
		t.Fatal(err)
	}
}

// anHour says whether seconds are that much, and not twice as much.
func anHour(seconds any) bool {
	n, ok := seconds.(float64)
	return ok && n >= 3600 && n < 7200
}

func TestAFreshMemoryIsReadyAndHasNothingToDo(t *testing.T) {
	t.Parallel()
	r := newRemote(t, quiet())
	r.work(t, 1) // their own jobs do not count
	got := call(t, r.Server, http.MethodGet, "/readyz", "")
	if want := `{"status":"ready","backlog":{"waiting":0,"oldestSeconds":0,"dead":0}}`; string(got.body) != want {
		t.Errorf("%s, want %s", got.body, want)
	}
	if got := r.jobs(t, ""); len(got) != 0 {
		t.Errorf("jobs: %v", got)
	}
}

func TestReadinessTellsOfJobsThatWaitAndOfDeadOnes(t *testing.T) {
	t.Parallel()
	r := newRemote(t, quiet())
	r.kill(t, "sam")
	if backlog := r.backlog(t); backlog["waiting"] != 0.0 || backlog["oldestSeconds"] != 0.0 || backlog["dead"] != 1.0 {
		t.Errorf("with a dead job the backlog is %v", backlog)
	}
	say(t, r.Server, "kim", "kim", "one", "two") // both in one job
	say(t, r.Server, "alex", "alex", "three")
	r.age(t, "kim")
	backlog := r.backlog(t)
	if backlog["waiting"] != 2.0 || !anHour(backlog["oldestSeconds"]) || backlog["dead"] != 1.0 {
		t.Errorf("with an hour old one and a new one beside it the backlog is %v", backlog)
	}
}

func TestAJobSaysWhatIsToBeDone(t *testing.T) {
	t.Parallel()
	r := newRemote(t, quiet())
	say(t, r.Server, "sam", "garden", "one", "two")
	got := r.jobs(t, "")[0]
	for name, want := range map[string]string{
		"kind": "embed", "state": "waiting", "resourceId": "sam", "messageIds": "[garden1 garden2]", "lastError": "<nil>",
	} {
		if fmt.Sprint(got[name]) != want {
			t.Errorf("%s is %v, want %s", name, got[name], want)
		}
	}
	for _, name := range []string{"createdAt", "nextTryAt"} {
		if _, err := time.Parse("2006-01-02T15:04:05.000Z", got[name].(string)); err != nil {
			t.Error(name, err)
		}
	}
	if id, ok := got["id"].(string); !ok || id == "" || len(got) != 8 {
		t.Errorf("the job is %v", got)
	}
}

func TestADeadJobSaysWhyButNotWhatWasSaid(t *testing.T) {
	t.Parallel()
	r := newRemote(t, quiet())
	r.kill(t, "sam")
	got := r.jobs(t, "?dead=true")[0]
	reason, _ := got["lastError"].(string)
	if got["state"] != "dead" || !strings.Contains(reason, "status 400") || strings.Contains(reason, poison) {
		t.Errorf("the job is %v", got)
	}
}

func TestJobsAreListedNewestFirstPageByPage(t *testing.T) {
	t.Parallel()
	r := newRemote(t, quiet())
	for _, resource := range []string{"a", "b", "c", "d", "e"} {
		say(t, r.Server, resource, resource, "Hello")
	}
	if got := column(r.jobs(t, ""), "resourceId"); !slices.Equal(got, []string{"e", "d", "c", "b", "a"}) {
		t.Errorf("jobs of %q", got)
	}
	var walked []string
	query := "?perPage=2"
	for _, size := range []int{2, 2, 1, 0} {
		page := r.jobs(t, query)
		if len(page) != size {
			t.Fatalf("%s gives %d jobs, want %d", query, len(page), size)
		}
		walked = append(walked, column(page, "resourceId")...)
		if size > 0 {
			query = "?perPage=2&before=" + page[size-1]["id"].(string)
		}
	}
	if !slices.Equal(walked, []string{"e", "d", "c", "b", "a"}) {
		t.Errorf("the walk gives %q", walked)
	}
}

func TestDeadJobsAreListedApart(t *testing.T) {
	t.Parallel()
	r := newRemote(t, quiet())
	r.kill(t, "dead", "deader")
	say(t, r.Server, "alive", "alive", "Hello")
	for query, want := range map[string][]string{
		"": {"alive"}, "?dead=false": {"alive"}, "?dead=true": {"deader", "dead"}, "?dead=true&perPage=1": {"deader"},
	} {
		if got := column(r.jobs(t, query), "resourceId"); !slices.Equal(got, want) {
			t.Errorf("%q lists those of %q, want %q", query, got, want)
		}
	}
}

// retry gives how many jobs are tried again.
func (r remotely) retry(t *testing.T, body string) any {
	t.Helper()
	return must(t, r.Server, http.MethodPost, "/api/memory/jobs/retry", body)["retried"]
}

func TestARetriedJobGoesOnOnceTheServiceIsWell(t *testing.T) {
	t.Parallel()
	r := newRemote(t, quiet())
	r.kill(t, "sam", "kim")
	r.work(t, 1)
	if got := r.find(t, "Sam"); len(got) != 0 {
		t.Fatalf("found: %q", got)
	}
	if got := r.retry(t, `{}`); got != 2.0 {
		t.Errorf("retried %v, want both", got)
	}
	eventually(t, func() bool { return slices.Equal(r.find(t, "Sam"), []string{"sam1"}) })
	eventually(t, func() bool { return r.backlog(t)["waiting"] == 0.0 })
	if backlog := r.backlog(t); backlog["dead"] != 0.0 {
		t.Errorf("afterwards the backlog is %v", backlog)
	}
}

func TestARetriedJobHasAllItsTriesAgain(t *testing.T) {
	t.Parallel()
	r := newRemote(t, quiet())
	r.kill(t, "sam")
	once := r.stub.Requests() // of one try
	r.stub.RejectTexts(poison)
	r.work(t, 2)
	if got := r.retry(t, `{}`); got != 1.0 {
		t.Errorf("retried %v", got)
	}
	eventually(t, func() bool { return r.backlog(t)["dead"] == 1.0 })
	if twice := r.stub.Requests() - once; twice != 2*once {
		t.Errorf("dead again after %d requests, want 2 tries of %d", twice, once)
	}
}

func TestOnlyTheDeadJobsThatAreNamedAreRetried(t *testing.T) {
	t.Parallel()
	r := newRemote(t, quiet())
	r.kill(t, "a", "b", "c")
	say(t, r.Server, "alive", "alive", "Hello")
	dead, alive := column(r.jobs(t, "?dead=true"), "id"), r.jobs(t, "")
	if got := r.retry(t, `{"ids":[`+quote(alive[0]["id"].(string))+`,"9223372036854775807"]}`); got != 0.0 {
		t.Errorf("retried %v of one that is not dead and one that is not there", got)
	}
	if got := r.jobs(t, ""); fmt.Sprint(got) != fmt.Sprint(alive) {
		t.Errorf("the job that is not dead became %v, was %v", got, alive)
	}
	if got := r.retry(t, `{"ids":[`+quote(dead[0])+`,`+quote(dead[2])+`]}`); got != 2.0 {
		t.Errorf("retried %v, want 2", got)
	}
	if got := column(r.jobs(t, "?dead=true"), "resourceId"); !slices.Equal(got, []string{"b"}) {
		t.Errorf("still dead are those of %q", got)
	}
	for _, job := range r.jobs(t, "") {
		if job["state"] != "retrying" && job["resourceId"] != "alive" {
			t.Errorf("the job is %v", job)
		}
	}
}

package server_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/server"
)

// probe is a request of a caller who reaches mine-resource. $T, $M, $R, $J and $C
// stand for a thread, a message, a resource, a job and a cursor: those of their-resource
// one time, and such as do not exist another.
type probe struct{ target, body string }

// probes has for each route how it can be asked for what is another's.
var probes = map[string][]probe{
	"GET /healthz":      {{"/healthz", ""}},
	"HEAD /healthz":     {{"/healthz", ""}},
	"GET /readyz":       {{"/readyz", ""}},
	"HEAD /readyz":      {{"/readyz", ""}},
	"GET /openapi.yaml": {{"/openapi.yaml", ""}},

	"GET /api/memory/threads": {
		{"/threads?resourceId=$R", ""},
		{"/threads?resourceId=$R&perPage=false&orderBy=updatedAt", ""},
		{"/threads?resourceId=$R&metadata=" + url.QueryEscape(`{"of":"them"}`), ""},
	},
	"POST /api/memory/threads": {
		{"/threads", `{"resourceId":"$R"}`},
		{"/threads", `{"resourceId":"$R","threadId":"$T"}`},
		{"/threads", `{"resourceId":"$R","threadId":"mine-thread"}`},
	},
	"GET /api/memory/threads/:threadId":    probesOfThread("", ""),
	"PATCH /api/memory/threads/:threadId":  append(probesOfThread("", `{"title":"x"}`), probesOfThread("", `{}`)...),
	"DELETE /api/memory/threads/:threadId": probesOfThread("", ""),
	"POST /api/memory/threads/:threadId/transfer": append(probesOfThread("/transfer", `{"resourceId":"mine-resource"}`),
		probe{"/threads/mine-thread/transfer", `{"resourceId":"$R"}`}, probe{"/threads/$T/transfer", `{"resourceId":"$R"}`}),
	"POST /api/memory/threads/:threadId/clone": append(probesOfThread("/clone", `{}`),
		probe{"/threads/$T/clone", `{"resourceId":"mine-resource"}`},
		probe{"/threads/$T/clone", `{"resourceId":"mine-resource","options":{"messageFilter":{"messageIds":["$M"]}}}`},
		probe{"/threads/mine-thread/clone", `{"resourceId":"$R"}`}),
	"GET /api/memory/threads/:threadId/clones":        probesOfThread("/clones", ""),
	"GET /api/memory/threads/:threadId/source":        probesOfThread("/source", ""),
	"GET /api/memory/threads/:threadId/clone-history": probesOfThread("/clone-history", ""),

	"GET /api/memory/threads/:threadId/working-memory":             probesOfMemory("/working-memory", ""),
	"GET /api/memory/threads/:threadId/working-memory/versions":    probesOfMemory("/working-memory/versions", ""),
	"GET /api/memory/threads/:threadId/working-memory/instruction": probesOfMemory("/working-memory/instruction", ""),
	"GET /api/memory/threads/:threadId/working-memory/tool":        probesOfMemory("/working-memory/tool", ""),
	"POST /api/memory/threads/:threadId/working-memory": append(probesOfThread("/working-memory", `{"workingMemory":"x"}`),
		probe{"/threads/$T/working-memory", `{"workingMemory":"x","resourceId":"$R"}`},
		probe{"/threads/$T/working-memory", `{"workingMemory":"x","memoryConfig":{"workingMemory":{"scope":"thread"}}}`}),
	"POST /api/memory/threads/:threadId/working-memory/restore": probesOfThread("/working-memory/restore", `{"version":1}`),

	"POST /api/memory/save-messages": {
		{"/save-messages", savingAs("$T", "$R", "new", false)},
		{"/save-messages", savingAs("$T", "$R", "$M", false)},
		{"/save-messages", savingAs("$T", "$R", "new", true)},
		{"/save-messages", savingAs("$T", "mine-resource", "new", false)},
		{"/save-messages", savingAs("mine-thread", "$R", "new", false)},
		{"/save-messages", savingAs("mine-thread", "$R", "new", true)},
		{"/save-messages?wait=embedded", savingAs("$T", "$R", "$M", false)},
	},
	"PATCH /api/memory/messages": {
		{"/messages", `{"messages":[{"id":"$M","role":"system"}]}`},
		{"/messages?resourceId=$R", `{"messages":[{"id":"$M","role":"system"}]}`},
		{"/messages?resourceId=mine-resource", `{"messages":[{"id":"$M","role":"system"}]}`},
		{"/messages", `{"messages":[{"id":"mine-1","role":"system"},{"id":"$M","role":"system"}]}`},
		{"/messages?resourceId=$R", `{"messages":[{"id":"mine-1","role":"system"}]}`},
	},
	"POST /api/memory/messages/delete": {
		{"/messages/delete", `{"messageIds":"$M"}`},
		{"/messages/delete", `{"messageIds":[{"id":"$M"}]}`},
		{"/messages/delete?resourceId=$R", `{"messageIds":["$M","mine-1"]}`},
	},
	"DELETE /api/memory/threads/:threadId/messages": probesOfThread("/messages", ""),

	"GET /api/memory/threads/:threadId/messages": slices.Concat(probesOfThread("/messages", ""), probesOfThread("/messages?agentId=a", ""), []probe{
		{"/threads/$T/messages?include=" + url.QueryEscape(`[{"id":"`) + "$M" + url.QueryEscape(`"}]`), ""},
		{"/threads/mine-thread/messages?agentId=a&perPage=0&include=" + url.QueryEscape(`[{"id":"`) + "$M" +
			url.QueryEscape(`","threadId":"`) + "$T" + url.QueryEscape(`","withPreviousMessages":2,"withNextMessages":2}]`), ""},
		{"/threads/mine-thread/messages?cursor=$C", ""},
		{"/threads/$T/messages?cursor=$C", ""},
		{"/threads/$T/messages?filter=" + url.QueryEscape(`{"roles":["user"]}`), ""},
	}),
	"POST /api/memory/recall": {
		{"/recall", `{"threadId":"$T"}`},
		{"/recall", `{"threadId":"$T","resourceId":"$R"}`},
		{"/recall", `{"threadId":"$T","resourceId":"mine-resource"}`},
		{"/recall", `{"threadId":"mine-thread","resourceId":"$R"}`},
		{"/recall", `{"resourceId":"$R"}`},
		{"/recall", `{"resourceId":"$R","perPage":false,"filter":{"metadata":{"of":"them"}}}`},
		{"/recall", `{"resourceId":"$R","filter":{"where":{"of":{"$exists":true}}}}`},
		{"/recall", `{"threadId":"$T","filter":{"roles":["user"]},"keepToolPairs":true}`},
		{"/recall", `{"threadId":"mine-thread","include":[{"id":"$M","threadId":"$T","withPreviousMessages":2}]}`},
		{"/recall", `{"threadId":"mine-thread","include":[{"id":"$M"},{"id":"mine-1"}]}`},
		{"/recall", `{"resourceId":"mine-resource","perPage":5,"include":[{"id":"$M","threadId":"$T","withNextMessages":2}]}`},
		{"/recall", `{"resourceId":"$R","include":[{"id":"$M"}]}`},
		{"/recall", `{"threadId":"mine-thread","include":[{"id":"$M","threadId":"$T"}],"vectorSearchString":"the secret"}`},
		{"/recall", `{"threadId":"$T","vectorSearchString":"the secret","explain":true}`},
		{"/recall", `{"resourceId":"$R","vectorSearchString":"the secret","explain":true}`},
		{"/recall", `{"threadId":"mine-thread","resourceId":"$R","vectorSearchString":"the secret","explain":true}`},
		{"/recall", `{"threadId":"$T","vectorSearchString":"the secret","threadConfig":{"semanticRecall":{"scope":"thread","filter":{"of":"them"}}}}`},
		{"/recall", `{"threadId":"mine-thread","cursor":"$C","orderBy":{"direction":"ASC"}}`},
		{"/recall", `{"resourceId":"$R","cursor":"$C","orderBy":{"direction":"ASC"}}`},
	},
	"GET /api/memory/search": {
		{"/search?searchQuery=secret&resourceId=$R", ""},
		{"/search?searchQuery=secret&resourceId=$R&threadId=$T", ""},
		{"/search?searchQuery=secret&resourceId=mine-resource&threadId=$T", ""},
		{"/search?searchQuery=secret&resourceId=$R&threadId=mine-thread", ""},
	},
	"POST /api/memory/context": probesOfTurn("/context", `"query":"the secret","semanticRecall":true,"workingMemory":{"enabled":true}`),
	"POST /api/memory/processors/semantic-recall/input": probesOfTurn("/processors/semantic-recall/input",
		`"messages":[{"id":"now","role":"user","content":"the secret"}]`),
	"POST /api/memory/processors/working-memory/input":   probesOfTurn("/processors/working-memory/input", `"config":{"workingMemory":{"enabled":true}}`),
	"POST /api/memory/processors/message-history/input":  probesOfTurn("/processors/message-history/input", `"messages":[]`),
	"POST /api/memory/processors/semantic-recall/output": probesOfOutput("/processors/semantic-recall/output"),
	"POST /api/memory/processors/working-memory/output":  probesOfOutput("/processors/working-memory/output"),
	"POST /api/memory/processors/message-history/output": probesOfOutput("/processors/message-history/output"),

	"GET /api/memory/status": {{"/status?agentId=a&resourceId=$R&threadId=$T", ""}},
	"GET /api/memory/config": {{"/config?agentId=a", ""}},
	"PUT /api/memory/config": {{"/config?agentId=a", `{"config":{"lastMessages":1}}`}},

	"GET /api/memory/resources/:resourceId":    {{"/resources/$R", ""}},
	"DELETE /api/memory/resources/:resourceId": {{"/resources/$R", ""}},

	"GET /api/memory/jobs":        {{"/jobs", ""}, {"/jobs?dead=true", ""}},
	"POST /api/memory/jobs/retry": {{"/jobs/retry", `{"ids":["$J"]}`}},
}

// probesOfThread asks for what is of a thread, with and without its owner.
func probesOfThread(rest, body string) []probe {
	var all []probe
	for _, target := range []string{
		"/threads/$T", "/threads/$T?resourceId=$R", "/threads/$T?resourceId=mine-resource", "/threads/mine-thread?resourceId=$R",
	} {
		path, query, _ := strings.Cut(target, "?")
		end, more, _ := strings.Cut(rest, "?")
		all = append(all, probe{path + end + "?" + query + "&" + more, body})
	}
	return all
}

func probesOfMemory(rest, body string) []probe {
	return append(probesOfThread(rest, body), probesOfThread(rest+"?memoryConfig="+url.QueryEscape(`{"workingMemory":{"scope":"thread"}}`), body)...)
}

// probesOfTurn asks for what goes before a turn.
func probesOfTurn(target, members string) []probe {
	return []probe{
		{target, `{"threadId":"$T",` + members + `}`},
		{target, `{"threadId":"$T","resourceId":"$R",` + members + `}`},
		{target, `{"threadId":"$T","resourceId":"mine-resource",` + members + `}`},
		{target, `{"threadId":"mine-thread","resourceId":"$R",` + members + `}`},
	}
}

// probesOfOutput saves a turn.
func probesOfOutput(target string) []probe {
	const members = `"messages":[{"id":"$M","role":"user","content":"x"}]`
	return []probe{
		{target, `{"threadId":"$T","resourceId":"$R",` + members + `}`},
		{target, `{"threadId":"mine-thread","resourceId":"$R",` + members + `}`},
	}
}

func savingAs(thread, resource, id string, create bool) string {
	return fmt.Sprintf(`{"createThread":%t,"messages":[{"id":%q,"threadId":%q,"resourceId":%q,"role":"user","content":"x"}]}`,
		create, id, thread, resource)
}

// of puts what is meant into a probe.
func (p probe) of(whose, job string) (target, body string) {
	cursor := base64.RawURLEncoding.EncodeToString([]byte(`{"d":"ASC","t":1000000000000,"i":"` + whose + `-thread","s":1}`))
	fill := strings.NewReplacer("$T", whose+"-thread", "$M", whose+"-1", "$R", whose+"-resource", "$J", job, "$C", cursor)
	target = p.target
	if !slices.Contains([]string{"/healthz", "/readyz", "/openapi.yaml"}, target) {
		target = "/api/memory" + target
	}
	return strings.TrimRight(fill.Replace(target), "?&"), fill.Replace(p.body)
}

// twoUsers is a database with what two users have.
type twoUsers struct {
	pool   *pgxpool.Pool
	memory *recall.Memory
	job    string // a dead one of theirs
}

func newTwoUsers(t *testing.T) twoUsers {
	t.Helper()
	pool := dbtest.New(t)
	d := twoUsers{pool: pool, memory: recall.New(pool, recall.DefaultLimits(), recall.WithEmbedder(embed.Static{}))}
	s := d.serve(t, recall.NewAPIKey{})
	must(t, s, http.MethodPut, "/api/memory/config?agentId=a", `{"config":{"lastMessages":3}}`)
	for _, whose := range []string{"their", "mine"} {
		resource, thread := whose+"-resource", whose+"-thread"
		must(t, s, http.MethodPost, "/api/memory/threads",
			`{"threadId":"`+thread+`","resourceId":"`+resource+`","title":"Title","metadata":{"of":"them"}}`)
		for i := 1; i <= 3; i++ {
			must(t, s, http.MethodPost, "/api/memory/save-messages", fmt.Sprintf(
				`{"messages":[{"id":"%s-%d","threadId":"%s","resourceId":"%s","role":"user","createdAt":"2026-03-01T10:00:0%dZ",
					"content":{"format":2,"parts":[{"type":"text","text":"the secret of %s"}],"metadata":{"of":"them"}}}]}`,
				whose, i, thread, resource, i, whose))
		}
		for _, scope := range []string{"resource", "thread"} {
			must(t, s, http.MethodPost, "/api/memory/threads/"+thread+"/working-memory",
				`{"workingMemory":"what `+whose+` like","memoryConfig":{"workingMemory":{"scope":"`+scope+`"}}}`)
		}
		require.NoError(t, pool.QueryRow(t.Context(), `
			INSERT INTO recall.river_job (kind, queue, args, max_attempts, state, finalized_at)
			VALUES ('embed', 'embed_other', jsonb_build_object('resourceId', $1::text, 'messageIds', jsonb_build_array($2::text)), 5, 'discarded', now())
			RETURNING id::text`, resource, whose+"-1").Scan(&d.job))
	}
	require.NoError(t, pool.QueryRow(t.Context(),
		`SELECT id::text FROM recall.river_job WHERE args ->> 'resourceId' = 'their-resource'`).Scan(&d.job))
	must(t, s, http.MethodPost, "/api/memory/threads/their-thread/clone", `{"newThreadId":"mine-copy","resourceId":"mine-resource"}`)
	must(t, s, http.MethodPost, "/api/memory/threads/mine-thread/clone", `{"newThreadId":"their-copy","resourceId":"their-resource"}`)
	return d
}

// serve gives the server as the holder of a key has it; without one all callers are
// the operator.
func (d twoUsers) serve(t *testing.T, key recall.NewAPIKey) *httptest.Server {
	t.Helper()
	config := quiet()
	if key == (recall.NewAPIKey{}) {
		s := httptest.NewServer(server.New(d.memory, config))
		t.Cleanup(s.Close)
		return s
	}
	secret, _, err := d.memory.CreateAPIKey(t.Context(), key)
	require.NoError(t, err)
	config.Keys = recall.NewKeyring(d.memory)
	t.Cleanup(config.Keys.Close)
	s := httptest.NewServer(server.New(d.memory, config))
	t.Cleanup(s.Close)
	s.Client().Transport = showing{s.Client().Transport, secret}
	return s
}

// showing sends requests with a key.
type showing struct {
	http.RoundTripper
	key string
}

// RoundTrip sends a request.
func (s showing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+s.key)
	return s.RoundTripper.RoundTrip(r)
}

// contents is a sum of every table.
func (d twoUsers) contents(t *testing.T) map[string]string {
	t.Helper()
	var tables []string
	require.NoError(t, d.pool.QueryRow(t.Context(), `
		SELECT array_agg(c.relname::text ORDER BY c.relname) FROM pg_class AS c
		WHERE c.relnamespace = 'recall'::regnamespace AND c.relkind IN ('r', 'p')`).Scan(&tables))
	sums := make(map[string]string)
	for _, table := range tables {
		var sum string
		require.NoError(t, d.pool.QueryRow(t.Context(),
			// When a key was used is no matter of what it was used for.
			`SELECT coalesce(md5(string_agg((to_jsonb(h) - 'last_used_at')::text, '|' ORDER BY h::text)), '') FROM recall."`+table+`" AS h`).Scan(&sum))
		sums[table] = sum
	}
	return sums
}

// boundKeys reach what is mine and nothing else.
var boundKeys = map[string]recall.NewAPIKey{
	"by resource":            {Resource: "mine-resource"},
	"by prefix":              {Prefix: "mine-"},
	"by resource, read-only": {Resource: "mine-resource", ReadOnly: true},
}

func TestWhatIsAnothersIsAsIfItDidNotExist(t *testing.T) {
	t.Parallel()
	routes := detached(quiet()).Routes()
	known := make(map[string]bool)
	for _, route := range routes {
		known[route.Method+" "+route.Path] = true
		if probes[route.Method+" "+route.Path] == nil {
			t.Errorf("%s %s: say in probes how it can be asked for what is another's", route.Method, route.Path)
		}
	}
	for name, key := range boundKeys {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newTwoUsers(t)
			s := d.serve(t, key)
			before := d.contents(t)
			for route, list := range probes {
				require.True(t, known[route], "there is no route %s", route)
				method, _, _ := strings.Cut(route, " ")
				for _, p := range list {
					theirs, absent := d.ask(t, s, method, p, "their"), d.ask(t, s, method, p, "absent")
					if theirs != absent {
						t.Errorf("%s %s: theirs\n%s\nbut what does not exist\n%s", route, p, theirs, absent)
					}
					if strings.HasPrefix(theirs, "400") || strings.HasPrefix(theirs, "5") {
						t.Errorf("%s %s: %s", route, p, theirs)
					}
					require.Equal(t, before, d.contents(t), "%s %s changed something", route, p)
				}
			}
		})
	}
}

// ask sends a probe and gives the answer without whose it is.
func (d twoUsers) ask(t *testing.T, s *httptest.Server, method string, p probe, whose string) string {
	t.Helper()
	job := d.job
	if whose == "absent" {
		job = "1000000"
	}
	target, body := p.of(whose, job)
	got := call(t, s, method, target, body)
	return fmt.Sprintf("%d %s %s", got.status, got.header.Get("ETag"), strings.ReplaceAll(string(got.body), whose+"-", "x-"))
}

// The probes would prove nothing if they found nothing of one's own.
func TestABoundCallerHasAllThatIsHis(t *testing.T) {
	t.Parallel()
	for name, key := range boundKeys {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newTwoUsers(t)
			bound, all := d.serve(t, key), d.serve(t, recall.NewAPIKey{})
			for route, list := range probes {
				method, _, _ := strings.Cut(route, " ")
				if method != http.MethodGet && !slices.Contains([]string{"POST /api/memory/recall", "POST /api/memory/context"}, route) {
					continue
				}
				for _, p := range list {
					if strings.Contains(route, "/jobs") || strings.Contains(route, "/readyz") {
						continue
					}
					if got, want := d.ask(t, bound, method, p, "mine"), d.ask(t, all, method, p, "mine"); got != want {
						t.Errorf("%s %s: %s, want as without a bound %s", route, p, got, want)
					}
				}
			}
		})
	}
}

// An id names one thing among all there is, so one that is taken cannot be given
// again: the one trace of what is another's.
func TestAnIDThatAnotherHasIsTakenAndNoMoreIsSaid(t *testing.T) {
	t.Parallel()
	const (
		thread  = `{"error":"A thread with this id exists already"}`
		message = `{"error":"A message with this id exists already in another thread","issues":[{"field":"messages.0.id","message":"is the id of a message in another thread"}]}`
	)
	d := newTwoUsers(t)
	for name, key := range boundKeys {
		if key.ReadOnly {
			continue
		}
		s := d.serve(t, key)
		before := d.contents(t)
		for _, test := range []struct{ target, body, want string }{
			{"/threads", `{"threadId":"their-thread","resourceId":"mine-resource"}`, thread},
			{"/threads/mine-thread/clone", `{"newThreadId":"their-thread"}`, thread},
			{"/save-messages", savingAs("their-thread", "mine-resource", "new", true), thread},
			{"/processors/message-history/output", `{"threadId":"their-thread","resourceId":"mine-resource","messages":[{"id":"new","role":"user","content":"x"}]}`, thread},
			{"/save-messages", savingAs("mine-thread", "mine-resource", "their-1", false), message},
			{"/save-messages", savingAs("mine-new", "mine-resource", "their-1", true), message},
		} {
			got := call(t, s, http.MethodPost, "/api/memory"+test.target, test.body)
			if got.status != http.StatusConflict || string(got.body) != test.want {
				t.Errorf("%s: %s: %d %s, want 409 %s", name, test.target, got.status, got.body, test.want)
			}
		}
		require.Equal(t, before, d.contents(t))
	}
}

func TestOfMixedIDsOnesOwnAreDone(t *testing.T) {
	t.Parallel()
	d := newTwoUsers(t)
	s := d.serve(t, boundKeys["by prefix"])
	if got := must(t, s, http.MethodPost, "/api/memory/messages/delete", `{"messageIds":["their-1","mine-3","absent-1"]}`)["message"]; got != "1 message deleted successfully" {
		t.Error(got)
	}
	cloned := must(t, s, http.MethodPost, "/api/memory/threads/mine-thread/clone", `{"options":{"messageFilter":{"messageIds":["their-1","mine-1"]}}}`)
	if got := cloned["clonedMessages"]; len(got.([]any)) != 1 {
		t.Errorf("cloned %v, want one message", got)
	}
	must(t, s, http.MethodDelete, "/api/memory/resources/mine-resource", "")
	if got := messageIDs(must(t, d.serve(t, recall.NewAPIKey{}), http.MethodGet, "/api/memory/threads/their-thread/messages", "")); len(got) != 3 {
		t.Errorf("they have %v, want all three", got)
	}
}

func TestAListThatNamesNoResourceIsOfOnesOwn(t *testing.T) {
	t.Parallel()
	d := newTwoUsers(t)
	for name, key := range boundKeys {
		got := must(t, d.serve(t, key), http.MethodGet, "/api/memory/threads?orderBy=createdAt&sortDirection=ASC", "")
		var ids []any
		for _, thread := range got["threads"].([]any) {
			ids = append(ids, thread.(map[string]any)["id"])
		}
		if !slices.Equal(ids, []any{"mine-thread", "mine-copy"}) || got["total"] != 2.0 {
			t.Errorf("%s: %v of %v, want one's own", name, ids, got["total"])
		}
	}
}

func TestTheResourceThatACallerIsBoundToIsTheOneThatIsMeant(t *testing.T) {
	t.Parallel()
	d := newTwoUsers(t)
	s := d.serve(t, boundKeys["by resource"])
	if got := must(t, s, http.MethodGet, "/api/memory/threads/new/working-memory", "")["workingMemory"]; got != "what mine like" {
		t.Errorf("a thread that is not there yet has the working memory %v", got)
	}
	found := must(t, s, http.MethodPost, "/api/memory/context", `{"threadId":"new","query":"the secret","semanticRecall":true}`)
	if got := found["messages"].([]any); len(got) != 1 || !strings.Contains(fmt.Sprint(got), "the secret of mine") {
		t.Errorf("before a first turn there is %v", got)
	}
}

// The source of one's copy may be another's: it ends there, as if it were deleted.
func TestTheSourceOfACopyIsAsGoneWhereItIsAnothers(t *testing.T) {
	t.Parallel()
	d := newTwoUsers(t)
	s := d.serve(t, boundKeys["by prefix"])
	before := []string{}
	for _, rest := range []string{"/source", "/clone-history", "/clones"} {
		before = append(before, string(call(t, s, http.MethodGet, "/api/memory/threads/mine-copy"+rest, "").body))
	}
	must(t, d.serve(t, recall.NewAPIKey{}), http.MethodDelete, "/api/memory/threads/their-thread", "")
	for i, rest := range []string{"/source", "/clone-history", "/clones"} {
		if got := string(call(t, s, http.MethodGet, "/api/memory/threads/mine-copy"+rest, "").body); got != before[i] || strings.Contains(before[i], `"resourceId":"their-`) {
			t.Errorf("%s: %s, and once the source is gone %s", rest, before[i], got)
		}
	}
}

// What one names under a key is no trace of another.
func TestAnAnswerIsKeptAsOfOnesOwnResourcesOnly(t *testing.T) {
	t.Parallel()
	d := newTwoUsers(t)
	s := d.serve(t, boundKeys["by prefix"])
	keyed(t, s, "k", "/api/memory/recall",
		`{"threadId":"mine-thread","include":[{"id":"their-1","threadId":"their-thread"}]}`).wantFirst(t)
	keyed(t, s, "k2", "/api/memory/recall", `{"resourceId":"nobody"}`).wantFirst(t)
	var resources string
	require.NoError(t, d.pool.QueryRow(t.Context(), `SELECT string_agg(k.resource_ids::text, '' ORDER BY k.key) FROM recall.idempotency_keys AS k`).Scan(&resources))
	require.Equal(t, "{mine-resource}{}", resources)
}

// Resources whose ids look alike, or are read as something else somewhere, are not
// each other, in paths, queries, bodies and keys.
func TestResourcesAreToldApartToTheByte(t *testing.T) {
	t.Parallel()
	d := newTwoUsers(t)
	s := d.serve(t, recall.NewAPIKey{})
	ids := []string{
		"a", "A", "a:", "a:b", "a ", " a", "a%", "a_", "%", "_", "a'b", `a"b`, `a\b`, "a/b", "../a", "..", ".", "%2e%2e", "%2F", "a+b", "a b", "a&b", "a?b#c",
		"\u00e9", "e\u0301", "日本", "😀", "a\nb", `{"",""}`, "NULL", strings.Repeat("x", 512), strings.Repeat("x", 511),
	}
	for i, id := range ids {
		must(t, s, http.MethodPost, "/api/memory/threads", fmt.Sprintf(`{"threadId":"t%d","resourceId":%s}`, i, quote(id)))
	}
	for i, id := range ids {
		for name, s := range map[string]*httptest.Server{"no key": s, "a key": d.serve(t, recall.NewAPIKey{Resource: id})} {
			listed := must(t, s, http.MethodGet, "/api/memory/threads?resourceId="+url.QueryEscape(id), "")["threads"].([]any)
			if len(listed) != 1 || listed[0].(map[string]any)["resourceId"] != id || listed[0].(map[string]any)["id"] != fmt.Sprintf("t%d", i) {
				t.Errorf("%q with %s has the threads %v", id, name, listed)
			}
			held := must(t, s, http.MethodGet, "/api/memory/resources/"+segment(id), "")
			if held["resourceId"] != id || held["counts"].(map[string]any)["threads"] != 1.0 {
				t.Errorf("of %q with %s is held %v", id, name, held)
			}
			must(t, s, http.MethodPost, "/api/memory/recall", fmt.Sprintf(`{"threadId":"t%d","resourceId":%s}`, i, quote(id)))
		}
		own := d.serve(t, recall.NewAPIKey{Resource: id})
		if got := must(t, own, http.MethodGet, "/api/memory/threads", "")["total"]; got != 1.0 {
			t.Errorf("a key of %q reaches %v threads", id, got)
		}
		other := (i + 1) % len(ids)
		if got := call(t, own, http.MethodGet, fmt.Sprintf("/api/memory/threads/t%d", other), ""); got.status != http.StatusNotFound {
			t.Errorf("a key of %q gets %d for the thread of %q", id, got.status, ids[other])
		}
	}
}

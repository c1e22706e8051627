package server_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/server"
)

// The tests here run without a database. So a refusal also shows that nothing
// was changed: a request that went further would be a 500.

const bodyLimit = 64 << 10

func small() server.Config {
	config := quiet()
	config.BodyBytes = bodyLimit
	return config
}

// idInPath finds the ids in the paths of routes.
var idInPath = regexp.MustCompile(`:(threadId|resourceId)\b`)

// eachRoute calls visit with every route of the API and its path for an id, which
// must be escaped.
func eachRoute(e *echo.Echo, id string, visit func(method, path string)) {
	for _, route := range e.Routes() {
		if strings.HasPrefix(route.Path, "/api/") {
			visit(route.Method, idInPath.ReplaceAllLiteralString(route.Path, id))
		}
	}
}

func takesBody(method string) bool {
	return method == http.MethodPost || method == http.MethodPatch || method == http.MethodPut
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var buffer bytes.Buffer
	writer := gzip.NewWriter(&buffer)
	if _, err := writer.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.String()
}

func TestEveryRouteRefusesABadBody(t *testing.T) {
	t.Parallel()
	const plain, packed = "", "gzip"
	deep := strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70)
	cases := []struct {
		name        string
		body        string
		contentType string
		encoding    string
		status      int
		field       string
	}{
		{"empty", " ", echo.MIMEApplicationJSON, plain, 400, "body"},
		{"not JSON", "{bad", echo.MIMEApplicationJSON, plain, 400, "body"},
		{"cut short", `{"a":`, echo.MIMEApplicationJSON, plain, 400, "a"},
		{"two values", "{}{}", echo.MIMEApplicationJSON, plain, 400, "body"},
		{"array", "[]", echo.MIMEApplicationJSON, plain, 400, "body"},
		{"string", `"x"`, echo.MIMEApplicationJSON, plain, 400, "body"},
		{"null", "null", echo.MIMEApplicationJSON, plain, 400, "body"},
		{"duplicate key", `{"a":{"b":1,"b":2}}`, echo.MIMEApplicationJSON, plain, 400, "a.b"},
		{"duplicate escaped key", `{"a":1,"\u0061":2}`, echo.MIMEApplicationJSON, plain, 400, "a"},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", echo.MIMEApplicationJSON, plain, 400, "a"},
		{"huge number", `{"a":[1e130000]}`, echo.MIMEApplicationJSON, plain, 400, "a.0"},
		{"many digits", `{"a":` + strings.Repeat("1", 101) + `}`, echo.MIMEApplicationJSON, plain, 400, "a"},
		{"too deep", deep, echo.MIMEApplicationJSON, plain, 400, strings.Repeat("a.", 66) + "a"},
		{"NUL", `{"a":{"b":"\u0000"}}`, echo.MIMEApplicationJSON, plain, 422, "a.b"},
		{"lone surrogate", `{"a":["\ud800"]}`, echo.MIMEApplicationJSON, plain, 422, "a.0"},
		{"NUL in a key", `{"\u0000":1}`, echo.MIMEApplicationJSON, plain, 422, "\x00"},
		{"too large", `{"a":"` + strings.Repeat("x", bodyLimit) + `"}`, echo.MIMEApplicationJSON, plain, 413, ""},
		{"too large inflated", zipped(t, `{"a":"`+strings.Repeat("x", bodyLimit)+`"}`), echo.MIMEApplicationJSON, packed, 413, ""},
		{"NUL inflated", zipped(t, `{"a":"\u0000"}`), echo.MIMEApplicationJSON, packed, 422, "a"},
		{"not gzip", "{}", echo.MIMEApplicationJSON, packed, 400, "body"},
		{"gzip cut short", zipped(t, "{}")[:20], echo.MIMEApplicationJSON, packed, 400, "body"},
		{"other encoding", "{}", echo.MIMEApplicationJSON, "br", 415, ""},
		{"no media type", "{}", "", plain, 415, ""},
		{"text", "{}", "text/plain", plain, 415, ""},
		{"form", "a=1", "application/x-www-form-urlencoded", plain, 415, ""},
		{"other charset", "{}", "application/json; charset=utf-16", plain, 415, ""},
	}
	e := detached(small())
	eachRoute(e, "thread", func(method, path string) {
		if !takesBody(method) {
			return
		}
		for _, test := range cases {
			r := request(method, path, test.body)
			r.Header.Set(echo.HeaderContentType, test.contentType)
			r.Header.Set(echo.HeaderContentEncoding, test.encoding)
			got := send(t, e, r)
			p := got.problem(t)
			if got.status != test.status {
				t.Errorf("%s %s, %s: %d %s, want %d", method, path, test.name, got.status, got.body, test.status)
			}
			if test.field != "" && !slices.Equal(p.fields(), []string{test.field}) {
				t.Errorf("%s %s, %s: names %q, want %q", method, path, test.name, p.fields(), test.field)
			}
		}
	})
}

func TestTheBodyLimitIsExact(t *testing.T) {
	t.Parallel()
	e := detached(small())
	for _, test := range []struct{ size, status int }{{bodyLimit, 400}, {bodyLimit + 1, 413}} {
		for _, encoding := range []string{"", "gzip"} {
			// Without a resourceId a body of any size is refused, but otherwise.
			body := `{"a":"` + strings.Repeat("x", test.size-len(`{"a":""}`)) + `"}`
			if encoding == "gzip" {
				body = zipped(t, body)
			}
			r := request(http.MethodPost, "/api/memory/threads", body)
			r.Header.Set(echo.HeaderContentEncoding, encoding)
			if got := send(t, e, r); got.status != test.status {
				t.Errorf("%d bytes, encoding %q: %d, want %d", test.size, encoding, got.status, test.status)
			}
		}
	}
}

func TestEveryRouteRefusesABadQuery(t *testing.T) {
	t.Parallel()
	e := detached(small())
	eachRoute(e, "thread", func(method, path string) {
		for _, test := range []struct {
			query  string
			status int
			field  string
		}{
			{"agentId=a&agentId=b", 400, "agentId"},
			{"resourceId=%ff", 400, "resourceId"},
			{"%ff=1", 400, "\uFFFD"},
			{"resourceId=a%00b", 422, "resourceId"},
			{"resourceId=%zz", 400, "query"},
		} {
			got := send(t, e, request(method, path+"?searchQuery=q&"+test.query, "{}"))
			p := got.problem(t)
			if got.status != test.status || !slices.Contains(p.fields(), test.field) {
				t.Errorf("%s %s?%s: %d %s, want %d naming %q", method, path, test.query, got.status, got.body, test.status, test.field)
			}
			if got.status == 400 && p.Error != "Invalid query parameters" {
				t.Errorf("%s %s?%s: error %q", method, path, test.query, p.Error)
			}
		}
	})
}

func TestEveryRouteRefusesABadIDInItsPath(t *testing.T) {
	t.Parallel()
	e := detached(small())
	for id, status := range map[string]int{"%ff": 400, "%C3%28": 400, "a%00b": 422} {
		for _, route := range e.Routes() {
			param := idInPath.FindStringSubmatch(route.Path)
			if param == nil {
				continue
			}
			got := send(t, e, request(route.Method, idInPath.ReplaceAllLiteralString(route.Path, id), "{}"))
			if p := got.problem(t); got.status != status || !slices.Equal(p.fields(), []string{param[1]}) {
				t.Errorf("%s %s for %s: %d %s, want %d naming it", route.Method, route.Path, id, got.status, got.body, status)
			}
		}
	}
}

func TestEveryRouteBoundsTheIDInItsPath(t *testing.T) {
	t.Parallel()
	e := detached(small())
	for _, route := range e.Routes() {
		param := idInPath.FindStringSubmatch(route.Path)
		if param == nil {
			continue
		}
		target := idInPath.ReplaceAllLiteralString(route.Path, strings.Repeat("x", 513))
		got := send(t, e, request(route.Method, target, validBodies[route.Method+" "+route.Path]))
		p := got.problem(t)
		if got.status != 400 || p.Error != "Invalid path parameters" || !slices.Equal(p.fields(), []string{param[1]}) {
			t.Errorf("%s %s: %d %s, want 400 naming it", route.Method, route.Path, got.status, got.body)
		}
	}
}

func TestRoutesNameEveryBadFieldOfABody(t *testing.T) {
	t.Parallel()
	const (
		threads = "POST /api/memory/threads"
		thread  = "PATCH /api/memory/threads/t"
		give    = "POST /api/memory/threads/t/transfer"
		clone   = "POST /api/memory/threads/t/clone"
		save    = "POST /api/memory/save-messages"
		update  = "PATCH /api/memory/messages"
		remove  = "POST /api/memory/messages/delete"
		ask     = "POST /api/memory/recall"
		retry   = "POST /api/memory/jobs/retry"
		working = "POST /api/memory/threads/t/working-memory"
		restore = "POST /api/memory/threads/t/working-memory/restore"
	)
	e := detached(small())
	for _, test := range []struct {
		route  string
		body   string
		fields string // separated by blanks
	}{
		{threads, `{}`, "resourceId"},
		{threads, `{"resourceId":null}`, "resourceId"},
		{threads, `{"resourceId":"","threadId":""}`, "threadId resourceId"},
		{threads, `{"resourceId":1,"threadId":{},"title":null,"metadata":[]}`, "threadId resourceId title metadata"},
		{thread, `{"title":1,"metadata":"x","resourceId":false}`, "resourceId title metadata"},
		{thread, `{"metadata":null}`, "metadata"},
		{give, `{}`, "resourceId"},
		{give, `{"resourceId":["a"]}`, "resourceId"},
		{clone, `{"newThreadId":1,"resourceId":2,"title":3,"metadata":4,"options":5}`, "options newThreadId resourceId title metadata"},
		{clone, `{"options":{"messageLimit":-1,"messageFilter":[]}}`, "options.messageFilter options.messageLimit"},
		{clone, `{"options":{"messageLimit":1.5}}`, "options.messageLimit"},
		{
			clone, `{"options":{"messageFilter":{"startDate":"soon","endDate":1,"messageIds":["a",1,null]}}}`,
			"options.messageFilter.startDate options.messageFilter.endDate options.messageFilter.messageIds.1 options.messageFilter.messageIds.2",
		},
		{save, `{}`, "messages"},
		{save, `{"messages":{"id":"x"}}`, "messages"},
		{save, `{"messages":[1,[]],"createThread":"yes"}`, "messages.0 messages.1 createThread"},
		{
			save, `{"messages":[{"role":"user","content":"fine"},{"id":1,"threadId":2,"resourceId":3,"role":4,"type":5,"content":6,"createdAt":7}]}`,
			"messages.1.id messages.1.threadId messages.1.resourceId messages.1.role messages.1.type messages.1.content messages.1.createdAt",
		},
		{save, `{"messages":[{"role":"user","content":["a"]}]}`, "messages.0.content"},
		{save, `{"messages":[{"role":"user","content":"a","createdAt":"2026-03-01"},{"role":"user","content":"a","createdAt":"2026-02-30"}]}`, "messages.1.createdAt"},
		{update, `{"messages":"x"}`, "messages"},
		{update, `{"messages":[{"role":1,"type":2,"content":"x"}]}`, "messages.0.id messages.0.role messages.0.type messages.0.content"},
		{remove, `{}`, "messageIds"},
		{remove, `{"messageIds":null}`, "messageIds"},
		{remove, `{"messageIds":7}`, "messageIds"},
		{remove, `{"messageIds":{}}`, "messageIds.id"},
		{remove, `{"messageIds":["a",1,{"id":2},[]]}`, "messageIds.1 messageIds.2.id messageIds.3"},
		{ask, `{"threadID":"t"}`, "threadID"},
		{ask, `{"threadId":"t","perPage":-1,"page":"0","cursor":1}`, "perPage page cursor"},
		{ask, `{"threadId":"t","perPage":true}`, "perPage"},
		{ask, `{"threadId":"t","perPage":99999999999999999999}`, "perPage"},
		{ask, `{"threadId":"t","page":1e3}`, "page"},
		{ask, `{"threadId":"","resourceId":""}`, "threadId resourceId"},
		{ask, `{"threadId":"t","orderBy":{"field":"role","direction":"asc","by":1}}`, "orderBy.by orderBy.field orderBy.direction"},
		{ask, `{"threadId":"t","orderBy":"createdAt"}`, "orderBy"},
		{ask, `{"threadId":"t","filter":{"meta":{},"metadata":[],"where":1,"roles":"user","dateRange":2}}`, "filter.meta filter.dateRange filter.metadata filter.where filter.roles"},
		{ask, `{"threadId":"t","filter":{"dateRange":{"start":"yesterday","end":null,"from":1,"startExclusive":1}}}`, "filter.dateRange.from filter.dateRange.start filter.dateRange.end filter.dateRange.startExclusive"},
		{ask, `{"threadId":"t","include":{"id":"x"}}`, "include"},
		{ask, `{"threadId":"t","include":[{},{"id":"a","withPreviousMessages":-1,"withNextMessages":"2","previous":1}]}`, "include.0.id include.1.previous include.1.withPreviousMessages include.1.withNextMessages"},
		{ask, `{"threadId":"t","includeTotal":1,"keepToolPairs":"true","explain":null}`, "keepToolPairs includeTotal explain"},
		{ask, `{"threadId":"t","vectorSearchString":"where to?"}`, "vectorSearchString"}, // there is no embedder
		{ask, `{"threadId":"t","vectorSearchString":7}`, "vectorSearchString"},
		{ask, `{"threadId":"t","threadConfig":{"semanticRecall":7}}`, "threadConfig.semanticRecall"},
		{
			ask, `{"threadId":"t","threadConfig":{"semanticRecall":{"topk":1,"topK":0,"messageRange":-1,"scope":1,"threshold":"high","indexName":"","filter":[],"mode":null}}}`,
			"threadConfig.semanticRecall.topk threadConfig.semanticRecall.topK threadConfig.semanticRecall.messageRange threadConfig.semanticRecall.scope " +
				"threadConfig.semanticRecall.threshold threadConfig.semanticRecall.indexName threadConfig.semanticRecall.filter threadConfig.semanticRecall.mode",
		},
		{
			ask, `{"threadId":"t","vectorSearchString":"q","threadConfig":{"semanticRecall":{"messageRange":{"before":1.5,"after":"2","around":1}}}}`,
			"threadConfig.semanticRecall.messageRange.around threadConfig.semanticRecall.messageRange.before threadConfig.semanticRecall.messageRange.after",
		},
		{
			ask, `{"resourceId":"u","vectorSearchString":"q","threadConfig":{"semanticRecall":{"topK":201,"messageRange":{"before":201,"after":0},"scope":"thread","mode":"lexical","filter":{"a-b":1}}}}`,
			"threadConfig.semanticRecall.topK threadConfig.semanticRecall.messageRange threadConfig.semanticRecall.scope threadConfig.semanticRecall.filter.a-b",
		},
		{ask, `{"threadId":"t","vectorSearchString":"q","threadConfig":{"semanticRecall":{"scope":"world","mode":"magic"}}}`, "threadConfig.semanticRecall.scope threadConfig.semanticRecall.mode vectorSearchString"},
		{ask, `{"threadId":"t","threadConfig":7}`, "threadConfig"},
		{ask, `{"threadId":"t","threadConfig":{"lastMessages":-3}}`, "threadConfig.lastMessages"},
		{working, `{}`, "workingMemory"},
		{working, `{"workingMemory":{}}`, "workingMemory"},
		{working, `{"workingMemory":null,"merge":[]}`, "workingMemory merge"},
		{working, `{"workingMemory":"x","merge":{}}`, "workingMemory"},
		{working, `{"merge":{}}`, "merge"},
		{working, `{"workingMemory":"x","resourceId":1,"memoryConfig":"x"}`, "resourceId memoryConfig"},
		{working, `{"workingMemory":"x","memoryConfig":{"workingMemory":{"scope":"all","schema":1}}}`, "memoryConfig.workingMemory.scope memoryConfig.workingMemory.schema"},
		{working, `{"workingMemory":"x","memoryConfig":{"workingMemory":{"schema":{"type":"thing"}}}}`, "memoryConfig.workingMemory.schema"},
		{restore, `{}`, "version"},
		{restore, `{"version":0}`, "version"},
		{restore, `{"version":"1"}`, "version"},
		{restore, `{"version":null}`, "version"},
		{restore, `{"version":1.5,"resourceId":""}`, "resourceId"},
		{retry, `{"id":"1"}`, "id"},
		{retry, `{"ids":[]}`, "ids"},
		{retry, `{"ids":null}`, "ids"},
		{retry, `{"ids":"1"}`, "ids"},
		{retry, `{"ids":["1","0","-1","+1","1.5","x","","9223372036854775808",1,null]}`, "ids.1 ids.2 ids.3 ids.4 ids.5 ids.6 ids.7 ids.8 ids.9"},
	} {
		method, path, _ := strings.Cut(test.route, " ")
		got := send(t, e, request(method, path, test.body))
		p := got.problem(t)
		if got.status != 400 || p.Error != "Invalid request body" {
			t.Errorf("%s %s: %d %s, want 400", test.route, test.body, got.status, got.body)
		}
		if fields := strings.Join(p.fields(), " "); fields != test.fields {
			t.Errorf("%s %s names\n%q, want\n%q", test.route, test.body, fields, test.fields)
		}
	}
}

func TestRoutesNameEveryBadParameter(t *testing.T) {
	t.Parallel()
	const (
		threads  = "/api/memory/threads"
		messages = "/api/memory/threads/t/messages"
		search   = "/api/memory/search"
		jobs     = "/api/memory/jobs"
		working  = "/api/memory/threads/t/working-memory"
		versions = "/api/memory/threads/t/working-memory/versions"
	)
	e := detached(small())
	for _, test := range []struct {
		path   string
		name   string
		value  string
		status int
		field  string
	}{
		{threads, "page", "-1", 400, "page"},
		{threads, "page", "1.5", 400, "page"},
		{threads, "page", "+1", 400, "page"},
		{threads, "page", "", 400, "page"},
		{threads, "page", "9223372036854775808", 400, "page"},
		{threads, "perPage", "-1", 400, "perPage"},
		{threads, "perPage", "true", 400, "perPage"},
		{threads, "perPage", "99999999999999999999999", 400, "perPage"},
		{threads, "resourceId", "", 400, "resourceId"},
		{threads, "metadata", "{bad", 400, "metadata"},
		{threads, "metadata", "[1]", 400, "metadata"},
		{threads, "metadata", `{"a":"\u0000"}`, 422, "metadata.a"},
		{threads, "orderBy[field]", "title", 400, "orderBy.field"},
		{threads, "orderBy[direction]", "up", 400, "orderBy.direction"},
		{threads, "orderBy", `{"field":"title"}`, 400, "orderBy.field"},
		{threads, "orderBy", "title", 400, "orderBy"},
		{threads, "sortDirection", "up", 400, "sortDirection"},
		{messages, "page", "-1", 400, "page"},
		{messages, "perPage", "ten", 400, "perPage"},
		{messages, "perPage", "NaN", 400, "perPage"},
		{messages, "perPage", "0x10", 400, "perPage"},
		{messages, "perPage", "\x00", 400, "perPage"},
		{messages, "resourceId", "", 400, "resourceId"},
		{messages, "cursor", "\x00", 422, "cursor"},
		{messages, "includeTotal", "1", 400, "includeTotal"},
		{messages, "keepToolPairs", "yes", 400, "keepToolPairs"},
		{messages, "explain", "", 400, "explain"},
		{messages, "orderBy", "createdAt", 400, "orderBy"},
		{messages, "orderBy", `{"field":"role","direction":"ASC"}`, 400, "orderBy.field"},
		{messages, "orderBy", `{"field":"updatedAt"}`, 400, "orderBy.field"},
		{messages, "orderBy", `{"direction":"asc"}`, 400, "orderBy.direction"},
		{messages, "filter", "{bad", 400, "filter"},
		{messages, "filter", "", 400, "filter"},
		{messages, "filter", "[]", 400, "filter"},
		{messages, "filter", `{"metadata":{"a":1,"a":2}}`, 400, "filter.metadata.a"},
		{messages, "filter", `{"metadata":{"a":1e130000}}`, 400, "filter.metadata.a"},
		{messages, "filter", `{"metadata":{"a":"\ud800"}}`, 422, "filter.metadata.a"},
		{messages, "filter", `{"metadata":{"a":"\u0000"}}`, 422, "filter.metadata.a"},
		{messages, "filter", `{"metadata":[]}`, 400, "filter.metadata"},
		{messages, "filter", `{"metdata":{}}`, 400, "filter.metdata"},
		{messages, "filter", `{"dateRange":{"start":"yesterday"}}`, 400, "filter.dateRange.start"},
		{messages, "filter", `{"dateRange":{"start":"0000-01-01"}}`, 400, "filter.dateRange.start"},
		{messages, "filter", `{"roles":[1]}`, 400, "filter.roles.0"},
		{messages, "filter", strings.Repeat("[", 65) + strings.Repeat("]", 65), 400, "filter" + strings.Repeat(".0", 64)},
		{messages, "include", `{"id":"x"}`, 400, "include"},
		{messages, "include", `[1]`, 400, "include.0"},
		{messages, "include", `[{"id":"x","withNextMessages":1.5}]`, 400, "include.0.withNextMessages"},
		{messages, "include", `[{"id":""}]`, 400, "include.0.id"},
		{search, "searchQuery", "", 400, "searchQuery"},
		{search, "searchQuery", "\x00", 422, "searchQuery"},
		{search, "searchQuery", strings.Repeat("x", 32<<10+1), 400, "searchQuery"},
		{search, "resourceId", "", 400, "resourceId"},
		{search, "threadId", "", 400, "threadId"},
		{search, "limit", "0", 400, "limit"},
		{search, "limit", "201", 400, "limit"},
		{search, "limit", "all", 400, "limit"},
		{search, "memoryConfig", "{bad", 400, "memoryConfig"},
		{search, "memoryConfig", "[]", 400, "memoryConfig"},
		{search, "memoryConfig", `{"semanticRecall":{"topK":201}}`, 400, "memoryConfig.semanticRecall.topK"},
		{search, "memoryConfig", `{"semanticRecall":{"mode":"magic"}}`, 400, "memoryConfig.semanticRecall.mode"},
		{search, "memoryConfig", `{"semanticRecall":{"messageRange":{"before":-1}}}`, 400, "memoryConfig.semanticRecall.messageRange.before"},
		{working, "memoryConfig", "{bad", 400, "memoryConfig"},
		{working, "memoryConfig", "[]", 400, "memoryConfig"},
		{working, "memoryConfig", `{"workingMemory":{"scope":"all"}}`, 400, "memoryConfig.workingMemory.scope"},
		{working, "agentId", "", 400, "agentId"},
		{working, "resourceId", "", 400, "resourceId"},
		{versions, "before", "0", 400, "before"},
		{versions, "before", "-1", 400, "before"},
		{versions, "before", "9223372036854775808", 400, "before"},
		{versions, "perPage", "0", 400, "perPage"},
		{versions, "perPage", "1001", 400, "perPage"},
		{versions, "perPage", "false", 400, "perPage"},
		{jobs, "dead", "1", 400, "dead"},
		{jobs, "dead", "", 400, "dead"},
		{jobs, "before", "", 400, "before"},
		{jobs, "before", "0", 400, "before"},
		{jobs, "before", "-1", 400, "before"},
		{jobs, "before", "+1", 400, "before"},
		{jobs, "before", "9223372036854775808", 400, "before"},
		{jobs, "perPage", "0", 400, "perPage"},
		{jobs, "perPage", "-1", 400, "perPage"},
		{jobs, "perPage", "false", 400, "perPage"},
		{jobs, "perPage", "1001", 400, "perPage"},
	} {
		values := url.Values{}
		if test.path == search {
			values = url.Values{"searchQuery": {"q"}, "resourceId": {"u"}}
		}
		values.Set(test.name, test.value)
		target := test.path + "?" + values.Encode()
		got := send(t, e, request(http.MethodGet, target, ""))
		if p := got.problem(t); got.status != test.status || !slices.Contains(p.fields(), test.field) {
			t.Errorf("%s %s=%q: %d %s, want %d naming %q", test.path, test.name, test.value, got.status, got.body, test.status, test.field)
		}
	}
}

func TestASaveCannotWaitForAnythingElseNorWithoutAnEmbedder(t *testing.T) {
	t.Parallel()
	static := server.New(recall.New(nil, recall.DefaultLimits(), recall.WithEmbedder(embed.Static{})), small())
	for _, test := range []struct {
		e     *echo.Echo
		query string
	}{
		{detached(small()), "wait=embedded"},
		{detached(small()), "wait=saved"},
		{static, "wait="},
		{static, "wait=true"},
		{static, "wait=Embedded"},
		{static, "wait=embedded&wait=embedded"},
	} {
		got := send(t, test.e, request(http.MethodPost, "/api/memory/save-messages?"+test.query, validBodies["POST /api/memory/save-messages"]))
		if got.status != 400 || !slices.Equal(got.problem(t).fields(), []string{"wait"}) {
			t.Errorf("%s: %d %s, want 400 naming wait", test.query, got.status, got.body)
		}
	}
}

func TestAnAnswerBoundsItsIssues(t *testing.T) {
	t.Parallel()
	body := `{"messageIds":[0` + strings.Repeat(",0", 10_000) + `]}`
	got := send(t, detached(small()), request(http.MethodPost, "/api/memory/messages/delete", body))
	if issues := len(got.problem(t).Issues); got.status != 400 || issues != 100 {
		t.Errorf("%d with %d issues, want 400 with 100", got.status, issues)
	}
}

func TestUnknownRoutesAndMethodsAreJSON(t *testing.T) {
	t.Parallel()
	e := detached(small())
	for _, test := range []struct {
		method, path string
		status       int
	}{
		{http.MethodGet, "/", 404},
		{http.MethodGet, "/api/memory/nothing", 404},
		{http.MethodGet, "/api/memory/threads/t/nothing", 404},
		{http.MethodGet, "/api/memory/threads/", 404},
		{http.MethodGet, "/api/memory/threads//messages", 404},
		{http.MethodPut, "/api/memory/threads", 405},
		{http.MethodGet, "/api/memory/recall", 405},
		{http.MethodGet, "/api/memory/jobs/retry", 405},
	} {
		got := send(t, e, request(test.method, test.path, ""))
		_ = got.problem(t)
		if got.status != test.status || got.header.Get(echo.HeaderXRequestID) == "" {
			t.Errorf("%s %s: %d, request id %q, want %d", test.method, test.path, got.status, got.header.Get(echo.HeaderXRequestID), test.status)
		}
		if (got.status == 405) != (got.header.Get(echo.HeaderAllow) != "") {
			t.Errorf("%s %s: Allow is %q", test.method, test.path, got.header.Get(echo.HeaderAllow))
		}
	}
}

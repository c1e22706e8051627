package server_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"
)

// contract is the document that a server publishes.
type contract struct {
	requests *openapi3.T
	// answers are stricter: what is not named must not be there.
	answers *openapi3.T
	routes  *echo.Echo
}

// published reads the document as a server gives it.
var published = sync.OnceValue(func() contract {
	routes := detached(quiet())
	recorder := httptest.NewRecorder()
	routes.ServeHTTP(recorder, request(http.MethodGet, "/openapi.yaml", ""))
	load := func() *openapi3.T {
		document, err := openapi3.NewLoader().LoadFromData(recorder.Body.Bytes())
		if err != nil {
			panic(err)
		}
		return document
	}
	answers := load()
	for _, schema := range answers.Components.Schemas {
		closeObjects(schema)
	}
	return contract{requests: load(), answers: answers, routes: routes}
})

// closeObjects refuses further members in objects that say nothing of them.
func closeObjects(schema *openapi3.SchemaRef) {
	if schema == nil || schema.Ref != "" {
		return
	}
	s := schema.Value
	if further := &s.AdditionalProperties; len(s.Properties) > 0 && further.Has == nil && further.Schema == nil {
		further.Has = new(bool)
	}
	closeObjects(s.Items)
	closeObjects(s.AdditionalProperties.Schema)
	for _, property := range s.Properties {
		closeObjects(property)
	}
	for _, alternative := range s.AnyOf {
		closeObjects(alternative)
	}
}

// templated writes a route as the document does.
func templated(path string) string {
	return regexp.MustCompile(`:(\w+)`).ReplaceAllString(path, "{$1}")
}

// operation finds what the document says of a request; nil where the server has no
// such route.
func (c contract) operation(document *openapi3.T, r *http.Request) (*routers.Route, map[string]string) {
	matched := c.routes.AcquireContext()
	defer c.routes.ReleaseContext(matched)
	matched.Reset(r, nil)
	c.routes.Router().Find(r.Method, r.URL.EscapedPath(), matched)
	path := templated(matched.Path())
	item := document.Paths.Value(path)
	if item == nil || item.GetOperation(r.Method) == nil {
		return nil, nil
	}
	params := make(map[string]string)
	for _, name := range matched.ParamNames() {
		params[name], _ = url.PathUnescape(matched.Param(name))
	}
	return &routers.Route{Spec: document, Path: path, PathItem: item, Method: r.Method, Operation: item.GetOperation(r.Method)}, params
}

// check holds a request and its answer to the document: the answer always, the
// request where it succeeded. One that is refused may be anything, but where its
// form is at fault the document has to say so too.
func (c contract) check(t *testing.T, r *http.Request, body []byte, got answer) {
	t.Helper()
	fail := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("openapi.yaml differs, %s of %s %s: %v\n%.1000s\n%d %.1000s", what, r.Method, r.URL, err, body, got.status, got.body)
		}
	}
	options := &openapi3filter.Options{
		MultiError: true, IncludeResponseStatus: true, SkipSettingDefaults: true,
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, // whom the server asks is not in the document
	}
	route, params := c.operation(c.answers, r)
	if route == nil {
		if got.status >= http.StatusBadRequest {
			var value any
			fail("error", json.Unmarshal(got.body, &value))
			fail("error", c.answers.Components.Schemas["Error"].Value.VisitJSON(value, openapi3.EnableJSONSchema2020()))
		}
		return
	}
	asked := &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route, Options: options}
	fail("answer", openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: asked, Status: got.status, Header: got.header, Body: io.NopCloser(bytes.NewReader(got.body)), Options: options,
	}))
	again := r.Clone(t.Context())
	again.Body = io.NopCloser(bytes.NewReader(inflated(r, body)))
	asked.Request = again
	asked.Route, _ = c.operation(c.requests, r)
	switch err := openapi3filter.ValidateRequest(t.Context(), asked); {
	case got.status < http.StatusMultipleChoices:
		fail("request", err)
	case got.status == http.StatusBadRequest && err == nil && slices.ContainsFunc(got.problem(t).Issues, formal):
		fail("request", errors.New("the server alone refuses it"))
	}
}

// inflated gives a body as the document speaks of it.
func inflated(r *http.Request, body []byte) []byte {
	if r.Header.Get(echo.HeaderContentEncoding) != "gzip" {
		return body
	}
	reader, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return body
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		return body
	}
	return text
}

var formalMessage = regexp.MustCompile(`^(is )?(unknown|required)$|^want an? (string|object|array|boolean),|^must (not be empty|be between)`)

// formal says whether an issue is one that a schema can find too.
func formal(issue issue) bool { return formalMessage.MatchString(issue.Message) }

func TestTheDocumentIsValid(t *testing.T) {
	t.Parallel()
	document := published().requests
	require.NoError(t, document.Validate(t.Context(), openapi3.EnableMultiError(), openapi3.ProhibitExtensionsWithRef()))
	got := send(t, detached(quiet()), request(http.MethodGet, "/openapi.yaml", ""))
	require.Equal(t, http.StatusOK, got.status)
	require.Equal(t, "application/yaml", got.header.Get(echo.HeaderContentType))
}

func TestTheDocumentHasTheRoutesOfTheServer(t *testing.T) {
	t.Parallel()
	c := published()
	var served, documented []string
	for _, route := range c.routes.Routes() {
		served = append(served, route.Method+" "+templated(route.Path))
	}
	for path, item := range c.requests.Paths.Map() {
		for method := range item.Operations() {
			documented = append(documented, method+" "+path)
		}
	}
	slices.Sort(served)
	slices.Sort(documented)
	require.Equal(t, served, documented)
}

// example is a request that the document shows, with its answer.
type example struct {
	method, target, body string
	answer               any
}

// examples gives those of an operation by their names: one for each body, and one
// where there is none.
func examples(t *testing.T, path, method string, item *openapi3.PathItem) map[string]example {
	t.Helper()
	operation := item.GetOperation(method)
	success := operation.Responses.Status(http.StatusOK).Value.Content.Get(echo.MIMEApplicationJSON)
	if success == nil {
		return nil
	}
	answers := shown(success)
	bodies := map[string]any{"": nil}
	if operation.RequestBody != nil {
		bodies = shown(operation.RequestBody.Value.Content.Get(echo.MIMEApplicationJSON))
	}
	target := exampleTarget(t, path, slices.Concat(item.Parameters, operation.Parameters))
	found := make(map[string]example)
	for name, body := range bodies {
		text := ""
		if body != nil {
			text = written(t, body)
		}
		found[name] = example{method, target, text, answers[name]}
	}
	require.Len(t, answers, len(found), "%s %s: an answer for each request", method, path)
	return found
}

// shown gives the examples of a body by their names; that of a single one is empty.
func shown(body *openapi3.MediaType) map[string]any {
	if body.Example != nil {
		return map[string]any{"": body.Example}
	}
	all := make(map[string]any)
	for name, example := range body.Examples {
		all[name] = example.Value.Value
	}
	return all
}

// exampleTarget fills in the parameters that have an example.
func exampleTarget(t *testing.T, path string, parameters openapi3.Parameters) string {
	t.Helper()
	query := url.Values{}
	for _, parameter := range parameters {
		p, value := parameter.Value, ""
		switch asJSON := p.Content.Get(echo.MIMEApplicationJSON); {
		case asJSON != nil && asJSON.Example != nil:
			value = written(t, asJSON.Example)
		case p.Example != nil:
			value = fmt.Sprint(p.Example)
		default:
			require.False(t, p.Required, "%s: %s needs an example", path, p.Name)
			continue
		}
		if p.In == openapi3.ParameterInPath {
			path = strings.Replace(path, "{"+p.Name+"}", url.PathEscape(value), 1)
		} else {
			query.Set(p.Name, value)
		}
	}
	return path + "?" + query.Encode()
}

func written(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return string(text)
}

// exemplary gives a server with what the examples speak of.
func exemplary(t *testing.T, path string) *httptest.Server {
	t.Helper()
	if strings.HasPrefix(path, "/api/memory/jobs") {
		r := newRemote(t, quiet())
		r.kill(t, "sam")
		return r.Server
	}
	s := attached(t)
	must(t, s, http.MethodPost, "/api/memory/threads", `{"threadId":"trip","resourceId":"sam","title":"Trip to Kyoto","metadata":{"topic":"travel"}}`)
	must(t, s, http.MethodPost, "/api/memory/save-messages", `{"messages":[
		{"id":"m1","threadId":"trip","resourceId":"sam","role":"user","createdAt":"2026-03-01T10:00:00Z","content":"I want to see Kyoto in April"},
		{"id":"m2","threadId":"trip","resourceId":"sam","role":"assistant","createdAt":"2026-03-01T10:01:00Z","content":"That is when the cherries blossom"},
		{"id":"m3","threadId":"trip","resourceId":"sam","role":"user","createdAt":"2026-03-01T10:02:00Z",
			"content":{"format":2,"parts":[{"type":"text","text":"Remind me to pay the deposit"}],"metadata":{"topic":"billing"}}}]}`)
	const profile = `# Profile\n- Name: Sam`
	must(t, s, http.MethodPost, "/api/memory/threads/trip/working-memory", `{"workingMemory":"`+profile+`"}`)
	must(t, s, http.MethodPost, "/api/memory/threads/trip/working-memory", `{"workingMemory":"`+profile+`\n- Plans: Kyoto in April"}`)
	must(t, s, http.MethodPost, "/api/memory/threads/trip/clone", `{"newThreadId":"trip-2","title":"Trip to Kyoto, again","options":{"messageLimit":0}}`)
	return s
}

var (
	timeText = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
	madeID   = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
)

// settled makes what differs from run to run the same: times, made ids and the last
// digits of scores.
func settled(t *testing.T, text string) any {
	t.Helper()
	text = madeID.ReplaceAllString(timeText.ReplaceAllString(text, "TIME"), "ID")
	var value any
	require.NoError(t, json.Unmarshal([]byte(text), &value), text)
	return rounded(value)
}

func rounded(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			value[name] = rounded(member)
		}
	case []any:
		for i, element := range value {
			value[i] = rounded(element)
		}
	case float64:
		return math.Round(value*100) / 100
	}
	return value
}

func TestTheExamplesOfTheDocumentHold(t *testing.T) {
	t.Parallel()
	for path, item := range published().requests.Paths.Map() {
		for method, operation := range item.Operations() {
			for name, example := range examples(t, path, method, item) {
				t.Run(strings.TrimSuffix(operation.OperationID+" "+name, " "), func(t *testing.T) {
					t.Parallel()
					got := call(t, exemplary(t, path), example.method, example.target, example.body)
					require.Equal(t, http.StatusOK, got.status, "%s", got.body)
					require.Equal(t, settled(t, written(t, example.answer)), settled(t, string(got.body)), "%s", got.body)
				})
			}
		}
	}
}

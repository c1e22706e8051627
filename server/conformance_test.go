package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/embed"
	"github.com/pgrecall/pgrecall/server"
)

// attached gives a server on an empty database of the test's own, behind a real
// listener, with the embedder that is the program's default.
func attached(t *testing.T) *httptest.Server { return embedding(t, embed.Static{}) }

// embedding gives a server with another embedder.
func embedding(t *testing.T, embedder embed.Embedder) *httptest.Server {
	t.Helper()
	memory := recall.New(dbtest.New(t), recall.DefaultLimits(), recall.WithEmbedder(embedder))
	s := httptest.NewServer(server.New(memory, quiet()))
	t.Cleanup(s.Close)
	return s
}

// step is one request of the recording with what must come back.
type step struct {
	ID        string
	Method    string
	Path      string
	Query     map[string]string
	Body      json.RawMessage
	Reference *expectation
	// Want, WantIDs and WantBody stand for those parts of the reference's answer
	// that were not right.
	Want     *expectation
	WantIDs  []string
	WantBody map[string]any
}

type expectation struct {
	Status int
	Body   map[string]any
}

// TestConformance replays what a Mastra client said to Mastra's own server.
func TestConformance(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/mastra-wire.json")
	if err != nil {
		t.Fatal(err)
	}
	var recording struct{ Steps []step }
	if err := json.Unmarshal(text, &recording); err != nil {
		t.Fatal(err)
	}
	s := attached(t)
	storeAgent(t, s, recording.Steps)
	for _, step := range recording.Steps {
		// In order and not in parallel: each step builds on those before it.
		t.Run(step.ID, func(t *testing.T) {
			step.replay(t, s)
		})
	}
	if len(recording.Steps) != 94 {
		t.Errorf("replayed %d steps, want 94", len(recording.Steps))
	}
}

// storeAgent stores the configuration that the recording is of an agent with.
func storeAgent(t *testing.T, s *httptest.Server, steps []step) {
	i := slices.IndexFunc(steps, func(s step) bool { return s.ID == "config" })
	body, err := json.Marshal(steps[i].Reference.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got := call(t, s, http.MethodPut, "/api/memory/config?agentId=agent", string(body)); got.status != http.StatusOK {
		t.Fatalf("the configuration: %d %s", got.status, got.body)
	}
}

func (s step) replay(t *testing.T, server *httptest.Server) {
	query := url.Values{}
	for name, value := range s.Query {
		query.Set(name, value)
	}
	got := call(t, server, s.Method, "/api"+s.Path+"?"+query.Encode(), string(s.Body))
	var body map[string]any
	if err := json.Unmarshal(got.body, &body); err != nil {
		t.Fatalf("%d %s: %v", got.status, got.body, err)
	}
	want := s.expected()
	if got.status != want.Status {
		t.Fatalf("status %d, want %d: %s", got.status, want.Status, got.body)
	}
	if s.WantIDs != nil {
		if ids := messageIDs(body); !slices.Equal(ids, s.WantIDs) {
			t.Errorf("messages %q, want %q", ids, s.WantIDs)
		}
	}
	for _, difference := range differences("", want.Body, body) {
		t.Error(difference)
	}
	if t.Failed() {
		t.Logf("answer: %s", got.body)
	}
}

// expected is the reference's answer with its errors put right.
func (s step) expected() expectation {
	want := s.Want
	if want == nil {
		want = s.Reference
	}
	body := want.Body
	delete(body, "usage") // counts the tokens of the reference's own embedder
	switch {
	case s.WantIDs != nil:
		delete(body, "messages")
	case s.WantBody != nil:
		body = s.WantBody
	case body["issues"] != nil:
		delete(body, "error")
		for _, issue := range body["issues"].([]any) {
			delete(issue.(map[string]any), "message")
		}
	}
	return expectation{want.Status, body}
}

func messageIDs(body map[string]any) []string {
	messages, _ := body["messages"].([]any)
	ids := []string{}
	for _, message := range messages {
		ids = append(ids, message.(map[string]any)["id"].(string))
	}
	return ids
}

// differences tells where got lacks what is wanted. Members beyond those that
// are wanted are fine in an answer, but not in a message's content.
func differences(path string, want, got any) []string {
	switch want := want.(type) {
	case map[string]any:
		return objectDifferences(path, want, got)
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return []string{fmt.Sprintf("%s: %v, want %d elements", path, got, len(want))}
		}
		var all []string
		for i := range want {
			all = append(all, differences(fmt.Sprintf("%s.%d", path, i), want[i], list[i])...)
		}
		return all
	case string:
		if want == "{{time}}" || want == "{{id}}" {
			if text, _ := got.(string); text == "" {
				return []string{fmt.Sprintf("%s: %v, want a %s", path, got, want)}
			}
			return nil
		}
	}
	if !reflect.DeepEqual(got, want) {
		return []string{fmt.Sprintf("%s: %#v, want %#v", path, got, want)}
	}
	return nil
}

func objectDifferences(path string, want map[string]any, got any) []string {
	object, ok := got.(map[string]any)
	if !ok {
		return []string{fmt.Sprintf("%s: %v, want an object", path, got)}
	}
	var all []string
	for name, value := range want {
		if _, ok := object[name]; !ok {
			all = append(all, fmt.Sprintf("%s.%s: missing", path, name))
			continue
		}
		all = append(all, differences(path+"."+name, value, object[name])...)
	}
	if strings.HasSuffix(path, ".content") || strings.HasSuffix(path, ".messageIdMap") {
		for name := range object {
			if _, ok := want[name]; !ok {
				all = append(all, fmt.Sprintf("%s.%s: not wanted", path, name))
			}
		}
	}
	return all
}

// call sends a request through the network.
func call(t *testing.T, s *httptest.Server, method, target, body string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return exchange(t, s, r)
}

// exchange sends a request whose body can be had again, and checks both sides against
// the document.
func exchange(t *testing.T, s *httptest.Server, r *http.Request) answer {
	t.Helper()
	response, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := answer{response.StatusCode, response.Header, text}
	sent, err := r.GetBody()
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(sent)
	if err != nil {
		t.Fatal(err)
	}
	published().check(t, r, body, got)
	return got
}

package server

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/pgrecall/pgrecall/recall"
)

// The defaults of a search: how many messages it finds, and how many around each.
const (
	searchLimit   = 20
	searchContext = 2
)

// search gives the messages that answer a question, best first, each with its own
// context.
func (a api) search(c echo.Context) error {
	q := a.readQuery(c)
	request := readSearchQuery(q)
	agent, ofCall := q.key(agentIDParam), q.json("memoryConfig")
	if err := q.faults.err(); err != nil {
		return err
	}
	config, err := a.configOf(c, agent, "memoryConfig", ofCall)
	if err != nil {
		return err
	}
	request.Search = searchFor(config, request.Search)
	found, err := a.memory.Recall(c.Request().Context(), request)
	if err != nil {
		return inSearchTerms(err, q)
	}
	hits := searchHits(found.Messages, *request.Search.Before, *request.Search.After)
	titles, err := a.titles(c.Request().Context(), hits)
	if err != nil {
		return err
	}
	return respond(c, appendSearch(nil, request, found, hits, titles))
}

func readSearchQuery(q query) recall.Request {
	none := 0
	request := recall.Request{
		ThreadID: q.key("threadId"), ResourceID: q.mustKey("resourceId"),
		PerPage: &none, SkipTotal: true, Explain: true,
	}
	request.Search = &recall.Search{Question: q.mustKey("searchQuery")}
	if limit := q.count("limit"); limit != nil {
		request.Search.TopK = *limit
		if *limit == 0 {
			q.faults.add("limit", "must be at least 1")
		}
	}
	return request
}

// searchFor gives the search that a configuration makes of the one asked for.
// Where it switches semantic recall off, it is one by words.
func searchFor(config recall.Config, asked *recall.Search) *recall.Search {
	search := config.SearchFor(asked.Question)
	if search == nil {
		search = &recall.Search{Question: asked.Question, Mode: recall.Lexical}
	}
	search.TopK = cmp.Or(asked.TopK, search.TopK, searchLimit)
	for _, width := range []**int{&search.Before, &search.After} {
		if *width == nil {
			standard := searchContext
			*width = &standard
		}
	}
	return search
}

// inSearchTerms names the fields of a refusal as the parameters of a search are
// called.
func inSearchTerms(err error, q query) error {
	terms := map[string]string{"vectorSearchString": "searchQuery", "threadConfig.": "memoryConfig."}
	if q.values.Has("limit") {
		terms["threadConfig.semanticRecall.topK"] = "limit"
	}
	return inTerms(err, terms)
}

// inTerms names the fields of a refusal as the route does: by the longest beginning
// of their names among terms.
func inTerms(err error, terms map[string]string) error {
	var refused *recall.Error
	if !errors.As(err, &refused) || refused.Code != recall.CodeInvalid {
		return err
	}
	issues := slices.Clone(refused.Issues)
	for i, issue := range issues {
		longest := ""
		for begin := range terms {
			if strings.HasPrefix(issue.Field, begin) && len(begin) > len(longest) {
				longest = begin
			}
		}
		issues[i].Field = terms[longest] + strings.TrimPrefix(issue.Field, longest)
	}
	return &recall.Error{Code: refused.Code, Message: refused.Message, Issues: issues}
}

// searchHit is a message that was found, with those around it in its thread.
type searchHit struct {
	recall.Message
	before, after []recall.Message
}

// searchHits gives the hits among messages, which are in order and hold the context
// of each, best first.
func searchHits(messages []recall.Message, before, after int) []searchHit {
	threads := make(map[string][]recall.Message)
	for _, m := range messages {
		threads[m.ThreadID] = append(threads[m.ThreadID], m)
	}
	var hits []searchHit
	for _, thread := range threads {
		for i, m := range thread {
			if m.Explain.Hit != nil {
				hits = append(hits, searchHit{
					Message: m,
					before:  thread[max(0, i-before):i],
					after:   thread[i+1 : min(len(thread), i+1+after)],
				})
			}
		}
	}
	slices.SortFunc(hits, func(x, y searchHit) int { return cmp.Compare(x.Explain.Hit.Rank, y.Explain.Hit.Rank) })
	return hits
}

// titles gives the titles of the threads of hits, by id.
func (a api) titles(ctx context.Context, hits []searchHit) (map[string]string, error) {
	if len(hits) == 0 {
		return nil, nil
	}
	ids := make([]string, len(hits))
	for i, hit := range hits {
		ids[i] = hit.ThreadID
	}
	slices.Sort(ids)
	return a.memory.ThreadTitles(ctx, slices.Compact(ids))
}

func appendSearch(b []byte, request recall.Request, found recall.Result, hits []searchHit, titles map[string]string) []byte {
	b = appendArray(append(b, `{"results":`...), hits, func(b []byte, hit searchHit) []byte {
		return appendSearchHit(b, hit, cmp.Or(titles[hit.ThreadID], hit.ThreadID))
	})
	b = appendInt(append(b, `,"count":`...), len(hits))
	b = appendText(append(b, `,"query":`...), request.Search.Question)
	b = appendText(append(b, `,"searchScope":`...), string(cmp.Or(request.Search.Scope, recall.ScopeResource)))
	kind := "semantic"
	if found.Search.Mode == recall.Lexical {
		kind = "text"
	}
	b = appendText(append(b, `,"searchType":`...), kind)
	if found.Degraded {
		b = append(b, `,"degraded":true`...)
	}
	return append(b, '}')
}

func appendSearchHit(b []byte, hit searchHit, title string) []byte {
	b = appendSaid(append(b, '{'), hit.Message)
	b = appendText(append(b, `,"threadId":`...), hit.ThreadID)
	b = appendText(append(b, `,"threadTitle":`...), title)
	b = appendHit(b, hit.Explain.Hit)
	b = appendArray(append(b, `,"context":{"before":`...), hit.before, appendTurn)
	b = appendArray(append(b, `,"after":`...), hit.after, appendTurn)
	return append(b, "}}"...)
}

func appendTurn(b []byte, m recall.Message) []byte { return append(appendSaid(append(b, '{'), m), '}') }

// appendSaid appends who said what, and when.
func appendSaid(b []byte, m recall.Message) []byte {
	b = appendText(append(b, `"id":`...), m.ID)
	b = appendText(append(b, `,"role":`...), m.Role)
	b = appendText(append(b, `,"content":`...), m.Text())
	return appendTime(append(b, `,"createdAt":`...), m.CreatedAt)
}

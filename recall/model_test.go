package recall_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pgrecall/pgrecall/recall"
)

// model is a memory in slices: what a recall must give, written from its rules
// and without a thought of speed.
type model struct {
	owners   map[string]string // of threads
	messages []*modelMessage
}

type modelMessage struct {
	id, threadID      string
	role, messageType string
	content           json.RawMessage
	createdAt         time.Time
	seq               int
}

func newModel() *model { return &model{owners: make(map[string]string)} }

// save takes over what was saved; createdAt is the one that was answered.
func (m *model) save(in recall.NewMessage, createdAt time.Time) {
	m.owners[in.ThreadID] = in.ResourceID
	seq := 1
	for _, message := range m.messages {
		if message.id == in.ID {
			message.role, message.messageType, message.content = in.Role, in.Type, in.Content
			return
		}
		if message.threadID == in.ThreadID {
			seq = max(seq, message.seq+1)
		}
	}
	m.messages = append(m.messages, &modelMessage{
		id: in.ID, threadID: in.ThreadID, role: in.Role, messageType: in.Type,
		content: in.Content, createdAt: createdAt, seq: seq,
	})
}

// before is the one total order.
func before(a, b *modelMessage) int {
	return cmp.Or(a.createdAt.Compare(b.createdAt), strings.Compare(a.threadID, b.threadID), cmp.Compare(a.seq, b.seq))
}

// ordered gives the messages that hold, oldest first.
func (m *model) ordered(holds func(*modelMessage) bool) []*modelMessage {
	var list []*modelMessage
	for _, message := range m.messages {
		if holds(message) {
			list = append(list, message)
		}
	}
	slices.SortFunc(list, before)
	return list
}

func (m *model) thread(id string) []*modelMessage {
	return m.ordered(func(message *modelMessage) bool { return message.threadID == id })
}

// expectation is what a recall must give.
type expectation struct {
	code     recall.Code // of the error; empty without
	messages []*modelMessage
	reasons  map[string][]recall.Reason
	contexts map[string][]nearby
	total    *int64
	page     *int
	perPage  int
	hasMore  bool
	last     *modelMessage // on the page, in its direction
}

// nearby is a pair of Explanation.ContextOf and Explanation.Offset.
type nearby struct {
	id     string
	offset int
}

// recall answers in; past is the message at which its cursor stands. As a
// listing it answers as ListMessages does.
func (m *model) recall(in recall.Request, past *modelMessage, listing bool) expectation {
	if in.ThreadID != "" {
		owner, known := m.owners[in.ThreadID]
		if !known {
			return expectation{code: recall.CodeNotFound}
		}
		if in.ResourceID != "" && in.ResourceID != owner {
			return expectation{code: recall.CodeForbidden}
		}
	}
	out := expectation{perPage: perPage(in, listing)}
	newest := in.Direction != recall.Ascending
	if listing {
		newest = in.Direction == recall.Descending
	}
	matching := m.ordered(func(message *modelMessage) bool {
		if in.ThreadID != "" && message.threadID != in.ThreadID || in.ThreadID == "" && m.owners[message.threadID] != in.ResourceID {
			return false
		}
		return matches(in.Filter, message)
	})
	if !in.SkipTotal {
		out.total = of(int64(len(matching)))
		if out.perPage == 0 {
			out.total = of(int64(0))
		}
	}
	if in.Cursor == nil {
		out.page = of(0)
		if in.Page != nil {
			out.page = in.Page
		}
	}
	page := m.page(in, matching, past, newest, &out)
	m.explain(in, page, &out)
	if listing && newest {
		slices.Reverse(out.messages)
	}
	return out
}

func perPage(in recall.Request, listing bool) int {
	filtered := in.Filter.DateRange != recall.DateRange{} || len(in.Filter.Metadata)+len(in.Filter.Where)+len(in.Filter.Roles) > 0
	switch {
	case in.PerPage != nil:
		return *in.PerPage
	case listing:
		return 40
	case len(in.Include) > 0 && in.Page == nil && in.Cursor == nil && !filtered:
		return 0
	}
	return 10
}

// page gives the messages of the page, oldest first.
func (m *model) page(in recall.Request, matching []*modelMessage, past *modelMessage, newest bool, out *expectation) []*modelMessage {
	walk := slices.Clone(matching)
	if newest {
		slices.Reverse(walk)
	}
	if past != nil {
		walk = slices.DeleteFunc(walk, func(message *modelMessage) bool {
			if newest {
				return before(message, past) >= 0
			}
			return before(message, past) <= 0
		})
	}
	if out.perPage != recall.All {
		skip := 0
		if in.Page != nil {
			skip = *in.Page * out.perPage
		}
		walk = walk[min(skip, len(walk)):]
		out.hasMore = out.perPage > 0 && len(walk) > out.perPage
		walk = walk[:min(out.perPage, len(walk))]
	}
	if len(walk) > 0 {
		out.last = walk[len(walk)-1]
	}
	slices.SortFunc(walk, before)
	return walk
}

// explain adds to the page what is included, with its context and tool calls.
func (m *model) explain(in recall.Request, page []*modelMessage, out *expectation) {
	reasons := make(map[*modelMessage]map[recall.Reason]bool)
	contexts := make(map[*modelMessage][]nearby)
	add := func(message *modelMessage, reason recall.Reason) {
		if reasons[message] == nil {
			reasons[message] = make(map[recall.Reason]bool)
		}
		reasons[message][reason] = true
	}
	for _, message := range page {
		add(message, recall.ReasonPage)
	}
	for _, item := range in.Include {
		around, at := m.included(in, item)
		if around == nil {
			continue
		}
		add(around[at], recall.ReasonInclude)
		for i, message := range around {
			offset := i - at
			if offset < 0 && -offset <= orZero(item.Previous) || offset > 0 && offset <= orZero(item.Next) {
				add(message, recall.ReasonContext)
				contexts[message] = append(contexts[message], nearby{item.ID, offset})
			}
		}
	}
	for grown := in.KeepToolPairs; grown; {
		grown = false
		for message := range reasons {
			for _, call := range m.calls(message) {
				grown = grown || reasons[call] == nil
				add(call, recall.ReasonToolCall)
			}
		}
	}
	out.reasons = make(map[string][]recall.Reason)
	out.contexts = make(map[string][]nearby)
	for message, why := range reasons {
		out.messages = append(out.messages, message)
		for _, reason := range []recall.Reason{recall.ReasonPage, recall.ReasonInclude, recall.ReasonContext, recall.ReasonToolCall} {
			if why[reason] {
				out.reasons[message.id] = append(out.reasons[message.id], reason)
			}
		}
		out.contexts[message.id] = nearest(contexts[message])
	}
	slices.SortFunc(out.messages, before)
}

// nearest keeps the contexts at the least distance; which of them is named is free.
func nearest(contexts []nearby) []nearby {
	least := -1
	for _, c := range contexts {
		if distance := max(c.offset, -c.offset); least < 0 || distance < least {
			least = distance
		}
	}
	return slices.DeleteFunc(contexts, func(c nearby) bool { return max(c.offset, -c.offset) > least })
}

// included gives the thread of an included message and its place there; nil,
// where the id names none that may be seen.
func (m *model) included(in recall.Request, item recall.Include) ([]*modelMessage, int) {
	inThread := cmp.Or(item.ThreadID, in.ThreadID)
	for _, message := range m.messages {
		if message.id != item.ID ||
			inThread != "" && message.threadID != inThread ||
			in.ResourceID != "" && m.owners[message.threadID] != in.ResourceID {
			continue
		}
		around := m.thread(message.threadID)
		return around, slices.Index(around, message)
	}
	return nil, 0
}

// calls gives, for each result that message holds, the nearest earlier message
// of its thread with the call.
func (m *model) calls(message *modelMessage) []*modelMessage {
	var nearest []*modelMessage
	for _, id := range toolIDs(message, "result") {
		calls := m.ordered(func(other *modelMessage) bool {
			return other.threadID == message.threadID && before(other, message) < 0 && slices.Contains(toolIDs(other, "call"), id)
		})
		if len(calls) > 0 {
			nearest = append(nearest, calls[len(calls)-1])
		}
	}
	return nearest
}

func toolIDs(message *modelMessage, state string) []string {
	var content struct {
		Parts []struct {
			ToolInvocation struct{ State, ToolCallID string }
		}
	}
	if json.Unmarshal(message.content, &content) != nil {
		return nil
	}
	var list []string
	for _, part := range content.Parts {
		if part.ToolInvocation.State == state {
			list = append(list, part.ToolInvocation.ToolCallID)
		}
	}
	return list
}

func orZero(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// matches says whether a message passes a filter.
func matches(filter recall.Filter, message *modelMessage) bool {
	r := filter.DateRange
	if r.Start != nil && (message.createdAt.Before(*r.Start) || r.StartExclusive && message.createdAt.Equal(*r.Start)) {
		return false
	}
	if r.End != nil && (message.createdAt.After(*r.End) || r.EndExclusive && message.createdAt.Equal(*r.End)) {
		return false
	}
	if len(filter.Roles) > 0 && !slices.Contains(filter.Roles, message.role) {
		return false
	}
	metadata := metadataOf(message.content)
	for key, want := range filter.Metadata {
		if !equalTo(metadata, key, want) {
			return false
		}
	}
	return holds(metadata, filter.Where)
}

// metadataOf decodes content.metadata; what is no object has no keys.
func metadataOf(content json.RawMessage) map[string]any {
	decoded, _ := decode(content).(map[string]any)
	metadata, _ := decoded["metadata"].(map[string]any)
	return metadata
}

func decode(text []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		panic(fmt.Sprintf("%q: %v", text, err))
	}
	return value
}

// holds evaluates operators. There are two truth values: a comparison with
// what is missing or of another type is false, and $ne, $nin and $not are the
// opposites of $eq, $in and what they hold.
func holds(metadata, where map[string]any) bool {
	for key, value := range where {
		var truth bool
		switch key {
		case "$and":
			truth = !slices.ContainsFunc(value.([]any), func(part any) bool { return !holds(metadata, part.(map[string]any)) })
		case "$or":
			truth = slices.ContainsFunc(value.([]any), func(part any) bool { return holds(metadata, part.(map[string]any)) })
		case "$not":
			truth = !holds(metadata, value.(map[string]any))
		default:
			truth = keyHolds(metadata, key, value)
		}
		if !truth {
			return false
		}
	}
	return true
}

func keyHolds(metadata map[string]any, key string, asked any) bool {
	operators, ok := asked.(map[string]any)
	if !ok {
		return equalTo(metadata, key, asked)
	}
	for operator, want := range operators {
		var truth bool
		switch operator {
		case "$not":
			truth = !keyHolds(metadata, key, want)
		case "$eq":
			truth = equalTo(metadata, key, want)
		case "$ne":
			truth = !equalTo(metadata, key, want)
		case "$in":
			truth = oneOf(metadata, key, want.([]any))
		case "$nin":
			truth = !oneOf(metadata, key, want.([]any))
		case "$exists":
			_, exists := metadata[key]
			truth = exists == want.(bool)
		default:
			difference, alike := compared(metadata, key, want)
			truth = alike && map[string]bool{
				"$gt": difference > 0, "$gte": difference >= 0, "$lt": difference < 0, "$lte": difference <= 0,
			}[operator]
		}
		if !truth {
			return false
		}
	}
	return true
}

func oneOf(metadata map[string]any, key string, values []any) bool {
	return slices.ContainsFunc(values, func(want any) bool { return equalTo(metadata, key, want) })
}

// equalTo says that the key exists with exactly that value and type.
func equalTo(metadata map[string]any, key string, want any) bool {
	value, exists := metadata[key]
	if !exists {
		return false
	}
	switch want := want.(type) {
	case nil:
		return value == nil
	case bool:
		return value == want
	}
	difference, alike := compared(metadata, key, want)
	return alike && difference == 0
}

// compared compares two numbers by value, exactly, or two strings by Unicode
// code points: PostgreSQL compares the strings of a jsonpath byte by byte, and
// bytes of UTF-8 are in the order of the code points they encode. (UTF-16 code
// units, by which JavaScript compares, are not.)
func compared(metadata map[string]any, key string, want any) (difference int, alike bool) {
	value, exists := metadata[key]
	if !exists {
		return 0, false
	}
	if wanted, ok := want.(string); ok {
		value, ok := value.(string)
		return slices.Compare([]rune(value), []rune(wanted)), ok
	}
	number, ok := value.(json.Number)
	if !ok {
		return 0, false
	}
	return rational(string(number)).Cmp(rational(decimal(want))), true
}

// decimal writes a Go number as JSON does: a float by the fewest digits that
// tell it from its neighbours.
func decimal(number any) string {
	switch n := number.(type) {
	case float64:
		return strconv.FormatFloat(n, 'g', -1, 64)
	case float32:
		return strconv.FormatFloat(float64(n), 'g', -1, 32)
	}
	return fmt.Sprint(number)
}

func rational(number string) *big.Rat {
	value, ok := new(big.Rat).SetString(number)
	if !ok {
		panic("not a number: " + number)
	}
	return value
}

// canonical writes JSON in one way, so that equal values are equal texts: 1e2
// and 100, and members in any order.
func canonical(value json.RawMessage) string {
	return string(object(exact(decode(value))))
}

func exact(value any) any {
	switch value := value.(type) {
	case json.Number:
		return map[string]string{"number": rational(string(value)).RatString()}
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = exact(item)
		}
		return list
	case map[string]any:
		members := make(map[string]any, len(value))
		for key, item := range value {
			members[key] = exact(item)
		}
		return members
	}
	return value
}

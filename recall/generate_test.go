package recall_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/pgrecall/pgrecall/recall"
)

// Few keys, so that filters and messages meet; some are words of SQL/JSON path.
var metadataKeys = []string{"s", "k_1", "_", "last", "type", "exists", "K"}

var scalarTexts = []string{
	`null`, `true`, `false`,
	`0`, `-0`, `0.0`, `1`, `2`, `2.0`, `20e-1`, `1e2`, `100`, `100.00`, `-1`, `-1.5`, `-15e-1`, `0.1`, `0.3`, `0.30000000000000004`,
	`9007199254740992`, `9007199254740993`, `123456789012345678901234567890`, `123456789012345678901234567891`,
	`1e300`, `-1e300`, `1e-300`, `1.7976931348623157e308`,
	`""`, `"2"`, `"a"`, `"A"`, `"b"`, `"aa"`, `"null"`, `"true"`, `" "`, `"é"`, `"e\u0301"`, `"\uffee"`, `"\ud83d\ude00"`, `"\u2028"`,
	`"\""`, `"\\"`, `"\\\""`, `"\n\t\u0001"`, `"$"`, `"$.s"`, `"' OR 1=1 --"`, `"%"`, `"*/"`, `"{}"`, `"[1]"`, `"<&>"`, `"\u007f"`,
}

var compoundTexts = []string{`[]`, `{}`, `[2]`, `["a"]`, `[null]`, `{"s":2}`, `[[2]]`, `[{"s":2}]`, `[1,"a",true]`}

// scalars draws a JSON scalar as the text of its value.
func scalars() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom(scalarTexts),
		rapid.SampledFrom(scalarTexts[:9]),
		rapid.Map(rapid.IntRange(-3, 3), strconv.Itoa),
		rapid.Map(rapid.Float64Range(-10, 10), func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }),
		rapid.Map(rapid.StringMatching(`[a-cé$"\\]{0,3}`), func(s string) string { return string(object(s)) }),
	)
}

// wanted draws a value of a filter, in each of the Go types that may hold it.
func wanted() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.Map(scalars(), func(text string) any { return decode([]byte(text)) }),
		rapid.Custom(func(t *rapid.T) any {
			n := rapid.IntRange(-2, 100).Draw(t, "n")
			return rapid.SampledFrom([]any{
				n, int8(n), int16(n), int32(n), int64(n), uint8(max(n, 0)), uint16(max(n, 0)), uint32(max(n, 0)), uint64(max(n, 0)), uint(max(n, 0)),
				float64(n), float32(n), float64(n) / 10, float32(n) / 10, 1e300, int64(9007199254740993),
			}).Draw(t, "number")
		}),
	)
}

// metadata draws the text of a message's content.metadata; "" is for none.
func metadata() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			return ""
		case 1:
			return rapid.SampledFrom([]string{`null`, `"s"`, `3`, `true`, `{}`}).Draw(t, "odd")
		}
		var members []string
		for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(metadataKeys), 0, 4, rapid.ID).Draw(t, "keys") {
			value := rapid.OneOf(scalars(), scalars(), scalars(), rapid.SampledFrom(compoundTexts)).Draw(t, "value")
			members = append(members, fmt.Sprintf("%q:%s", key, value))
		}
		return "{" + strings.Join(members, ",") + "}"
	})
}

// pairs draws a filter.metadata.
func pairs() *rapid.Generator[map[string]any] {
	return rapid.MapOfN(rapid.SampledFrom(metadataKeys), wanted(), 0, 2)
}

// wheres draws a filter.where.
func wheres(depth int) *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		where := make(map[string]any)
		for range rapid.IntRange(0, 2).Draw(t, "members") {
			kind := rapid.IntRange(0, 8).Draw(t, "kind")
			switch {
			case kind == 0 && depth > 0:
				where["$not"] = wheres(depth-1).Draw(t, "not")
			case kind == 1 && depth > 0:
				where["$and"] = whereList(depth-1).Draw(t, "and")
			case kind <= 3 && depth > 0:
				where["$or"] = whereList(depth-1).Draw(t, "or")
			case kind == 4:
				where[rapid.SampledFrom(metadataKeys).Draw(t, "key")] = wanted().Draw(t, "value")
			default:
				where[rapid.SampledFrom(metadataKeys).Draw(t, "key")] = operators(depth).Draw(t, "operators")
			}
		}
		return where
	})
}

func whereList(depth int) *rapid.Generator[[]any] {
	return rapid.SliceOfN(rapid.Map(wheres(depth), func(where map[string]any) any { return where }), 0, 3)
}

// operators draws what is asked of one key.
func operators(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		asked := make(map[string]any)
		for _, operator := range rapid.SliceOfNDistinct(
			rapid.SampledFrom([]string{"$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$not"}), 1, 2, rapid.ID,
		).Draw(t, "operators") {
			switch operator {
			case "$exists":
				asked[operator] = rapid.Bool().Draw(t, "exists")
			case "$in", "$nin":
				asked[operator] = rapid.SliceOfN(wanted(), 0, 4).Draw(t, "list")
			case "$gt", "$gte", "$lt", "$lte":
				asked[operator] = wanted().Filter(func(value any) bool {
					_, isBool := value.(bool)
					return value != nil && !isBool
				}).Draw(t, "bound")
			case "$not":
				if depth == 0 {
					asked["$exists"] = true
				} else {
					asked[operator] = operators(depth-1).Draw(t, "not")
				}
			default:
				asked[operator] = wanted().Draw(t, "value")
			}
		}
		return asked
	})
}

// conversation is what one random case holds: resources, threads, messages.
type conversation struct {
	*model
	resources, threads []string
}

// drawConversation saves random threads in m, under names of their own: times
// out of order and equal, batches over several threads, some messages saved
// twice, and tool calls with their results.
func drawConversation(t *rapid.T, m memory) conversation {
	own := prefix()
	c := conversation{
		model:     newModel(),
		resources: []string{own + "ana", own + "bob"},
		threads:   []string{own + "b", own + "a", own + "ä", own + "B"},
	}
	owners := rapid.SliceOfN(rapid.SampledFrom(c.resources), len(c.threads), len(c.threads)).Draw(t, "owners")
	for i, id := range c.threads {
		m.create(t, recall.NewThread{ID: id, ResourceID: owners[i]})
		c.owners[id] = owners[i]
	}
	var drafts []recall.NewMessage
	for i := range rapid.SampledFrom([]int{24, 16, 8, 3, 0}).Draw(t, "messages") {
		place := rapid.SampledFrom([]int{0, 0, 0, 1, 1, 2, 3}).Draw(t, "thread")
		drafts = append(drafts, recall.NewMessage{
			ID: own + strconv.Itoa(i), ThreadID: c.threads[place], ResourceID: owners[place],
			Role:      rapid.SampledFrom([]string{"user", "assistant", "tool"}).Draw(t, "role"),
			Type:      rapid.SampledFrom([]string{"", "v2"}).Draw(t, "type"),
			CreatedAt: epoch.Add(time.Duration(rapid.IntRange(0, 8).Draw(t, "ms")) * time.Millisecond),
			Content:   drawContent(t),
		})
	}
	c.drawToolPairs(t, drafts)
	for len(drafts) > 0 {
		n := rapid.IntRange(1, len(drafts)).Draw(t, "batch")
		c.saveAll(t, m, drafts[:n])
		if rapid.IntRange(0, 4).Draw(t, "again") == 0 {
			again := drafts[rapid.IntRange(0, n-1).Draw(t, "which")]
			again.CreatedAt = again.CreatedAt.Add(time.Hour) // must not move it
			again.Role = "assistant"
			c.saveAll(t, m, []recall.NewMessage{again})
		}
		drafts = drafts[n:]
	}
	return c
}

func drawContent(t *rapid.T) json.RawMessage {
	drawn := metadata().Draw(t, "metadata")
	if drawn == "" {
		return json.RawMessage(`{"format":2,"parts":[]}`)
	}
	return withMetadata(drawn)
}

// drawToolPairs makes some of the drafts calls and later ones their results; some
// come to be both, of different calls.
func (c *conversation) drawToolPairs(t *rapid.T, drafts []recall.NewMessage) {
	order := newModel()
	at := make(map[string]int)
	for i, draft := range drafts {
		order.save(draft, draft.CreatedAt)
		at[draft.ID] = i
	}
	for _, id := range c.threads {
		line := order.thread(id)
		for pair := range rapid.IntRange(0, len(line)/2).Draw(t, "pairs") {
			call := rapid.IntRange(0, len(line)-2).Draw(t, "call")
			result := rapid.IntRange(call+1, len(line)-1).Draw(t, "result")
			// The ids repeat over threads, where they mean other calls.
			toolID := "call-" + strconv.Itoa(pair)
			addTool(&drafts[at[line[call].id]], "call", toolID)
			addTool(&drafts[at[line[result].id]], "result", toolID)
		}
	}
}

func addTool(draft *recall.NewMessage, state, id string) {
	content := decode(draft.Content).(map[string]any)
	added := decode(tools(state, []string{id})).(map[string]any)
	content["parts"] = append(content["parts"].([]any), added["parts"].([]any)...)
	draft.Content = object(content)
}

func (c *conversation) saveAll(t *rapid.T, m memory, messages []recall.NewMessage) {
	saved := m.save(t, messages...)
	for i, message := range messages {
		c.save(message, saved[i].CreatedAt)
	}
}

// drawRequest draws a request about the conversation.
func (c *conversation) drawRequest(t *rapid.T) recall.Request {
	in := recall.Request{
		Direction:     rapid.SampledFrom([]recall.Direction{"", recall.Ascending, recall.Descending}).Draw(t, "direction"),
		PerPage:       optional(t, "perPage", rapid.SampledFrom([]int{recall.All, 50, 5, 3, 2, 1, 0})),
		KeepToolPairs: rapid.Bool().Draw(t, "keepToolPairs"),
		SkipTotal:     rapid.IntRange(0, 3).Draw(t, "skipTotal") == 0,
		Explain:       rapid.Bool().Draw(t, "explain"),
	}
	switch rapid.IntRange(0, 3).Draw(t, "scope") {
	case 0, 1:
		in.ThreadID = rapid.SampledFrom(append(slices.Repeat(c.threads[:2], 3), c.threads[2], c.threads[3], "unknown")).Draw(t, "threadId")
	case 2:
		in.ThreadID = rapid.SampledFrom(c.threads).Draw(t, "threadId")
		in.ResourceID = c.owners[in.ThreadID]
		if rapid.IntRange(0, 9).Draw(t, "other") == 0 {
			in.ResourceID = rapid.SampledFrom(c.resources).Draw(t, "resourceId")
		}
	default:
		in.ResourceID = rapid.SampledFrom(c.resources).Draw(t, "resourceId")
	}
	if rapid.Bool().Draw(t, "walk") {
		in.Cursor = of("")
	} else {
		in.Page = optional(t, "page", rapid.IntRange(0, 3))
	}
	if rapid.Bool().Draw(t, "filtered") {
		in.Filter = drawFilter(t)
	}
	for range rapid.SampledFrom([]int{0, 0, 1, 2, 5}).Draw(t, "includes") {
		in.Include = append(in.Include, c.drawInclude(t))
	}
	return in
}

func drawFilter(t *rapid.T) recall.Filter {
	var filter recall.Filter
	only := rapid.SampledFrom([]string{"", "", "date", "metadata", "where"}).Draw(t, "only")
	may := func(part string) bool { return only == part || only == "" && rapid.Bool().Draw(t, part+"?") }
	if may("date") {
		filter.DateRange = recall.DateRange{
			Start: optional(t, "start", bounds()), End: optional(t, "end", bounds()),
			StartExclusive: rapid.Bool().Draw(t, "startExclusive"), EndExclusive: rapid.Bool().Draw(t, "endExclusive"),
		}
	}
	if may("metadata") {
		filter.Metadata = pairs().Draw(t, "metadata")
	}
	if may("where") {
		filter.Where = wheres(2).Draw(t, "where")
	}
	if only == "" && rapid.IntRange(0, 3).Draw(t, "roles?") == 0 {
		filter.Roles = rapid.SliceOfN(rapid.SampledFrom([]string{"user", "assistant", "tool", "system"}), 0, 2).Draw(t, "roles")
	}
	return filter
}

// bounds draws bounds on, beside and between milliseconds.
func bounds() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		at := epoch.Add(time.Duration(rapid.IntRange(-1, 9).Draw(t, "ms")) * time.Millisecond)
		at = at.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 1, 1000, 500_000, 999_999}).Draw(t, "ns")))
		return at.In(time.FixedZone("", rapid.SampledFrom([]int{0, 19800, -12600}).Draw(t, "zone")))
	})
}

func (c *conversation) drawInclude(t *rapid.T) recall.Include {
	item := recall.Include{
		ID:       "unknown",
		Previous: optional(t, "previous", rapid.SampledFrom([]int{0, 1, 2, 3, 200})),
		Next:     optional(t, "next", rapid.SampledFrom([]int{0, 1, 2, 3, 200})),
	}
	if len(c.messages) > 0 && rapid.IntRange(0, 9).Draw(t, "known") > 0 {
		message := rapid.SampledFrom(c.messages).Draw(t, "message")
		item.ID = message.id
		if rapid.Bool().Draw(t, "own") {
			item.ThreadID = message.threadID
		}
	}
	if rapid.IntRange(0, 9).Draw(t, "astray") == 0 {
		item.ThreadID = rapid.SampledFrom(c.threads).Draw(t, "threadId")
	}
	return item
}

func optional[T any](t *rapid.T, name string, generator *rapid.Generator[T]) *T {
	if !rapid.Bool().Draw(t, name+"?") {
		return nil
	}
	return of(generator.Draw(t, name))
}

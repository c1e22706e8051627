package recall_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// A failing property prints the seed that shows it again; the file that it
	// would leave beside the sources too says no more.
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	goleak.VerifyTestMain(m)
}

// The thread and resource of what a test leaves open.
const (
	thread   = "thread"
	resource = "ana"
)

// epoch is the time that the tests' messages are counted from.
var epoch = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// second is epoch and n seconds.
func second(n int) time.Time { return epoch.Add(time.Duration(n) * time.Second) }

// memory is a memory on a database of the test's own.
type memory struct {
	*recall.Memory
	pool *pgxpool.Pool
}

func newMemory(t testing.TB) memory {
	t.Helper()
	return memoryOn(dbtest.New(t))
}

func memoryOn(pool *pgxpool.Pool) memory {
	return memory{recall.New(pool, recall.DefaultLimits()), pool}
}

// must is what a helper needs of *testing.T, *testing.F and *rapid.T.
type must interface {
	require.TestingT
	Helper()
}

var (
	_ must = (*testing.T)(nil)
	_ must = (*rapid.T)(nil)
)

// message fills in what set leaves open but id and time.
func message(set recall.NewMessage) recall.NewMessage {
	if set.ThreadID == "" {
		set.ThreadID = thread
	}
	if set.ResourceID == "" {
		set.ResourceID = resource
	}
	if set.Role == "" {
		set.Role = "user"
	}
	if set.Content == nil {
		set.Content = text("hello")
	}
	return set
}

// series gives n messages prefix1, prefix2, ..., each a second after the one before.
func series(prefix string, n int, set recall.NewMessage) []recall.NewMessage {
	messages := make([]recall.NewMessage, n)
	for i := range messages {
		next := message(set)
		next.ID = prefix + strconv.Itoa(i+1)
		next.CreatedAt = second(i + 1)
		messages[i] = next
	}
	return messages
}

// text is the content of a message that says no more than s.
func text(s string) json.RawMessage {
	return object(map[string]any{"format": 2, "parts": []any{map[string]any{"type": "text", "text": s}}})
}

// withMetadata is a content with the metadata, which is JSON.
func withMetadata(metadata string) json.RawMessage {
	return json.RawMessage(`{"format":2,"parts":[],"metadata":` + metadata + `}`)
}

// toolCall is the content of a message that calls a tool; toolResult that of
// the one that answers it.
func toolCall(ids ...string) json.RawMessage   { return tools("call", ids) }
func toolResult(ids ...string) json.RawMessage { return tools("result", ids) }

func tools(state string, ids []string) json.RawMessage {
	parts := make([]any, len(ids))
	for i, id := range ids {
		parts[i] = map[string]any{
			"type":           "tool-invocation",
			"toolInvocation": map[string]any{"state": state, "toolCallId": id, "toolName": "weather", "args": map[string]any{}},
		}
	}
	return object(map[string]any{"format": 2, "parts": parts})
}

func object(value any) json.RawMessage {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return encoded
}

func (m memory) save(t must, messages ...recall.NewMessage) []recall.Message {
	t.Helper()
	saved, err := m.SaveMessages(context.Background(), messages, true)
	require.NoError(t, err)
	return saved
}

func (m memory) create(t must, set recall.NewThread) recall.Thread {
	t.Helper()
	if set.ResourceID == "" {
		set.ResourceID = resource
	}
	created, err := m.CreateThread(context.Background(), set)
	require.NoError(t, err)
	return created
}

func (m memory) recall(t must, in recall.Request) recall.Result {
	t.Helper()
	result, err := m.Recall(context.Background(), in)
	require.NoError(t, err)
	return result
}

// stored gives all messages of a thread, oldest first.
func (m memory) stored(t must, threadID string) []recall.Message {
	t.Helper()
	result, err := m.ListMessages(context.Background(), recall.Request{ThreadID: threadID, PerPage: of(recall.All)})
	require.NoError(t, err)
	return result.Messages
}

// scan runs a query that gives one row and reads it.
func (m memory) scan(t must, query string, args []any, into ...any) {
	t.Helper()
	require.NoError(t, m.pool.QueryRow(context.Background(), query, args...).Scan(into...))
}

// column runs a query that gives one column.
func column[T any](t must, m memory, query string, args ...any) []T {
	t.Helper()
	rows, err := m.pool.Query(context.Background(), query, args...)
	require.NoError(t, err)
	defer rows.Close()
	var values []T
	for rows.Next() {
		var value T
		require.NoError(t, rows.Scan(&value))
		values = append(values, value)
	}
	require.NoError(t, rows.Err())
	return values
}

// contents is everything in the database, to see that nothing changed.
func (m memory) contents(t must) []string {
	t.Helper()
	return column[string](t, m, `
		SELECT 't' || row_to_json(t)::text FROM recall.threads AS t
		UNION ALL
		SELECT 'm' || row_to_json(m)::text FROM recall.messages AS m
		ORDER BY 1`)
}

// requireCounted checks that each thread's message_count is the number of its messages.
func (m memory) requireCounted(t must) {
	t.Helper()
	require.Empty(t, column[string](t, m, `
		SELECT t.id || ' says ' || t.message_count || ' and has ' || (SELECT count(*) FROM recall.messages AS m WHERE m.thread_id = t.id)
		FROM recall.threads AS t
		WHERE t.message_count <> (SELECT count(*) FROM recall.messages AS m WHERE m.thread_id = t.id)
			OR t.last_seq < (SELECT coalesce(max(m.seq), 0) FROM recall.messages AS m WHERE m.thread_id = t.id)`))
}

func ids(messages []recall.Message) []string {
	list := make([]string, len(messages))
	for i, message := range messages {
		list[i] = message.ID
	}
	return list
}

func newIDs(messages []recall.NewMessage) []string {
	list := make([]string, len(messages))
	for i, message := range messages {
		list[i] = message.ID
	}
	return list
}

func number(text string) json.Number { return json.Number(text) }

func of[T any](value T) *T { return &value }

// requireCode checks that err is an *Error with the code, which blames the
// fields, in any order.
func requireCode(t must, err error, code recall.Code, fields ...string) {
	t.Helper()
	var known *recall.Error
	require.ErrorAs(t, err, &known)
	require.Equal(t, code, known.Code, "%v", err)
	blamed := []string{}
	for _, issue := range known.Issues {
		blamed = append(blamed, issue.Field)
	}
	require.ElementsMatch(t, append([]string{}, fields...), blamed, "%v", err)
}

// codeOf is the code of err; empty for one without.
func codeOf(err error) recall.Code {
	var known *recall.Error
	if errors.As(err, &known) {
		return known.Code
	}
	return ""
}

// together calls each function n times, all at once, and gives their errors.
func together(n int, functions ...func(i int) error) []error {
	var (
		start sync.WaitGroup
		done  sync.WaitGroup
		mu    sync.Mutex
		all   []error
	)
	start.Add(1)
	for _, function := range functions {
		for i := range n {
			done.Go(func() {
				start.Wait()
				err := function(i)
				mu.Lock()
				defer mu.Unlock()
				all = append(all, err)
			})
		}
	}
	start.Done()
	done.Wait()
	return all
}

// prefix gives names that no other caller has, so that many random cases can
// share one database.
func prefix() string { return "x" + strconv.FormatInt(names.Add(1), 36) + "-" }

var names atomic.Int64

// newPool gives another pool on the database of m, as another process has it.
func newPool(t testing.TB, m memory) *pgxpool.Pool {
	return dbtest.Open(t, m.pool.Config().ConnString())
}

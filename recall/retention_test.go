package recall_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/recall"
)

const day = 24 * time.Hour

// keep stores how long an agent's threads and messages are kept.
func (m memory) keep(t must, agentID, retention string) {
	t.Helper()
	require.NoError(t, m.SaveAgent(ctx, agentID, []byte(`{"retention":`+retention+`}`)))
}

// saveFor saves as a call of an agent does.
func (m memory) saveFor(t must, agentID string, messages ...recall.NewMessage) {
	t.Helper()
	_, err := m.SaveMessages(ctx, messages, true, recall.ForAgent(agentID))
	require.NoError(t, err)
}

// idle makes it so long that a thread was updated.
func (m memory) idle(t must, threadID string, age time.Duration) {
	t.Helper()
	_, err := m.pool.Exec(ctx, `UPDATE recall.threads SET updated_at = updated_at - $2::interval WHERE id = $1`, threadID, age)
	require.NoError(t, err)
}

// aged gives messages of these ages, named after them in days.
func aged(threadID string, ages ...int) []recall.NewMessage {
	var messages []recall.NewMessage
	for _, days := range ages {
		messages = append(messages, message(recall.NewMessage{
			ID: fmt.Sprintf("%s-%d", threadID, days), ThreadID: threadID, CreatedAt: time.Now().Add(-time.Duration(days) * day),
		}))
	}
	return messages
}

func (m memory) threadIDs(t must) []string {
	t.Helper()
	return column[string](t, m, `SELECT t.id FROM recall.threads AS t ORDER BY t.id`)
}

func TestMessagesAreKeptAsLongAsTheirThreadsAgentSays(t *testing.T) {
	t.Parallel()
	m, _ := counted(t)
	m.keep(t, "month", `{"messages":{"maxAge":"30d"}}`)
	m.keep(t, "year", `{"messages":{"maxAge":"365d"}}`)
	m.keep(t, "ever", `{}`)
	kept := map[string]int{"month": 2, "year": 3, "ever": 4, "": 4, "not stored": 4}
	for agent := range kept {
		m.saveFor(t, agent, aged("of "+agent, 400, 31, 29, 0)...)
		m.idle(t, "of "+agent, 400*day)
	}
	_, err := m.SaveMessages(ctx, aged("of month", 300), true, recall.ForAgent("ever"))
	require.NoError(t, err, "the thread stays what it is")
	before := column[string](t, m, `SELECT t.updated_at::text FROM recall.threads AS t ORDER BY t.id`)
	require.NoError(t, m.Retain(ctx))
	assert.Equal(t, before, column[string](t, m, `SELECT t.updated_at::text FROM recall.threads AS t ORDER BY t.id`))
	for agent, want := range kept {
		assert.Len(t, m.stored(t, "of "+agent), want, agent)
	}
	assert.Equal(t, []string{"of month-29", "of month-0"}, ids(m.stored(t, "of month")))
	m.requireCounted(t)
	assert.Empty(t, column[string](t, m, `SELECT e.message_id FROM recall.embeddings_1 AS e WHERE e.message_id IN ('of month-400', 'of month-300', 'of year-400')`))
}

func TestThreadsAreKeptAsLongAsTheirAgentSays(t *testing.T) {
	t.Parallel()
	m, _ := counted(t)
	m.keep(t, "support", `{"threads":{"maxAge":"30d"}}`)
	m.keep(t, "broken", `{}`)
	_, err := m.pool.Exec(ctx, `UPDATE recall.agents SET config = '{"lastMessages":"many"}' WHERE id = 'broken'`)
	require.NoError(t, err)
	m.saveFor(t, "support", aged("old", 40, 35)...)
	m.saveFor(t, "support", aged("in use", 40, 35)...)
	m.saveFor(t, "", aged("of nobody", 40)...)
	m.create(t, recall.NewThread{ID: "empty", AgentID: "support"})
	for threadID, age := range map[string]time.Duration{"old": 31 * day, "in use": 29 * day, "of nobody": 31 * day, "empty": 31 * day} {
		m.idle(t, threadID, age)
	}
	requireCode(t, m.Retain(ctx), recall.CodeInvalid, "config.lastMessages")
	assert.Equal(t, []string{"in use", "of nobody"}, m.threadIDs(t), "in spite of the other agent")
	assert.Equal(t, []string{"in use-35", "in use-40", "of nobody-40"}, m.vectorsOf(t, "true"))
	assert.Len(t, m.stored(t, "in use"), 2, "a thread goes as a whole or not at all")
	require.NoError(t, m.DeleteAgent(ctx, "broken"))
	require.NoError(t, m.Retain(ctx))
}

func TestAClonesAgentIsThatOfItsSourceAndAThreadCreatedAgainKeepsIts(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	agents := func() []string {
		return column[string](t, m, `SELECT t.id || ' ' || coalesce(t.agent_id, 'none') FROM recall.threads AS t ORDER BY t.id`)
	}
	m.create(t, recall.NewThread{ID: "a", AgentID: "first"})
	m.create(t, recall.NewThread{ID: "a", AgentID: "second"})
	m.create(t, recall.NewThread{ID: "b"})
	m.create(t, recall.NewThread{ID: "b", AgentID: "second"})
	require.NoError(t, cloned(m, recall.ThreadClone{SourceID: "a", ID: "c", ResourceID: "bob"}))
	require.NoError(t, cloned(m, recall.ThreadClone{SourceID: "b", ID: "d"}))
	_, err := m.SaveTurn(ctx, recall.Turn{
		ThreadID: "e", ResourceID: "bob", AgentID: "third",
		Messages: []recall.NewMessage{{ID: "m", Role: "user", Content: text("Hello")}},
	})
	require.NoError(t, err)
	_, err = m.TransferThread(ctx, "a", "", "bob")
	require.NoError(t, err)
	assert.Equal(t, []string{"a first", "b none", "c first", "d none", "e third"}, agents())
}

// More than one batch of messages, of threads, and a thread of more than a batch.
func TestWhatIsKeptNoLongerGoesInBatches(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.keep(t, "support", `{"messages":{"maxAge":"30d"},"threads":{"maxAge":"90d"}}`)
	insert := func(threadID, idle string, messages int) {
		_, err := m.pool.Exec(ctx, `
			INSERT INTO recall.threads (id, resource_id, agent_id, message_count, last_seq, created_at, updated_at)
			VALUES ($1, 'ana', 'support', $3, $3, now() - interval '100 days', now() - $2::interval)`, threadID, idle, messages)
		require.NoError(t, err)
		_, err = m.pool.Exec(ctx, `
			INSERT INTO recall.messages (id, thread_id, resource_id, seq, role, content, created_at, updated_at)
			SELECT $1 || '-' || n, $1, 'ana', n, 'user', '{}', now() - make_interval(days => 29 + n % 2 * 2), now()
			FROM generate_series(1, $2::integer) AS n`, threadID, messages)
		require.NoError(t, err)
	}
	insert("large", "1 day", 5000)
	insert("larger than a batch", "91 days", 1500)
	for i := range 1200 {
		if i%2 == 0 {
			insert(fmt.Sprintf("idle %04d", i), "91 days", 1)
		} else {
			insert(fmt.Sprintf("used %04d", i), "89 days", 2)
		}
	}
	require.NoError(t, m.Retain(ctx))
	m.requireCounted(t)
	var threads, messages int
	m.scan(t, `SELECT count(*), sum(message_count) FROM recall.threads`, nil, &threads, &messages)
	assert.Equal(t, []int{1 + 600, 2500 + 600}, []int{threads, messages})
	assert.Empty(t, column[string](t, m, `SELECT m.id FROM recall.messages AS m WHERE m.created_at < now() - interval '30 days'`))
}

func TestAThreadThatIsUsedWhileItExpiresStays(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	m.keep(t, "support", `{"threads":{"maxAge":"30d"}}`)
	m.saveFor(t, "support", aged("t", 40)...)
	m.idle(t, "t", 31*day)
	writer, err := m.pool.Begin(ctx)
	require.NoError(t, err)
	_, err = writer.Exec(ctx, `UPDATE recall.threads SET updated_at = now() WHERE id = 't'`)
	require.NoError(t, err)
	retained := make(chan error, 1)
	go func() { retained <- m.Retain(ctx) }()
	m.waiting(t, 1)
	require.NoError(t, writer.Commit(ctx))
	require.NoError(t, <-retained)
	assert.Equal(t, []string{"t"}, m.threadIDs(t))
}

package dataset_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/bench/dataset"
	"github.com/pgrecall/pgrecall/db/dbtest"
)

func TestScaledSetsHaveOneLargeThreadAndManySmallOnes(t *testing.T) {
	t.Parallel()
	for messages, want := range map[int]dataset.Shape{
		0:                       {LargeThread: 200, Threads: 2, Resources: 1},
		dataset.MinMessages:     {LargeThread: 200, Threads: 2, Resources: 1},
		6_000:                   {LargeThread: 2_000, Threads: 20, Resources: 4},
		dataset.DefaultMessages: {LargeThread: 20_000, Threads: 200, Resources: 40},
		1_020_000:               {LargeThread: 20_000, Threads: 5_000, Resources: 1_000},
	} {
		assert.Equal(t, want, dataset.Scaled(messages))
	}
}

func TestTheDataAreWhatTheConstantsSay(t *testing.T) {
	t.Parallel()
	shape := dataset.Scaled(6_000)
	shape.EmptyThreads = 3
	conn, err := pgx.Connect(t.Context(), dbtest.Seeded(t, shape))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	count := func(query string, args ...any) (n int) {
		t.Helper()
		require.NoError(t, conn.QueryRow(t.Context(), query, args...).Scan(&n))
		return n
	}
	large := dataset.ThreadID(0)
	assert.Equal(t, shape.Messages(), count(`SELECT count(*) FROM recall.messages`))
	assert.Equal(t, 1+shape.Threads+shape.EmptyThreads, count(`SELECT count(*) FROM recall.threads`))
	assert.Equal(t, shape.Resources, count(`SELECT count(DISTINCT resource_id) FROM recall.threads`))
	assert.Equal(t, 1, count(`SELECT count(*) FROM recall.threads WHERE id = $1 AND resource_id = $2 AND message_count = $3`,
		large, dataset.ResourceID(0), shape.LargeThread))
	assert.Zero(t, count(`
		SELECT count(*) FROM recall.threads AS t
		WHERE (message_count, last_seq) IS DISTINCT FROM
			(SELECT (count(*), coalesce(max(seq), 0)) FROM recall.messages AS m WHERE m.thread_id = t.id)`))
	const owned = `SELECT count(*) FROM recall.messages WHERE resource_id = $1`
	assert.Equal(t, shape.LargeResource(), count(owned, dataset.ResourceID(0)))
	assert.Equal(t, dataset.ResourceMessages, count(owned, shape.Owner(7)))
	assert.Equal(t, 1, count(`SELECT count(*) FROM recall.threads WHERE id = $1 AND resource_id = $2`, dataset.ThreadID(7), shape.Owner(7)))
	const having = `SELECT count(*) FROM recall.messages WHERE content -> 'metadata' ->> $1 = $2 AND (thread_id = $3) = $4`
	rare := shape.LargeThread / dataset.RareEvery
	assert.Equal(t, rare, count(having, dataset.FlagKey, dataset.FlagValue, large, true))
	assert.Zero(t, count(having, dataset.FlagKey, dataset.FlagValue, large, false))
	assert.Equal(t, rare, count(having, dataset.TopicKey, dataset.TopicValue, large, true))
	assert.Equal(t, shape.Threads*dataset.ThreadMessages/2, count(having, dataset.TopicKey, dataset.TopicValue, large, false))
	assert.Equal(t, 1, count(`SELECT count(*) FROM recall.messages WHERE id = $1 AND thread_id = $2 AND seq = 77`,
		dataset.MessageID(large, 77), large))
	const answered = `
		SELECT count(*) FROM recall.messages AS call
		JOIN recall.messages AS result ON result.thread_id = call.thread_id AND result.seq = call.seq + $1
		WHERE recall.tool_call_ids(call.content) = recall.tool_result_ids(result.content)
			AND recall.tool_call_ids(call.content) <> '[]'`
	far := shape.Messages() / 200
	assert.Equal(t, far, count(answered, dataset.FarCall))
	assert.Equal(t, shape.Messages()/10-far, count(answered, 4))
}

func TestTextsDifferAndQuestionsAskForTheirWords(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), dbtest.Seeded(t, dataset.Scaled(dataset.MinMessages)))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	count := func(query string, args ...any) (n int) {
		t.Helper()
		require.NoError(t, conn.QueryRow(t.Context(), query, args...).Scan(&n))
		return n
	}
	assert.Zero(t, count(`
		SELECT count(*) - count(DISTINCT content -> 'parts' -> 0 ->> 'text') FROM recall.messages WHERE lexemes <> ''`))
	draw := rand.New(rand.NewPCG(1, 2)).IntN
	for range 10 {
		question := dataset.Question(draw)
		found := count(`
			SELECT count(*) FROM recall.messages
			WHERE lexemes @@ replace(plainto_tsquery('english', $1)::text, '&', '|')::tsquery`, question)
		assert.Positive(t, found, question)
		assert.Less(t, found, dataset.MinMessages/2, question)
	}
}

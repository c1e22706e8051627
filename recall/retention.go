package recall

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgrecall/pgrecall/dbgen"
)

// expiredAtOnce is how many messages one transaction removes of what is kept no
// longer, and how many threads, unless a single thread has more.
const expiredAtOnce = 1000

// Retain removes what the configurations of agents keep no longer: threads in which
// nothing has happened for their time, with all that hangs on them, and messages
// that are older than theirs. An agent's threads are those that its calls created,
// and the clones of them. It works in many transactions, which lock a few threads
// each for a moment, and can be stopped at any time.
func (m *Memory) Retain(ctx context.Context) error {
	if err := m.caller.mayOperate(); err != nil {
		return err
	}
	agents, err := m.Agents(ctx)
	if err != nil {
		return err
	}
	var failed error
	for _, agent := range agents {
		// One that cannot be read any more is no reason to keep what others' agents
		// want to be gone.
		failed = errors.Join(failed, m.retainFor(ctx, agent))
	}
	return failed
}

func (m *Memory) retainFor(ctx context.Context, agent Agent) error {
	config, err := m.ReadConfig("config", agent.Stored)
	if err != nil || config.Retention == nil {
		return err
	}
	if age := config.Retention.Threads; age > 0 {
		if err := m.expireThreads(ctx, agent.ID, age); err != nil {
			return databaseError(err)
		}
	}
	if age := config.Retention.Messages; age > 0 {
		return databaseError(m.expireMessages(ctx, agent.ID, age))
	}
	return nil
}

// expireThreads removes the threads of an agent that were last updated longer ago
// than age, each in one piece.
func (m *Memory) expireThreads(ctx context.Context, agentID string, age time.Duration) error {
	for {
		rows, err := m.queries.ThreadListExpired(ctx, m.db, dbgen.ThreadListExpiredParams{
			AgentID: agentID, MaxAgeSeconds: age.Seconds(), MaxRows: expiredAtOnce,
		})
		if err != nil || len(rows) == 0 {
			return err
		}
		var ids []string
		messages := int64(0)
		for i, row := range rows {
			ids = append(ids, row.ID)
			messages += row.MessageCount
			if messages < expiredAtOnce && i < len(rows)-1 {
				continue
			}
			if err := m.expireThese(ctx, agentID, age, ids); err != nil {
				return err
			}
			ids, messages = nil, 0
		}
	}
}

func (m *Memory) expireThese(ctx context.Context, agentID string, age time.Duration, ids []string) error {
	return m.write(ctx, func(tx pgx.Tx) error {
		_, err := m.queries.ThreadDeleteExpired(ctx, tx, dbgen.ThreadDeleteExpiredParams{
			Ids: ids, AgentID: agentID, MaxAgeSeconds: age.Seconds(),
		})
		return err
	})
}

// expireMessages removes the messages of an agent's threads that are older than age.
func (m *Memory) expireMessages(ctx context.Context, agentID string, age time.Duration) error {
	next := dbgen.MessageListExpiredParams{AgentID: agentID, MaxAgeSeconds: age.Seconds(), MaxRows: expiredAtOnce}
	for {
		rows, err := m.queries.MessageListExpired(ctx, m.db, next)
		if err != nil || len(rows) == 0 {
			return err
		}
		expired := dbgen.MessageDeleteExpiredParams{MaxAgeSeconds: next.MaxAgeSeconds}
		for _, row := range rows {
			expired.Ids, expired.ThreadIds = append(expired.Ids, row.ID), append(expired.ThreadIds, row.ThreadID)
		}
		expired.ThreadIds = slices.Compact(expired.ThreadIds) // they come thread by thread
		err = m.write(ctx, func(tx pgx.Tx) error {
			if _, err := m.lockMany(ctx, tx, expired.ThreadIds...); err != nil {
				return err
			}
			_, err := m.queries.MessageDeleteExpired(ctx, tx, expired)
			return err
		})
		if err != nil {
			return err
		}
		last := rows[len(rows)-1]
		next.FromUpdatedAt, next.FromThreadID = last.UpdatedAt, last.ThreadID
	}
}

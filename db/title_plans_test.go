package db_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
	"github.com/pgrecall/pgrecall/recall/chat/chattest"
	chat "github.com/pgrecall/pgrecall/recall/chat/remote"
)

// insertJobs fills the table of jobs: half of them are for titles of other threads.
const insertJobs = `
	INSERT INTO recall.river_job (kind, args, max_attempts, queue)
	SELECT
		CASE WHEN i % 2 = 0 THEN 'title' ELSE 'embed' END,
		CASE
			WHEN i % 2 = 0 THEN jsonb_build_object('threadId', 'other' || i, 'resourceId', 'r')
			ELSE jsonb_build_object('messageIds', jsonb_build_array('m' || i), 'resourceId', 'r')
		END,
		5, 'any'
	FROM generate_series(1, 20000) AS i`

// A save asks for jobs while it holds its threads, however many there are.
func TestTitlesAreLookedUpByIndexHoweverManyJobsThereAre(t *testing.T) {
	t.Parallel()
	for mode, runs := range planCacheModes {
		for _, statistics := range []string{"none", "fresh"} {
			t.Run(mode+" with statistics "+statistics, func(t *testing.T) {
				t.Parallel()
				url := dbtest.URL(t)
				owner := connect(t, url)
				exec(t, owner, insertJobs)
				exec(t, owner, `INSERT INTO recall.threads (id, resource_id, created_at, updated_at)
					SELECT 'other' || i, 'r', now(), now() FROM generate_series(1, 5000) AS i`)
				if statistics == "fresh" {
					exec(t, owner, "VACUUM (ANALYZE) recall.threads, recall.river_job")
				}
				explainer := dbtest.NewExplainer(t, runs)
				client, err := chat.NewOpenAI(chat.Config{BaseURL: chattest.NewStub(t, "Title").URL(), Model: "small"})
				require.NoError(t, err)
				t.Cleanup(client.Close)
				memory := recall.New(explained(t, url, true, mode, explainer), recall.DefaultLimits(), recall.WithChat(client))
				require.NoError(t, memory.SaveAgent(t.Context(), "agent", []byte(`{"generateTitle":true}`)))
				_, err = memory.SaveMessages(t.Context(), newMessages("m", "new"), true, recall.ForAgent("agent"))
				require.NoError(t, err)
				require.NoError(t, memory.GenerateTitle(t.Context(), "new", "agent"))
				requireTitleIndexes(t, explainer.Take())
			})
		}
	}
}

// requireTitleIndexes looks for what each statement for titles must read.
func requireTitleIndexes(t *testing.T, explained []dbtest.Explained) {
	t.Helper()
	want := map[string]string{
		"ThreadListUntitled": "river_job_title_idx", "ThreadListOpening": "messages_thread_order_idx",
		"ThreadSetGeneratedTitle": "messages_pkey",
	}
	for _, statement := range explained {
		index, ours := want[statement.Name]
		for _, plan := range statement.Plans {
			if ours {
				assert.Contains(t, plan.Indexes(), index, "%s: %s", statement.Name, plan)
				assert.LessOrEqual(t, plan.Visited(), 2.0*batchSize, "%s: %s", statement.Name, plan)
			}
		}
		delete(want, statement.Name)
	}
	assert.Empty(t, want, "statements that did not run")
}

package db_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
)

// Why a statement need not ask whom it is for.
const (
	ofNobody = "what it finds is of no resource"
	behind   = "it runs behind one that asks, in its transaction, on what that has locked or found"
	ofOwner  = "it finds by an owner, which the memory has asked about"
	byJobs   = "it is for jobs and operators, who are bound by nothing"
	taken    = "it looks for ids that are taken, whoever has them"
	byCaller = "its key is the caller's own"
)

// unscoped are the statements that do not ask whom they are for.
var unscoped = map[string]string{
	"AgentGet": ofNobody, "AgentList": ofNobody, "AgentSave": ofNobody, "AgentDelete": ofNobody,
	"EmbeddingIndexList": ofNobody, "EmbeddingIndexGet": ofNobody, "EmbeddingIndexGetLive": ofNobody, "EmbeddingIndexLockMany": ofNobody,
	"EmbeddingIndexCreate": ofNobody, "EmbeddingIndexCreateTable": ofNobody, "EmbeddingIndexSetState": ofNobody,
	"EmbeddingIndexDropTable": ofNobody, "EmbeddingIndexDelete": ofNobody, "EmbeddingIndexLockWriters": ofNobody,
	"EmbeddingIndexWaitBriefly": ofNobody, "EmbeddingIndexLockAll": ofNobody, "JobBacklog": ofNobody, "JobDeleteByQueue": ofNobody,
	"EmbeddingIndexStayIdle": ofNobody, "EmbeddingIndexTryBackfill": ofNobody,
	"ErasureCount": ofNobody, "ErasureCountHold": ofNobody, "ErasureCountUp": ofNobody,

	"EmbeddingIndexCoverage": byJobs, "EmbeddingIndexListMissing": byJobs, "GraphBacklogList": byJobs, "GraphPromote": byJobs,
	"MessageListExpired": byJobs, "MessageDeleteExpired": byJobs, "ThreadListExpired": byJobs, "ThreadDeleteExpired": byJobs,
	"JobNoteTimeout": byJobs, "JobListWaiting": byJobs, "JobCompleteMany": byJobs, "IdempotencyKeyDeleteExpired": byJobs,

	// Behind ThreadLockMany, ThreadLockManyOfMessages, ThreadHold or ThreadClone.
	"MessageDeleteByThread": behind, "EmbeddingForgetMany": behind, "EmbeddingListDue": behind, "EmbeddingStoreMany": behind,
	"EmbeddingCopyMany": behind, "ThreadListUntitled": behind, "ThreadSetGeneratedTitle": behind, "JobTransfer": behind,
	"WorkingMemoryLock": behind, "WorkingMemoryVersionGet": behind, "WorkingMemoryVersionAdd": behind, "WorkingMemoryCopy": behind,
	// Behind MessageListContents, of the ids that it gave.
	"JobCountGivenUp": behind,

	"ResourceHeld": ofOwner, "ResourceActivity": ofOwner, "ResourceDelete": ofOwner, "ErasureLock": ofOwner,
	"IdempotencyKeyLockManyOfResource": ofOwner, "IdempotencyKeyDeleteByResource": ofOwner, "ThreadLockManyOfResource": ofOwner,
	"WorkingMemoryLockManyOfResource": ofOwner, "JobDeleteByResource": ofOwner,
	// Behind these locks.
	"ThreadCountClonesBeside": behind, "ThreadForgetSources": behind, "ThreadDeleteMany": behind, "MessageDeleteByThreads": behind,
	"EmbeddingDeleteByThreads": behind, "WorkingMemoryVersionDeleteMany": behind, "WorkingMemoryDeleteMany": behind,

	"ThreadCreate": taken, "ThreadCreateMissing": taken, "ThreadIsTaken": taken,
	// Behind ThreadLockMany, but for messages of other threads that have the ids.
	"MessageSaveMany": taken,

	"APIKeyCreate": ofNobody, "APIKeyList": ofNobody, "APIKeyGet": ofNobody, "APIKeyExists": ofNobody, "APIKeyRevoke": ofNobody, "APIKeyUse": ofNobody,
	"IdempotencyKeyClaim": byCaller, "IdempotencyKeyGet": byCaller,
}

func TestEveryStatementAsksWhomItIsFor(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("queries/*.sql")
	require.NoError(t, err)
	statements := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, statement := range strings.Split("\n"+string(text), "\n-- name: ")[1:] {
			name, _, _ := strings.Cut(statement, " ")
			statements[name] = strings.Contains(statement, "recall.reached(")
		}
	}
	for name, scoped := range statements {
		if reason, exempt := unscoped[name]; scoped == exempt {
			t.Errorf("%s: asks for recall.reached: %t; reason not to: %q", name, scoped, reason)
		}
	}
	for name := range unscoped {
		assert.Contains(t, statements, name, "there is no such statement")
	}
}

// oddIDs are all distinct, however alike they look or are read by something.
var oddIDs = []string{
	"a", "a:", "a:b", "A", "a ", " a", "a\t", "a\n", "a%", "a_", "%", "_", "a'b", `a"b`, `a\b`, "a/b", "../a", "..", ".", "%2e%2e", "a+b", "a b",
	"\u00e9", "e\u0301", "\u00c9", "日本", "日", "\U0001F600", "\U0001F601", "a\u200b", "{a,b}", "NULL", "null", `{"",""}`, "(a)", "a|b", "*", "a*", "\x01",
	"\uffff", "\U0010ffff", strings.Repeat("x", 512), strings.Repeat("x", 511),
}

func TestWhatIsReachedIsToTheByte(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	for _, bound := range append([]string{""}, oddIDs...) {
		for _, caller := range []recall.Caller{{Resource: bound}, {Prefix: bound}, {Resource: bound, Prefix: "a"}} {
			var reached []string
			require.NoError(t, pool.QueryRow(t.Context(),
				`SELECT coalesce(array_agg(i.id ORDER BY i.n) FILTER (WHERE recall.reached(i.id, $2)), '{}') FROM unnest($1::text[]) WITH ORDINALITY AS i (id, n)`,
				append([]string{""}, oddIDs...), []string{caller.Resource, caller.Prefix}).Scan(&reached))
			want := []string{}
			for _, id := range append([]string{""}, oddIDs...) {
				if caller.Reaches(id) {
					want = append(want, id)
				}
			}
			require.Equal(t, want, reached, "%+v", caller)
		}
	}
	var nothing *bool
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT recall.reached('a', NULL)`).Scan(&nothing))
	require.Nil(t, nothing, "who is not named reaches nothing")
}

package recall_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pgrecall/pgrecall/db"
	"github.com/pgrecall/pgrecall/db/dbtest"
	"github.com/pgrecall/pgrecall/recall"
)

// constraintNames reads the names out of the source, so that none is forgotten
// here.
func constraintNames(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "pgerr.go", nil, 0)
	require.NoError(t, err)
	var names []string
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "constraint") {
			return true
		}
		for _, value := range spec.Values {
			name, err := strconv.Unquote(value.(*ast.BasicLit).Value)
			require.NoError(t, err)
			names = append(names, name)
		}
		return true
	})
	require.NotEmpty(t, names)
	return names
}

func TestConstraintsThatErrorsSpeakOfExist(t *testing.T) {
	t.Parallel()
	m := newMemory(t)
	known := column[string](t, m, `SELECT c.conname FROM pg_constraint AS c WHERE c.connamespace = 'recall'::regnamespace`)
	for _, name := range constraintNames(t) {
		require.Contains(t, known, name)
	}
}

// Nothing in the package can violate these but a change behind its back; then
// the caller still gets the right code.
func TestViolationsAreErrorsOfTheCaller(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		prepare string // what happens behind its back
		code    recall.Code
		do      func(m memory) error
	}{
		"threads_pkey": {
			`SELECT 1`, recall.CodeConflict,
			func(m memory) error { return cloned(m, recall.ThreadClone{ID: thread}) },
		},
		"messages_pkey": {
			`CREATE OR REPLACE FUNCTION recall.new_id() RETURNS text LANGUAGE sql VOLATILE PARALLEL SAFE RETURN 'same'`, recall.CodeConflict,
			func(m memory) error { return cloned(m, recall.ThreadClone{}) },
		},
		"messages_thread_id_seq_key": {
			`UPDATE recall.threads SET last_seq = 2, message_count = 1`, recall.CodeUnavailable,
			func(m memory) error {
				if _, err := m.pool.Exec(ctx, `UPDATE recall.messages SET seq = 3 WHERE id = 'm2'`); err != nil {
					return err
				}
				return saved(m, recall.NewMessage{ID: "new"})
			},
		},
		"messages_thread_id_resource_id_fkey": {
			`CREATE FUNCTION recall.stray() RETURNS trigger LANGUAGE plpgsql AS
				$$ BEGIN NEW.resource_id := 'nobody'; RETURN NEW; END $$;
			CREATE TRIGGER stray BEFORE INSERT ON recall.messages FOR EACH ROW EXECUTE FUNCTION recall.stray()`, recall.CodeNotFound,
			func(m memory) error { return saved(m, recall.NewMessage{ID: "new"}) },
		},
		"embedding_indexes_name_key": {
			`SELECT 1`, recall.CodeConflict,
			func(m memory) error {
				_, err := m.CreateIndex(ctx, recall.NewIndex{Name: "potion-base-8M", Model: "m", Dimensions: 3})
				return err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := seeded(t)
			_, err := m.pool.Exec(ctx, one.prepare)
			require.NoError(t, err)
			count := len(m.contents(t))
			requireCode(t, one.do(m), one.code)
			require.Len(t, m.contents(t), count, "nothing was added")
			m.requireIdle(t)
		})
	}
	covered := []string{"threads_pkey", "messages_pkey", "messages_thread_id_seq_key", "messages_thread_id_resource_id_fkey", "embedding_indexes_name_key"}
	require.ElementsMatch(t, covered, constraintNames(t), "each is provoked here")
}

// requireIdle checks that no connection was left in a transaction.
func (m memory) requireIdle(t must) {
	t.Helper()
	idle := func() bool {
		var open int
		m.scan(t, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
				AND backend_type = 'client backend'`, nil, &open)
		return open == 0
	}
	require.Eventually(t, idle, 10*time.Second, 5*time.Millisecond, "a transaction stays open")
}

// raise makes each insertion of a message fail with the SQLSTATE, the first
// `times` times.
func (m memory) raise(t must, state string, times int) {
	t.Helper()
	_, err := m.pool.Exec(ctx, `
		CREATE SEQUENCE recall.raised;
		CREATE FUNCTION recall.raise() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF nextval('recall.raised') <= `+strconv.Itoa(times)+` THEN
				RAISE EXCEPTION USING ERRCODE = '`+state+`';
			END IF;
			RETURN NEW;
		END $$;
		CREATE TRIGGER raise BEFORE INSERT ON recall.messages FOR EACH STATEMENT EXECUTE FUNCTION recall.raise()`)
	require.NoError(t, err)
}

func TestStatesOfPostgreSQLHaveTheirCode(t *testing.T) {
	t.Parallel()
	for state, code := range map[string]recall.Code{
		"40001": recall.CodeUnavailable, // serialization_failure
		"40P01": recall.CodeUnavailable, // deadlock_detected
		"57014": recall.CodeUnavailable, // query_canceled
		"55P03": recall.CodeUnavailable, // lock_not_available
		"25006": recall.CodeUnavailable, // read_only_sql_transaction: a standby
		"25P03": recall.CodeUnavailable, // idle_in_transaction_session_timeout
		"53300": recall.CodeUnavailable, // too_many_connections
		"53100": recall.CodeUnavailable, // disk_full
		"57P01": recall.CodeUnavailable, // admin_shutdown
		"57P03": recall.CodeUnavailable, // cannot_connect_now
		"08006": recall.CodeUnavailable, // connection_failure
		"22P05": recall.CodeUnstorable,  // untranslatable_character
		"22021": recall.CodeUnstorable,  // character_not_in_repertoire
		"22012": "",                     // division_by_zero: a fault of ours
		"42P01": "",                     // undefined_table
		"XX000": "",                     // internal_error
	} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			m := seeded(t)
			untouched := m.contents(t)
			m.raise(t, state, 1000)
			err := saved(m, recall.NewMessage{ID: "new"})
			require.Error(t, err)
			require.Equal(t, code, codeOf(err), "%v", err)
			require.NotContains(t, messageOf(err), "SQLSTATE")
			require.Equal(t, untouched, m.contents(t))
			m.requireIdle(t)
		})
	}
}

// messageOf is what of an error is shown to callers: nothing without a code.
func messageOf(err error) string {
	if codeOf(err) == "" {
		return ""
	}
	return err.Error()
}

func TestTransactionThatGaveWayIsRunAgain(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"40001", "40P01"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			m := seeded(t)
			m.raise(t, state, 2)
			require.NoError(t, saved(m, recall.NewMessage{ID: "new", CreatedAt: second(9)}))
			require.Equal(t, []string{"m1", "m2", "new"}, ids(m.stored(t, thread)))
			m.requireCounted(t)
		})
	}
}

// everyCall calls each method once and gives their errors by name.
func everyCall(ctx context.Context, m *recall.Memory) map[string]error {
	errs := make(map[string]error)
	_, errs["CreateThread"] = m.CreateThread(ctx, recall.NewThread{ID: thread, ResourceID: resource})
	_, errs["Thread"] = m.Thread(ctx, thread, "")
	_, errs["ListThreads"] = m.ListThreads(ctx, recall.ThreadListing{PerPage: 5})
	_, errs["UpdateThread"] = m.UpdateThread(ctx, recall.ThreadUpdate{ID: thread, Title: of("t")})
	_, errs["TransferThread"] = m.TransferThread(ctx, thread, "", resource)
	_, errs["SaveMessages"] = m.SaveMessages(ctx, series("m", 2, recall.NewMessage{}), true)
	_, errs["UpdateMessages"] = m.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "m1", Role: "user"}}, "")
	_, errs["Recall"] = m.Recall(ctx, recall.Request{ThreadID: thread})
	_, errs["Recall with a filter"] = m.Recall(ctx, recall.Request{ThreadID: thread, Filter: recall.Filter{Roles: []string{"user"}}})
	_, errs["ListMessages"] = m.ListMessages(ctx, recall.Request{ThreadID: thread})
	_, errs["CloneThread"] = m.CloneThread(ctx, recall.ThreadClone{SourceID: thread})
	_, errs["Clones"] = m.Clones(ctx, thread, "")
	_, errs["SourceThread"] = m.SourceThread(ctx, thread, "")
	_, errs["CloneHistory"] = m.CloneHistory(ctx, thread, "")
	_, errs["DeleteMessages"] = m.DeleteMessages(ctx, []string{"m1"}, "")
	_, errs["DeleteThreadMessages"] = m.DeleteThreadMessages(ctx, thread, "")
	errs["DeleteThread"] = m.DeleteThread(ctx, thread, "")
	errs["Ready"] = m.Ready(ctx)
	_, errs["Once"] = m.Once(ctx, key("once", `{}`), saying)
	_, errs["OnceRead"] = m.OnceRead(ctx, key("once read", `{}`), saying)
	errs["ForgetKeys"] = m.ForgetKeys(ctx)
	return errs
}

// openAt opens a pool on an address where there is no database, or none that
// answers.
func openAt(t *testing.T, address string) *pgxpool.Pool {
	t.Helper()
	pool, err := db.Open(context.Background(), db.Config{URL: "postgres://nobody@" + address + "/nothing?sslmode=disable", MaxConns: 2})
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func TestDatabaseThatIsDownIsUnavailable(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	m := recall.New(openAt(t, address), recall.DefaultLimits())
	for name, err := range everyCall(context.Background(), m) {
		require.Error(t, err, name)
		require.Equal(t, recall.CodeUnavailable, codeOf(err), "%s: %v", name, err)
		require.NotContains(t, err.Error(), address, name)
	}
}

func TestDatabaseThatDoesNotAnswerIsUnavailable(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and says nothing
	require.NoError(t, err)
	defer listener.Close()
	m := recall.New(openAt(t, listener.Addr().String()), recall.DefaultLimits())
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	for name, err := range everyCall(ctx, m) {
		require.Error(t, err, name)
		require.Equal(t, recall.CodeUnavailable, codeOf(err), "%s: %v", name, err)
	}
}

func TestEveryCallWorksOnAReadyDatabase(t *testing.T) {
	t.Parallel()
	for name, err := range everyCall(context.Background(), newMemory(t).Memory) {
		require.NoError(t, err, name)
	}
}

func TestDatabaseWithoutTheTablesIsNotReady(t *testing.T) {
	t.Parallel()
	require.Error(t, memoryOn(dbtest.Open(t, dbtest.EmptyURL(t))).Ready(context.Background()))
}

// locked holds the lock of the thread until the test ends, or release.
func (m memory) locked(t *testing.T) (release func()) {
	t.Helper()
	tx, err := m.pool.Begin(context.Background())
	require.NoError(t, err)
	release = func() { _ = tx.Rollback(context.Background()) }
	t.Cleanup(release)
	_, err = tx.Exec(context.Background(), `SELECT 1 FROM recall.threads WHERE id = $1 FOR UPDATE`, thread)
	require.NoError(t, err)
	return release
}

// waiters are the ways to wait for the lock of the thread.
var waiters = map[string]func(ctx context.Context, m memory) error{
	"save": func(ctx context.Context, m memory) error {
		_, err := m.SaveMessages(ctx, series("m", 3, recall.NewMessage{}), true)
		return err
	},
	"update": func(ctx context.Context, m memory) error {
		_, err := m.UpdateMessages(ctx, []recall.MessageUpdate{{ID: "m1", Role: "tool"}}, "")
		return err
	},
	"delete": func(ctx context.Context, m memory) error {
		_, err := m.DeleteMessages(ctx, []string{"m1"}, "")
		return err
	},
	"empty": func(ctx context.Context, m memory) error {
		_, err := m.DeleteThreadMessages(ctx, thread, "")
		return err
	},
	"delete thread": func(ctx context.Context, m memory) error { return m.DeleteThread(ctx, thread, "") },
	"transfer": func(ctx context.Context, m memory) error {
		_, err := m.TransferThread(ctx, thread, "", "bob")
		return err
	},
	"retitle": func(ctx context.Context, m memory) error {
		_, err := m.UpdateThread(ctx, recall.ThreadUpdate{ID: thread, Title: of("new")})
		return err
	},
}

func TestStatementThatTakesTooLongIsUnavailable(t *testing.T) {
	t.Parallel()
	for kind, config := range map[string]db.Config{
		"statement": {StatementTimeout: 20 * time.Millisecond},
		"lock":      {LockTimeout: 20 * time.Millisecond},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			config.URL, config.MaxConns = dbtest.URL(t), 2
			hurried, err := db.Open(context.Background(), config)
			require.NoError(t, err)
			t.Cleanup(hurried.Close)
			m := memoryOn(dbtest.Open(t, config.URL))
			m.save(t, series("m", 2, recall.NewMessage{})...)
			untouched := m.contents(t)
			release := m.locked(t)
			for name, wait := range waiters {
				err := wait(context.Background(), memoryOn(hurried))
				require.Error(t, err, name)
				require.Equal(t, recall.CodeUnavailable, codeOf(err), "%s: %v", name, err)
			}
			release()
			require.Equal(t, untouched, m.contents(t))
			m.requireIdle(t)
		})
	}
}

func TestCancelledCallLeavesNoTransaction(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	narrow, err := db.Open(context.Background(), db.Config{URL: address, MaxConns: 1})
	require.NoError(t, err)
	t.Cleanup(narrow.Close)
	m := memoryOn(dbtest.Open(t, address))
	m.save(t, series("m", 2, recall.NewMessage{})...)
	untouched := m.contents(t)
	for name, wait := range waiters {
		release := m.locked(t)
		ctx, cancel := context.WithCancel(context.Background())
		result := make(chan error, 1)
		go func() { result <- wait(ctx, memoryOn(narrow)) }()
		m.awaitBlocked(t, 1)
		cancel()
		err := <-result
		require.ErrorIs(t, err, context.Canceled, name)
		release()
		m.requireIdle(t)
		require.Equal(t, untouched, m.contents(t), name)
		require.NoError(t, memoryOn(narrow).Ready(context.Background()), "the pool's one connection works again")
	}
}

// A reader waits for no row, but for a table that is being altered.
func TestReaderThatWaitsEndsWithItsContextAndItsTimeout(t *testing.T) {
	t.Parallel()
	readers := map[string]func(ctx context.Context, m memory) error{
		"page": func(ctx context.Context, m memory) error {
			_, err := m.Recall(ctx, recall.Request{ThreadID: thread})
			return err
		},
		"filter": func(ctx context.Context, m memory) error {
			_, err := m.Recall(ctx, recall.Request{ResourceID: resource, Filter: recall.Filter{Roles: []string{"user"}}})
			return err
		},
		"thread": func(ctx context.Context, m memory) error { _, err := m.Thread(ctx, thread, ""); return err },
		"threads": func(ctx context.Context, m memory) error {
			_, err := m.ListThreads(ctx, recall.ThreadListing{})
			return err
		},
		"history": func(ctx context.Context, m memory) error { _, err := m.CloneHistory(ctx, thread, ""); return err },
		"clone": func(ctx context.Context, m memory) error {
			_, err := m.CloneThread(ctx, recall.ThreadClone{SourceID: thread})
			return err
		},
	}
	address := dbtest.URL(t)
	m, patient := memoryOn(dbtest.Open(t, address)), memoryOn(dbtest.Open(t, address))
	hurried, err := db.Open(context.Background(), db.Config{URL: address, MaxConns: 1, StatementTimeout: 20 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(hurried.Close)
	m.save(t, series("m", 2, recall.NewMessage{})...)
	altering, err := m.pool.Begin(ctx)
	require.NoError(t, err)
	defer altering.Rollback(ctx)
	_, err = altering.Exec(ctx, `LOCK TABLE recall.threads, recall.messages IN ACCESS EXCLUSIVE MODE`)
	require.NoError(t, err)
	for name, read := range readers {
		err := read(context.Background(), memoryOn(hurried))
		require.Equal(t, recall.CodeUnavailable, codeOf(err), "%s: %v", name, err)

		cancelled, cancel := context.WithCancel(context.Background())
		result := make(chan error, 1)
		go func() { result <- read(cancelled, patient) }()
		m.awaitBlocked(t, 1)
		cancel()
		require.ErrorIs(t, <-result, context.Canceled, name)
	}
	require.NoError(t, altering.Rollback(ctx))
	m.requireIdle(t)
	require.Len(t, m.contents(t), 3)
	require.Len(t, patient.recall(t, recall.Request{ThreadID: thread}).Messages, 2)
}

func TestRefusedCallLeavesNoTransaction(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	narrow, err := db.Open(context.Background(), db.Config{URL: address, MaxConns: 1})
	require.NoError(t, err)
	t.Cleanup(narrow.Close)
	m, observer := memoryOn(narrow), memoryOn(dbtest.Open(t, address))
	m.save(t, series("m", 2, recall.NewMessage{})...)
	for range 3 {
		requireCode(t, saved(m, recall.NewMessage{ID: "m1", ThreadID: "second"}), recall.CodeConflict, "messages.0.id")
		requireCode(t, saved(m, recall.NewMessage{ID: "new", ResourceID: "bob"}), recall.CodeForbidden)
		requireCode(t, updated(m, recall.MessageUpdate{ID: "unknown"}), recall.CodeNotFound)
		requireCode(t, cloned(m, recall.ThreadClone{ID: thread}), recall.CodeConflict)
		_, err := m.TransferThread(ctx, thread, "bob", "bob")
		requireCode(t, err, recall.CodeForbidden)
		observer.requireIdle(t)
	}
	require.Len(t, observer.contents(t), 3)
}

func TestServerThatEndsTheConnectionIsUnavailableAndNoMore(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	m, victim := memoryOn(dbtest.Open(t, address)), memoryOn(dbtest.Open(t, address))
	m.save(t, series("m", 2, recall.NewMessage{})...)
	untouched := m.contents(t)
	release := m.locked(t)
	result := make(chan error, 1)
	go func() { result <- waiters["save"](context.Background(), victim) }()
	m.awaitBlocked(t, 1)
	_, err := m.pool.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`)
	require.NoError(t, err)
	err = <-result
	require.Equal(t, recall.CodeUnavailable, codeOf(err), "%v", err)
	release()
	require.Equal(t, untouched, m.contents(t))
	require.NoError(t, waiters["save"](context.Background(), victim), "the next call connects anew")
}

func TestConnectionThatEndedWhileIdleIsReplaced(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	m, victim := memoryOn(dbtest.Open(t, address)), memoryOn(dbtest.Open(t, address))
	victim.save(t, series("m", 2, recall.NewMessage{})...)
	_, err := m.pool.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`)
	require.NoError(t, err)
	_, err = victim.Recall(ctx, recall.Request{ThreadID: thread})
	if err != nil {
		require.Equal(t, recall.CodeUnavailable, codeOf(err), "%v", err)
	}
	require.Len(t, victim.recall(t, recall.Request{ThreadID: thread}).Messages, 2)
}

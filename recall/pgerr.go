package recall

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// The constraints whose violation is the caller's doing. A test looks each up in
// the catalog.
const (
	constraintThreadsPkey  = "threads_pkey"
	constraintMessagesPkey = "messages_pkey"
	constraintThreadSeqKey = "messages_thread_id_seq_key"
	constraintThreadFkey   = "messages_thread_id_resource_id_fkey"
	constraintIndexNameKey = "embedding_indexes_name_key"
)

// SQLSTATEs, from PostgreSQL's appendix A.
const (
	stateForeignKeyViolation  = "23503"
	stateUniqueViolation      = "23505"
	stateUndefinedTable       = "42P01"
	stateUndefinedSchema      = "3F000"
	stateUntranslatable       = "22P05"
	stateBadCharacter         = "22021"
	stateSerializationFailure = "40001"
	stateDeadlockDetected     = "40P01"
	stateQueryCanceled        = "57014"
	stateLockNotAvailable     = "55P03"
	stateReadOnlyTransaction  = "25006"
	stateIdleTimeout          = "25P03"
	stateNoEmbeddingIndex     = "PR404" // of search_positions
	classConnection           = "08"
	classInsufficientResource = "53"
	classOperatorIntervention = "57"
)

// threadTaken says no more than that: whose it is, is not everyone's to know.
const threadTaken = "A thread with this id exists already"

// databaseError is the one place that turns what PostgreSQL and the connection
// report into an [*Error]. What it does not know stays as it is, a fault of ours.
func databaseError(err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return serverError(pgErr)
	}
	if isUnreachable(err) {
		return &Error{Code: CodeUnavailable, Message: "The database is out of reach", cause: err}
	}
	return err
}

func serverError(err *pgconn.PgError) error {
	wrap := func(code Code, message string) error {
		return &Error{Code: code, Message: message, cause: err}
	}
	switch {
	case err.Code == stateUniqueViolation && err.ConstraintName == constraintThreadsPkey:
		return wrap(CodeConflict, threadTaken)
	case err.Code == stateUniqueViolation && err.ConstraintName == constraintMessagesPkey:
		return wrap(CodeConflict, "A message with this id exists already")
	case err.Code == stateUniqueViolation && err.ConstraintName == constraintIndexNameKey:
		return wrap(CodeConflict, "An embedding index with this name exists already")
	case err.Code == stateForeignKeyViolation && err.ConstraintName == constraintThreadFkey:
		return wrap(CodeNotFound, "Thread not found")
	case err.Code == stateNoEmbeddingIndex:
		return &Error{Code: CodeInvalid, Message: "Invalid request", Issues: []Issue{{
			Field: "threadConfig.semanticRecall.indexName", Message: "is no embedding index with vectors of this embedder",
		}}, cause: err}
	case err.Code == stateUntranslatable, err.Code == stateBadCharacter:
		return wrap(CodeUnstorable, "The request holds text that PostgreSQL cannot store")
	case err.Code == stateQueryCanceled, err.Code == stateLockNotAvailable:
		return wrap(CodeUnavailable, "The database took too long to answer")
	case isRetryable(err):
		return wrap(CodeUnavailable, "Other writers kept this request from finishing")
	case err.Code == stateReadOnlyTransaction, err.Code == stateIdleTimeout,
		strings.HasPrefix(err.Code, classConnection),
		strings.HasPrefix(err.Code, classInsufficientResource),
		strings.HasPrefix(err.Code, classOperatorIntervention):
		return wrap(CodeUnavailable, "The database is out of reach")
	}
	return err
}

// isUnreachable says that the failure is in the way to the server: no
// connection, or none in time.
func isUnreachable(err error) bool {
	var connectErr *pgconn.ConnectError
	var netErr net.Error
	return errors.As(err, &connectErr) || errors.As(err, &netErr) ||
		errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.ErrUnexpectedEOF) ||
		pgconn.SafeToRetry(err) // nothing was sent: the connection was closed
}

// errThreadVanished ends a transaction that found a thread to exist, which another
// deleted before it could be locked.
var errThreadVanished = overtaken("The thread is being deleted over and over")

// errClonedMeanwhile ends a transaction that is to lock a thread with all its clones,
// of which one was made while it waited for the thread.
var errClonedMeanwhile = overtaken("The threads are being cloned over and over")

// errTakenMeanwhile ends an erasure that finds a key which came and ended while it
// worked, and which somebody takes again who waits for its threads.
var errTakenMeanwhile = overtaken("An idempotency key is being taken over and over")

// overtaken is the error of a transaction that others came in between of. The message
// is for callers where it was in vain to try again.
func overtaken(message string) *Error {
	return &Error{Code: CodeUnavailable, Message: message, overtaken: true}
}

// isRetryable says that the transaction was undone to let another finish, so that
// the same one may succeed now.
func isRetryable(err error) bool {
	var ours *Error
	var pgErr *pgconn.PgError
	return errors.As(err, &ours) && ours.overtaken ||
		errors.As(err, &pgErr) && (pgErr.Code == stateSerializationFailure ||
			pgErr.Code == stateDeadlockDetected ||
			// An embedding index was dropped after the statement had read of it.
			pgErr.Code == stateUndefinedTable && strings.Contains(pgErr.Message, "recall.embeddings_") ||
			// Two transactions took the same position: one of them did not hold the
			// thread's lock, which only a statement from outside can do.
			pgErr.Code == stateUniqueViolation && pgErr.ConstraintName == constraintThreadSeqKey)
}

// isSchemaMissing says that a table or the schema is not there.
func isSchemaMissing(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == stateUndefinedTable || pgErr.Code == stateUndefinedSchema)
}

// isIndexMissing says that a search found no index for its vector.
func isIndexMissing(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == stateNoEmbeddingIndex
}

// isLockTimeout says that a lock was waited for in vain.
func isLockTimeout(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == stateLockNotAvailable
}

func isNoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

// Package recall is a conversation memory in PostgreSQL.
//
// A [Memory] keeps threads and their messages in the schema "recall" of one
// database and gives the right messages back: a page, a page under filters,
// given messages with the messages around them.
//
// Invariants that every method keeps:
//
//   - One total order everywhere: (createdAt, seq) within a thread and
//     (createdAt, threadId, seq) across threads. seq is the position at which a
//     message came into its thread; it never changes and is never reused.
//   - One public method is one transaction. It happens whole or not at all.
//   - A recall is one snapshot of the database and one round trip to it.
//   - Content and metadata are JSON and travel as bytes; they are not decoded.
//   - Every error of the caller's making is an [*Error] with a [Code].
package recall

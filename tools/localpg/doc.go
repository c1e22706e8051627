// Command localpg brings a PostgreSQL with pgvector for one command and takes it away afterwards.
//
//	localpg exec [--name run] [--version 18] -- COMMAND [ARGUMENTS...]
//	localpg clean [--yes]
//
// exec finds a Postgres (see sources), starts it unless it runs already, sets DATABASE_URL for the
// command, runs it, forwards signals to it and returns its exit code. Any number of exec with the same
// name share one server; the last one to end stops it. Data stay in .local/NAME-VERSION between runs.
//
// Invariants:
//   - Whoever uses a server holds a shared lock on its users.lock, and whoever starts or stops it holds
//     its start.lock. The system releases both when a process dies, so no killed exec blocks the next.
//   - A folder at its final name is complete: downloads, unpacking and initdb go to a temporary
//     folder that is renamed at the end. What an interrupted run left is deleted by the next.
//   - Servers listen on 127.0.0.1 only, with a random password kept in a file only the owner can read.
package main

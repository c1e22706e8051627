// Command pgrecall serves a conversation memory from a PostgreSQL database.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// The exit codes of the program.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// commands is the program's command line.
type commands struct {
	Serve   serveCommand   `cmd:"" help:"Answer on HTTP."`
	Migrate migrateCommand `cmd:"" help:"Change or show the version of the database's schema."`
	Doctor  doctorCommand  `cmd:"" help:"Look for what keeps a database from being fit for use."`
	Index   indexCommand   `cmd:"" help:"Create, fill and change embedding indexes."`
	Agent   agentCommand   `cmd:"" help:"Look at and change the stored configurations of agents."`
	Key     keyCommand     `cmd:"" help:"Make, show and revoke the API keys that callers of the server show."`
	Erase   eraseCommand   `cmd:"" help:"Erase all that is held of a resource, and give a receipt."`
	Roles   rolesCommand   `cmd:"" help:"Make the roles of analysts, and grant the server's role what it needs."`
	Jobs    jobsCommand    `cmd:"" help:"Look at what is done after requests, and try it again."`
	Bench   benchCommand   `cmd:"" help:"Measure each operation over HTTP beside its bare SQL, in a database made and dropped for it."`
	Eval    evalCommand    `cmd:"" help:"Measure how well questions find the messages that answer them, in a database made and dropped for it."`
	Version versionCommand `cmd:"" help:"Print the program's version."`
}

// terminal is where a command writes: results to out, all else to log. It reads
// answers from in.
type terminal struct {
	out, log io.Writer
	in       io.Reader
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the next one has its default effect: it ends the
	// process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], terminal{out: os.Stdout, log: os.Stderr, in: os.Stdin}))
}

// run runs one command and gives the exit code.
func run(ctx context.Context, args []string, term terminal) int {
	parser := kong.Must(&commands{},
		kong.Name("pgrecall"),
		kong.Description("A conversation memory over PostgreSQL. Every flag can be given as the variable named beside it."),
		kong.Writers(term.out, term.log),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(term),
		defaults(),
	)
	command, err := parser.Parse(args)
	if err != nil {
		report(term, err)
		return exitUsage
	}
	if err := command.Run(); err != nil {
		report(term, err)
		if errors.As(err, new(usageError)) {
			return exitUsage
		}
		return exitFailed
	}
	return exitOK
}

// usageError is a fault of the command line that only a look at the database shows.
type usageError struct{ error }

func report(term terminal, err error) {
	_, _ = fmt.Fprintln(term.log, "pgrecall:", err)
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
)

const usage = `Usage:
  localpg exec [--name run] [--version 16|18] -- COMMAND [ARGUMENTS...]
      run COMMAND with DATABASE_URL set to a Postgres with pgvector, brought if need be
  localpg clean [--yes]
      remove the databases kept in .local, after asking
`

// exitUsage is the exit code for a wrong command line, as in the product itself.
const exitUsage = 2

func main() {
	code, err := run(context.Background(), os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "localpg: %v\n", err)
	}
	os.Exit(code)
}

// run returns the exit code, and an error when localpg itself has something to say about it.
func run(ctx context.Context, args []string) (int, error) {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return exitUsage, nil
	}
	switch args[0] {
	case "exec":
		opts, err := parseExec(args[1:])
		if err != nil {
			return exitUsage, err
		}
		root, err := checkoutRoot()
		if err != nil {
			return 1, err
		}
		return runExec(ctx, root, opts)
	case "clean":
		flags := flag.NewFlagSet("clean", flag.ContinueOnError)
		yes := flags.Bool("yes", false, "do not ask")
		if err := flags.Parse(args[1:]); err != nil {
			return exitUsage, err
		}
		root, err := checkoutRoot()
		if err != nil {
			return 1, err
		}
		if err := runClean(ctx, root, *yes); err != nil {
			return 1, err
		}
		return 0, nil
	case "help", "-h", "--help":
		fmt.Print(usage)
		return 0, nil
	default:
		fmt.Fprint(os.Stderr, usage)
		return exitUsage, fmt.Errorf("unknown command %q", args[0])
	}
}

// execOptions is the command line of exec.
type execOptions struct {
	name    string   // which cluster, and with which settings: see settings
	version int      // wanted major version of Postgres, 0 for any
	command []string // what to run
}

// nameShape keeps names usable as folder and as Docker Compose project.
var nameShape = regexp.MustCompile(`^[a-z][a-z0-9]{0,30}$`)

func parseExec(args []string) (execOptions, error) {
	var opts execOptions
	flags := flag.NewFlagSet("exec", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&opts.name, "name", "run", "")
	flags.IntVar(&opts.version, "version", 0, "")
	if err := flags.Parse(args); err != nil {
		return opts, fmt.Errorf("exec: %w, see localpg help", err)
	}
	opts.command = flags.Args()
	if !nameShape.MatchString(opts.name) {
		return opts, fmt.Errorf("--name %q: small letters and digits only", opts.name)
	}
	if opts.version != 0 && opts.version < minPostgres {
		return opts, fmt.Errorf("--version %d: at least %d", opts.version, minPostgres)
	}
	if len(opts.command) == 0 {
		return opts, errors.New("exec: no command given, see localpg help")
	}
	return opts, nil
}

// checkoutRoot finds the folder of the nearest go.mod upwards, where .local lies.
func checkoutRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod here or above: run it inside the checkout")
		}
		dir = parent
	}
}

// note tells the user what happens, apart from what the command prints on standard output.
func note(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "localpg: "+format+"\n", args...)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// exitInterrupted is what shells return after Ctrl-C.
const exitInterrupted = 130

// runExec brings the server, runs the command and returns its exit code.
func runExec(ctx context.Context, root string, opts execOptions) (int, error) {
	if url := os.Getenv("DATABASE_URL"); url != "" {
		note("using DATABASE_URL as it is set")
		return runCommand(opts.command, url)
	}
	if err := makeDir(filepath.Join(root, ".local")); err != nil {
		return 1, err
	}
	// Interrupted while it brings the server, exec stops in order: nothing half done is trusted later.
	startCtx, cancel := signal.NotifyContext(ctx, forwarded...)
	url, release, err := acquire(startCtx, root, opts)
	interrupted := startCtx.Err() != nil
	cancel()
	if interrupted && err != nil {
		return exitInterrupted, errors.New("interrupted")
	}
	if err != nil {
		return 1, err
	}
	code := exitInterrupted
	if !interrupted {
		code, err = runCommand(opts.command, url)
	}
	if releaseErr := release(ctx); releaseErr != nil {
		note("%v", releaseErr) // the command's result counts more
	}
	return code, err
}

// acquire finds a source, starts its server unless it runs, and registers as a user of it.
func acquire(ctx context.Context, root string, opts execOptions) (url string, release func(context.Context) error, err error) {
	file := choiceFile(root, opts)
	remembered := readChoice(file)
	began := time.Now()
	e, made, err := choose(ctx, sources(root), opts.version, remembered)
	if err != nil {
		return "", nil, err
	}
	c, err := newCluster(root, opts.name, e.major())
	if err != nil {
		return "", nil, err
	}
	starting, users := c.starting(), c.users()
	if err := starting.Lock(); err != nil {
		return "", nil, err
	}
	defer starting.Unlock() //nolint:errcheck // the end of the process releases it as well
	if err := users.RLock(); err != nil {
		return "", nil, err
	}
	url, err = e.start(ctx, c)
	if err == nil {
		err = rememberCluster(c, made)
	}
	if err == nil && made != remembered {
		err = writeChoice(file, made)
	}
	if err != nil {
		// A server that did start must not stay behind.
		return "", nil, errors.Join(fmt.Errorf("%s: %w", e.describe(), err), users.Unlock(), leave(context.WithoutCancel(ctx), e, c))
	}
	note("%s, ready after %.1f s, data in %s", e.describe(), time.Since(began).Seconds(), c.dir)
	release = func(ctx context.Context) error {
		// The order matters: nobody can register between our leaving and the question whether we were the last.
		if err := starting.Lock(); err != nil {
			return err
		}
		defer starting.Unlock() //nolint:errcheck // as above
		if err := users.Unlock(); err != nil {
			return err
		}
		return leave(ctx, e, c)
	}
	return url, release, nil
}

// leave stops the server if nobody uses it any more. The caller holds starting.
func leave(ctx context.Context, e engine, c cluster) error {
	users := c.users()
	last, err := users.TryLock()
	if err != nil || !last {
		return err
	}
	defer users.Unlock() //nolint:errcheck // the end of the process releases it as well
	return e.stop(ctx, c)
}

// rememberCluster notes in the cluster's state what made it, for clean.
func rememberCluster(c cluster, made choice) error {
	s, err := c.readState()
	if err != nil || s.Source == made.Source && s.Version == made.Version {
		return err
	}
	s.Source, s.Version = made.Source, made.Version
	return c.writeState(s)
}

// runCommand runs the command with the address of the database and passes signals on.
func runCommand(command []string, url string) (int, error) {
	cmd := exec.Command(command[0], command[1:]...) // running it is what we are for; signals end it
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(withoutVariable(os.Environ(), "DATABASE_URL"), "DATABASE_URL="+url)
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded...)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 127, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case sig := <-signals:
			if !fromTerminal(sig) {
				_ = cmd.Process.Signal(sig) // it may have ended meanwhile
			}
		case err := <-done:
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				return 1, err
			}
			return exitCode(cmd.ProcessState), nil
		}
	}
}

// serverEnv is the little that Postgres' programs need; PG... variables of the user would change what they do.
func serverEnv() []string {
	keep := []string{"PATH", "TZ", "TMPDIR"}
	if runtime.GOOS == "windows" {
		keep = append(keep, "SYSTEMROOT", "TEMP", "TMP", "USERPROFILE", "APPDATA")
	}
	env := []string{"LC_ALL=C"}
	for _, name := range keep {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func withoutVariable(env []string, name string) []string {
	var kept []string
	for _, variable := range env {
		if !strings.HasPrefix(variable, name+"=") {
			kept = append(kept, variable)
		}
	}
	return kept
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// startTimeout covers recovery after a kill, too.
	startTimeout = 90 * time.Second
	// stopTimeout bounds a fast shutdown with its checkpoint.
	stopTimeout = 60 * time.Second
	// startTries allows for a port taken in between, or a server that a killed exec had just started.
	startTries = 3
	// pollInterval is the pause between two attempts to connect.
	pollInterval = 50 * time.Millisecond
)

// binaries is an engine made of Postgres' own programs.
type binaries struct {
	from     string // where they come from, for humans
	bin      string // their folder
	postgres version
	vector   version
}

func (b binaries) major() int { return b.postgres[0] }

func (b binaries) describe() string {
	return fmt.Sprintf("Postgres %v with pgvector %v (%s)", b.postgres, b.vector, b.from)
}

// start reuses a server that answers, such as one left by a killed exec.
func (b binaries) start(ctx context.Context, c cluster) (string, error) {
	who, err := accountFor(b.bin, c.dir)
	if err != nil {
		return "", err
	}
	if err := b.initialise(ctx, c, who); err != nil {
		return "", err
	}
	s, err := c.readState()
	if err != nil {
		return "", err
	}
	if s.Password == "" {
		return "", fmt.Errorf("%s exists but its password in %s is lost: remove the folder %s", c.dataDir(), c.stateFile(), c.dir)
	}
	if s, err = b.launch(ctx, c, who, s); err != nil {
		return "", err
	}
	return s.url(database), createDatabase(ctx, s)
}

// initialise makes the cluster's data unless they are there.
func (b binaries) initialise(ctx context.Context, c cluster, who account) error {
	if isDir(c.dataDir()) {
		return nil
	}
	// What cannot be removed is in nobody's way: an initdb just killed may still be ending.
	leftovers, _ := filepath.Glob(filepath.Join(c.dir, "tmp-*"))
	for _, path := range leftovers {
		_ = os.RemoveAll(path)
	}
	tmp, err := os.MkdirTemp(c.dir, "tmp-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // the next run tries again
	password := newPassword()
	passwordFile := filepath.Join(tmp, "password")
	data := filepath.Join(tmp, "data")
	err = errors.Join(os.WriteFile(passwordFile, []byte(password+"\n"), 0o600), who.own(tmp), who.own(passwordFile))
	if err != nil {
		return err
	}
	// Sorting by bytes, as in production with the builtin provider; C.UTF-8 also knows the letters beyond
	// ASCII, but not every system has it.
	var output []byte
	for _, locale := range []string{"C.UTF-8", "C"} {
		output, err = who.run(ctx, program(b.bin, "initdb"), "--pgdata", data, "--username", superuser, "--pwfile", passwordFile,
			"--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", locale, "--no-instructions")
		if err == nil || ctx.Err() != nil {
			break
		}
		if err := os.RemoveAll(data); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, bytes.TrimSpace(output))
	}
	// The password goes first: data without it are of no use, the other way round is harmless.
	if err := c.writeState(state{Password: password}); err != nil {
		return err
	}
	return os.Rename(data, c.dataDir())
}

// launch returns once the server answers: one that runs already, or a new one, on its old port if that is free.
func (b binaries) launch(ctx context.Context, c cluster, who account, s state) (state, error) {
	var err error
	for range startTries {
		if s.Port != 0 && answers(ctx, s.url("postgres")) {
			return s, nil
		}
		if s.Port, err = freePort(s.Port); err != nil {
			return s, err
		}
		// Written before the start, so that the next exec finds the server even if this one is killed now.
		if err := c.writeState(s); err != nil {
			return s, err
		}
		if err = b.launchOnce(ctx, c, who, s); err == nil || ctx.Err() != nil {
			return s, err
		}
	}
	return s, err
}

func (b binaries) launchOnce(ctx context.Context, c cluster, who account, s state) error {
	log, err := os.Create(c.logFile())
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the server has its own descriptor
	args := []string{"-D", c.dataDir(), "-p", strconv.Itoa(s.Port)}
	for _, setting := range append([]string{"listen_addresses=127.0.0.1", "unix_socket_directories=", "logging_collector=off"}, settings(c.name)...) {
		args = append(args, "-c", setting)
	}
	// Not bound to ctx: the server outlives this process if others use it.
	cmd := who.command(context.WithoutCancel(ctx), program(b.bin, "postgres"), args...)
	cmd.Stdout, cmd.Stderr = log, log
	detach(cmd)
	if err := who.start(cmd); err != nil {
		return fmt.Errorf("starting Postgres: %w", err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		pingErr := ping(ctx, s.url("postgres"))
		if pingErr == nil {
			return nil
		}
		select {
		case err := <-exited:
			return fmt.Errorf("the server ended at once (%w); %s says:\n%s", err, c.logFile(), tail(c.logFile()))
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w; %s says:\n%s", pingErr, c.logFile(), tail(c.logFile()))
		case <-time.After(pollInterval):
		}
	}
}

func (b binaries) stop(ctx context.Context, c cluster) error {
	if !isFile(filepath.Join(c.dataDir(), "postmaster.pid")) {
		return nil
	}
	who, err := accountFor(b.bin, c.dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout+time.Second)
	defer cancel()
	output, err := who.run(ctx, program(b.bin, "pg_ctl"), "stop", "--pgdata", c.dataDir(), "--mode", "fast", "--wait",
		"--timeout", strconv.Itoa(int(stopTimeout.Seconds())), "--silent")
	if err != nil && isFile(filepath.Join(c.dataDir(), "postmaster.pid")) {
		return fmt.Errorf("stopping Postgres: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}

// run runs one of Postgres' programs to its end and returns what it printed.
func (a account) run(ctx context.Context, name string, args ...string) ([]byte, error) {
	var output bytes.Buffer
	cmd := a.command(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &output, &output
	err := a.start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	return output.Bytes(), err
}

// remove has nothing to do beyond the folder, which the caller removes.
func (b binaries) remove(context.Context, cluster) error { return nil }

// ping connects once. The random password makes sure that it is this cluster that answers.
func ping(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// answers tells whether the server can be used, after waiting for one that is starting or recovering.
func answers(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := ping(ctx, url)
		var pgErr *pgconn.PgError
		if !errors.As(err, &pgErr) || pgErr.Code != "57P03" { // cannot_connect_now
			return err == nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pollInterval):
		}
	}
}

// createDatabase is done on each start, so that an interrupted first one needs no special care.
func createDatabase(ctx context.Context, s state) error {
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is lost with it
	_, err = conn.Exec(ctx, "CREATE DATABASE "+database)
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "42P04" { // duplicate_database
		return nil
	}
	return err
}

// tail is the end of a log for an error message.
func tail(path string) string {
	const size = 2000
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(text[max(0, len(text)-size):]))
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// source is a place that a Postgres with pgvector may come from.
type source interface {
	// name is the word under which a choice is remembered.
	name() string
	// find returns an engine of major version want (0: any), or says why there is none.
	find(ctx context.Context, want int) (engine, error)
}

// engine runs one Postgres for one cluster.
type engine interface {
	// major is the major version of Postgres.
	major() int
	// describe names the engine for a human.
	describe() string
	// start makes the server of the cluster answer, whether or not it runs already, and returns its address.
	start(ctx context.Context, c cluster) (url string, err error)
	// stop stops it; one that does not run is no error.
	stop(ctx context.Context, c cluster) error
	// remove deletes the cluster's data. The server is stopped.
	remove(ctx context.Context, c cluster) error
}

// sources are all places in the order of preference, after DATABASE_URL.
func sources(root string) []source {
	return []source{
		installedSource{},
		dockerSource{root: root},
		pypiSource{dir: filepath.Join(root, ".local", "postgres")},
	}
}

// choice is what an earlier run took. It comes first the next time: the data lie there, and later runs start fast.
type choice struct {
	Source  string `json:"source"`
	Version int    `json:"version"`
}

// choose takes the remembered source if it still works, else the first that applies.
// When none does, the error lists each with its reason.
func choose(ctx context.Context, all []source, want int, remembered choice) (engine, choice, error) {
	for _, s := range all {
		if s.name() != remembered.Source {
			continue
		}
		e, err := s.find(ctx, remembered.Version)
		if err == nil {
			return e, remembered, nil
		}
		note("%s, used before, is not available now: %v", s.name(), err)
	}
	var reasons []string
	for _, s := range all {
		e, err := s.find(ctx, want)
		if err == nil {
			return e, choice{Source: s.name(), Version: e.major()}, nil
		}
		if ctx.Err() != nil {
			return nil, choice{}, ctx.Err()
		}
		reasons = append(reasons, fmt.Sprintf("  %-10s %v", s.name()+":", err))
	}
	wanted := ""
	if want != 0 {
		wanted = fmt.Sprintf(" %d", want)
	}
	return nil, choice{}, errors.New("no Postgres" + wanted + " with pgvector " + minVector.String() + " or newer could be had:\n" +
		"  given:     DATABASE_URL is not set\n" + strings.Join(reasons, "\n") + "\n" +
		"Any one of these helps:\n" +
		"  - set DATABASE_URL to a database whose role may create the extension vector\n" +
		"  - install Postgres and its package pgvector (Debian: postgresql-17-pgvector, Homebrew: pgvector)\n" +
		"  - start Docker\n" +
		"  - install Python's pip (Debian: python3-pip)")
}

// choiceFile is separate for each wanted version, so that `--version 16` does not change what comes without it.
func choiceFile(root string, opts execOptions) string {
	name := opts.name
	if opts.version != 0 {
		name = fmt.Sprintf("%s-%d", opts.name, opts.version)
	}
	return filepath.Join(root, ".local", name+".source.json")
}

// readChoice returns the zero choice when there is none or it cannot be read: it is only a shortcut.
func readChoice(path string) choice {
	var c choice
	text, err := os.ReadFile(path)
	if err == nil && json.Unmarshal(text, &c) != nil {
		return choice{}
	}
	return c
}

func writeChoice(path string, c choice) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return writeFile(path, append(text, '\n'), 0o644)
}

// writeFile replaces a file at once, so that an interrupted write leaves the old one.
func writeFile(path string, text []byte, mode os.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // gone already when all went well
	_, err = tmp.Write(text)
	err = errors.Join(err, tmp.Chmod(mode), tmp.Close())
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// installedSource is a Postgres with pgvector that the machine has, whose programs run a cluster of our own.
type installedSource struct{}

func (installedSource) name() string { return "installed" }

func (installedSource) find(ctx context.Context, want int) (engine, error) {
	var found []binaries
	var reasons []string
	for _, bin := range installedBinDirs(ctx) {
		b, err := inspect(ctx, bin)
		if err != nil {
			reasons = append(reasons, err.Error())
			continue
		}
		found = append(found, b)
	}
	best, err := bestInstalled(found, want)
	if err != nil {
		reasons = append(reasons, err.Error())
		return nil, errors.New(strings.Join(reasons, "; "))
	}
	return best, nil
}

// bestInstalled is the newest that is new enough, of major version want if that is not 0.
func bestInstalled(found []binaries, want int) (binaries, error) {
	var best binaries
	var reasons []string
	for _, b := range found {
		switch {
		case want != 0 && b.postgres[0] != want:
			reasons = append(reasons, fmt.Sprintf("%s is Postgres %v, wanted %d", b.bin, b.postgres, want))
		case b.postgres[0] < minPostgres:
			reasons = append(reasons, fmt.Sprintf("%s is Postgres %v, older than %d", b.bin, b.postgres, minPostgres))
		case b.vector.less(minVector):
			reasons = append(reasons, fmt.Sprintf("%s has pgvector %v, older than %v", b.bin, b.vector, minVector))
		case best.bin == "" || best.postgres.less(b.postgres):
			best = b
		}
	}
	if best.bin == "" {
		if len(reasons) == 0 {
			reasons = []string{"no Postgres server with pgvector is installed"}
		}
		return binaries{}, errors.New(strings.Join(reasons, "; "))
	}
	return best, nil
}

// installedBinDirs lists folders with a Postgres server, each once: the one on PATH, then where the
// packages of Debian, Red Hat, Homebrew, Postgres.app, EnterpriseDB and a build from source put it.
func installedBinDirs(ctx context.Context) []string {
	var candidates []string
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		candidates = append(candidates, strings.TrimSpace(string(out)))
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql*/bin",
		"/usr/local/opt/postgresql*/bin",
		"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
		"/usr/local/pgsql/bin",
		`C:\Program Files\PostgreSQL\*\bin`,
	} {
		matches, _ := filepath.Glob(pattern) // the only error is a bad pattern
		candidates = append(candidates, matches...)
	}
	seen := map[string]bool{}
	var dirs []string
	for _, dir := range candidates {
		target, err := filepath.EvalSymlinks(dir)
		if err != nil || seen[target] || !isFile(program(target, "postgres")) {
			continue
		}
		seen[target] = true
		dirs = append(dirs, target)
	}
	return dirs
}

// inspect asks a folder of programs for its versions; the error tells what is missing.
func inspect(ctx context.Context, bin string) (binaries, error) {
	for _, name := range []string{"initdb", "pg_ctl"} {
		if !isFile(program(bin, name)) {
			return binaries{}, fmt.Errorf("%s has no %s", bin, name)
		}
	}
	out, err := exec.CommandContext(ctx, program(bin, "postgres"), "--version").Output()
	if err != nil {
		return binaries{}, fmt.Errorf("%s --version: %w", program(bin, "postgres"), err)
	}
	postgres, err := parseVersion(string(out))
	if err != nil {
		return binaries{}, err
	}
	for _, share := range shareDirs(ctx, bin, postgres[0]) {
		control, err := os.ReadFile(filepath.Join(share, "extension", "vector.control"))
		if err != nil {
			continue
		}
		vector, err := controlVersion(string(control))
		if err != nil {
			return binaries{}, fmt.Errorf("pgvector of %s: %w", bin, err)
		}
		return binaries{from: "installed", bin: bin, postgres: postgres, vector: vector}, nil
	}
	return binaries{}, fmt.Errorf("%s is Postgres %v without pgvector", bin, postgres)
}

// shareDirs are the places where the server of this folder looks for extensions, its own answer first.
// Debian ships a folder's pg_config only with the headers, hence the guesses.
func shareDirs(ctx context.Context, bin string, major int) []string {
	if out, err := exec.CommandContext(ctx, program(bin, "pg_config"), "--sharedir").Output(); err == nil {
		return []string{strings.TrimSpace(string(out))}
	}
	return []string{
		fmt.Sprintf("/usr/share/postgresql/%d", major),
		filepath.Join(bin, "..", "share", "postgresql"),
		filepath.Join(bin, "..", "share"),
	}
}

// program is the path of one of Postgres' programs.
func program(bin, name string) string {
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(bin, name)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

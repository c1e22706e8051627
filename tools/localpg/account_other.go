//go:build !linux

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
)

// account is who Postgres runs as: here always the current user.
type account struct{}

// accountFor refuses root, as Postgres would, but says what to do.
func accountFor(string, string) (account, error) {
	if os.Geteuid() == 0 {
		return account{}, errors.New("running Postgres: it refuses root: use another user, or set DATABASE_URL")
	}
	return account{}, nil
}

func (account) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = serverEnv()
	return cmd
}

func (account) start(cmd *exec.Cmd) error { return cmd.Start() }

func (account) own(string) error { return nil }

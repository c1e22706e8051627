package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// account is who Postgres runs as. The zero account is the current user. Postgres refuses to run as root,
// so for root it is another user, if need be with a capability to reach a checkout below a private folder
// such as root's home.
type account struct {
	credential *syscall.Credential
	caps       []uintptr
}

// accountFor chooses the account for a cluster's folder and Postgres' programs.
func accountFor(bin, clusterDir string) (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	uid, gid, err := ownerOrService(filepath.Join(clusterDir, "data"))
	if err != nil {
		return account{}, err
	}
	a := account{credential: &syscall.Credential{Uid: uid, Gid: gid}}
	if reachable(bin) && reachable(clusterDir) {
		return a, nil
	}
	// DAC_READ_SEARCH only reads and searches; containers often lack it but have the other.
	for _, c := range []uintptr{unix.CAP_DAC_READ_SEARCH, unix.CAP_DAC_OVERRIDE} {
		if permitted(c) {
			a.caps = []uintptr{c}
			return a, nil
		}
	}
	return account{}, fmt.Errorf("running Postgres: it refuses root, and the user for it (uid %d) cannot reach %s: move the checkout, or run as another user than root", uid, clusterDir)
}

// ownerOrService is the owner of data that exist, else the user postgres, else nobody.
func ownerOrService(data string) (uid, gid uint32, err error) {
	if info, err := os.Stat(data); err == nil {
		stat := info.Sys().(*syscall.Stat_t)
		if stat.Uid == 0 {
			return 0, 0, fmt.Errorf("%s belongs to root, as whom Postgres refuses to run", data)
		}
		return stat.Uid, stat.Gid, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil && uid != 0 {
			return uint32(uid), uint32(gid), nil
		}
	}
	return 0, 0, fmt.Errorf("running Postgres: it refuses root, and there is neither a user postgres nor nobody")
}

// reachable tells whether every user may search all folders on the way to path.
func reachable(path string) bool {
	for dir := path; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// permitted tells whether this process may hand on a capability.
func permitted(capability uintptr) bool {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(status)) {
		if hex, ok := strings.CutPrefix(line, "CapPrm:"); ok {
			mask, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
			return err == nil && mask&(1<<capability) != 0
		}
	}
	return false
}

// command prepares a program to run under the account.
func (a account) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = serverEnv()
	if a.credential != nil {
		cmd.Dir = "/" // the current folder may be closed to the account
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential, AmbientCaps: a.caps}
	}
	return cmd
}

// start starts a command that command prepared.
//
// Postgres' programs look for each other with access(2), which ignores the capabilities of a process other
// than root's unless SECBIT_NO_SETUID_FIXUP is set. That bit belongs to a thread and goes to its children.
func (a account) start(cmd *exec.Cmd) error {
	if len(a.caps) == 0 {
		return cmd.Start()
	}
	const noSetuidFixup = 1 << 2 // SECBIT_NO_SETUID_FIXUP of linux/securebits.h
	runtime.LockOSThread()
	before, err := unix.PrctlRetInt(unix.PR_GET_SECUREBITS, 0, 0, 0, 0)
	if err == nil {
		err = unix.Prctl(unix.PR_SET_SECUREBITS, uintptr(before|noSetuidFixup), 0, 0, 0)
	}
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("handing on the right to reach the checkout: %w", err)
	}
	startErr := cmd.Start()
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, uintptr(before), 0, 0, 0); err != nil {
		return errors.Join(startErr, err) // the thread stays locked and ends with its goroutine
	}
	runtime.UnlockOSThread()
	return startErr
}

// own gives a file to the account.
func (a account) own(path string) error {
	if a.credential == nil {
		return nil
	}
	return os.Chown(path, int(a.credential.Uid), int(a.credential.Gid))
}

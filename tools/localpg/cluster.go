package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gofrs/flock"
)

const (
	// superuser owns each cluster and its database; both carry the product's name.
	superuser = "pgrecall"
	database  = "pgrecall"
)

// cluster is one set of databases with its folder .local/NAME-VERSION.
type cluster struct {
	root string // the checkout
	name string // run, test, ...
	dir  string // .local/NAME-VERSION
}

func newCluster(root, name string, major int) (cluster, error) {
	c := cluster{root: root, name: name, dir: filepath.Join(root, ".local", fmt.Sprintf("%s-%d", name, major))}
	return c, makeDir(c.dir)
}

// makeDir makes a folder that everyone may search, whatever the umask: for root the server runs as another user.
func makeDir(dir string) error {
	if isDir(dir) {
		return nil
	}
	return errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o755))
}

func (c cluster) dataDir() string   { return filepath.Join(c.dir, "data") }
func (c cluster) logFile() string   { return filepath.Join(c.dir, "server.log") }
func (c cluster) stateFile() string { return filepath.Join(c.dir, "server.json") }

// users is held shared by each exec that uses the server, and exclusively by who stops it for good.
func (c cluster) users() *flock.Flock { return flock.New(filepath.Join(c.dir, "users.lock")) }

// starting is held by who starts or stops the server, and while users changes hands.
func (c cluster) starting() *flock.Flock { return flock.New(filepath.Join(c.dir, "start.lock")) }

// state is what a later exec needs to use or stop the server.
type state struct {
	Source   string `json:"source"`
	Version  int    `json:"version"`
	Port     int    `json:"port"`
	Password string `json:"password"`
}

// readState returns the zero state when the cluster is new.
func (c cluster) readState() (state, error) {
	var s state
	text, err := os.ReadFile(c.stateFile())
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

func (c cluster) writeState(s state) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(c.stateFile(), append(text, '\n'), 0o600)
}

// url is the address of a database of the server; sslmode is said because the environment might ask for more.
func (s state) url(db string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, s.Password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)),
		Path:     db,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// settings are the server's parameters for a cluster of this name. They are given on each start, so that
// a change here reaches clusters that exist.
func settings(name string) []string {
	switch name {
	case "run":
		// The user's data: Postgres' own safe defaults.
		return []string{"max_connections=100"}
	case "bench":
		// Safe as well, or the figures would lie; sized as somebody who measures would size it.
		return []string{"max_connections=100", "shared_buffers=512MB", "max_wal_size=4GB", "maintenance_work_mem=256MB"}
	default:
		// Tests make and drop a database each; nothing in it must survive a power cut. A killed server still recovers.
		return []string{
			"max_connections=200", "shared_buffers=256MB",
			"fsync=off", "synchronous_commit=off", "full_page_writes=off",
			"max_wal_size=2GB", "log_checkpoints=off",
		}
	}
}

// freePort returns preferred if nothing listens there, else a port that the system says is free. Another
// process may still be faster: who starts a server tries again then.
func freePort(preferred int) (int, error) {
	ports := []int{0}
	if preferred != 0 {
		ports = []int{preferred, 0}
	}
	for _, port := range ports {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		port = l.Addr().(*net.TCPAddr).Port
		return port, l.Close()
	}
	return 0, errors.New("no free port on 127.0.0.1")
}

// newPassword has 130 bits or more and needs no escaping anywhere.
func newPassword() string { return rand.Text() }

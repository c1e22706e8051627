package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mattn/go-isatty"
)

// runClean removes all clusters and what was remembered about them; downloaded programs stay.
func runClean(ctx context.Context, root string, yes bool) error {
	clusters, err := existingClusters(root)
	if err != nil {
		return err
	}
	if len(clusters) == 0 {
		note("there are no databases in .local")
		return nil
	}
	for _, c := range clusters {
		fmt.Println(c.dir)
	}
	if !yes {
		if !isatty.IsTerminal(os.Stdin.Fd()) {
			return errors.New("nobody to ask here: give --yes to remove these databases")
		}
		fmt.Print("Remove these databases with all their data? [y/N] ")
		answer, err := bufio.NewReader(os.Stdin).ReadString('\n')
		if err != nil {
			return err
		}
		if answer := strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
			return errors.New("nothing removed")
		}
	}
	for _, c := range clusters {
		if cleanErr := cleanCluster(ctx, c); cleanErr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", c.dir, cleanErr))
		}
	}
	if err != nil {
		return err
	}
	choices, err := filepath.Glob(filepath.Join(root, ".local", "*.source.json"))
	for _, path := range choices {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// existingClusters finds the folders that newCluster made.
func existingClusters(root string) ([]cluster, error) {
	locks, err := filepath.Glob(filepath.Join(root, ".local", "*", "users.lock"))
	if err != nil {
		return nil, err
	}
	var clusters []cluster
	for _, lock := range locks {
		dir := filepath.Dir(lock)
		name, _, _ := strings.Cut(filepath.Base(dir), "-")
		clusters = append(clusters, cluster{root: root, name: name, dir: dir})
	}
	return clusters, nil
}

// cleanCluster refuses while a command uses the server, and stops one that a killed exec left.
func cleanCluster(ctx context.Context, c cluster) error {
	starting, users := c.starting(), c.users()
	if err := starting.Lock(); err != nil {
		return err
	}
	defer starting.Unlock() //nolint:errcheck // the end of the process releases it as well
	free, err := users.TryLock()
	if err != nil {
		return err
	}
	if !free {
		return errors.New("in use by a running command, not removed")
	}
	defer users.Unlock() //nolint:errcheck // as above
	s, err := c.readState()
	if err != nil {
		return err
	}
	for _, source := range sources(c.root) {
		if source.name() != s.Source {
			continue
		}
		e, err := source.find(ctx, s.Version)
		if err != nil {
			return fmt.Errorf("cannot make sure that its server is stopped: %w", err)
		}
		if err := errors.Join(e.stop(ctx, c), e.remove(ctx, c)); err != nil {
			return err
		}
	}
	return os.RemoveAll(c.dir)
}

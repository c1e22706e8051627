package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// dockerAnswers bounds the question whether an engine runs.
	dockerAnswers = 10 * time.Second
	// dockerPull bounds the download of the image.
	dockerPull = 4 * time.Minute
	// composePassword is the one in docker-compose.yml; the server listens on 127.0.0.1 only.
	composePassword = "pgrecall"
)

// dockerSource is the service postgres of docker-compose.yml on a running engine.
type dockerSource struct {
	root string // where docker-compose.yml lies
}

func (dockerSource) name() string { return "docker" }

func (s dockerSource) find(ctx context.Context, want int) (engine, error) {
	if want == 0 {
		want = defaultPostgres
	}
	if _, err := exec.LookPath("docker"); err != nil {
		return nil, errors.New("docker is not installed")
	}
	answers, cancel := context.WithTimeout(ctx, dockerAnswers)
	defer cancel()
	if err := output(exec.CommandContext(answers, "docker", "info", "--format", "{{.ServerVersion}}")); err != nil {
		return nil, fmt.Errorf("no Docker engine answers: %w", err)
	}
	if err := output(exec.CommandContext(answers, "docker", "compose", "version")); err != nil {
		return nil, fmt.Errorf("docker compose is missing: %w", err)
	}
	e := dockerEngine{root: s.root, version: want}
	if output(exec.CommandContext(answers, "docker", "image", "inspect", e.image())) == nil {
		return e, nil
	}
	note("pulling %s ...", e.image())
	pulls, cancel := context.WithTimeout(ctx, dockerPull)
	defer cancel()
	if err := output(exec.CommandContext(pulls, "docker", "pull", "--quiet", e.image())); err != nil {
		note("%s cannot be pulled, trying without Docker", e.image())
		return nil, fmt.Errorf("the image cannot be pulled: %w", err)
	}
	return e, nil
}

// dockerEngine runs a cluster as a Compose project of its own, with its own volume.
type dockerEngine struct {
	root    string
	version int
}

func (e dockerEngine) major() int { return e.version }

func (e dockerEngine) image() string { return fmt.Sprintf("pgvector/pgvector:pg%d", e.version) }

func (e dockerEngine) describe() string { return "Docker image " + e.image() }

// compose prepares a Compose command on the cluster's project; the variables are those of docker-compose.yml.
func (e dockerEngine) compose(ctx context.Context, c cluster, port int, args ...string) *exec.Cmd {
	all := append([]string{
		"compose", "--file", filepath.Join(e.root, "docker-compose.yml"),
		"--project-name", fmt.Sprintf("pgrecall-%s-%d", c.name, e.version),
	}, args...)
	var options []string
	for _, setting := range settings(c.name) {
		options = append(options, "-c "+setting)
	}
	cmd := exec.CommandContext(ctx, "docker", all...)
	cmd.Env = append(os.Environ(),
		"POSTGRES_VERSION="+strconv.Itoa(e.version),
		"POSTGRES_PORT="+strconv.Itoa(port),
		"POSTGRES_OPTIONS="+strings.Join(options, " "))
	return cmd
}

func (e dockerEngine) start(ctx context.Context, c cluster) (string, error) {
	s, err := c.readState()
	if err != nil {
		return "", err
	}
	s.Password = composePassword
	if s.Port != 0 && ping(ctx, s.url(database)) == nil {
		return s.url(database), nil
	}
	if s.Port, err = freePort(s.Port); err != nil {
		return "", err
	}
	if err := c.writeState(s); err != nil {
		return "", err
	}
	if err := output(e.compose(ctx, c, s.Port, "up", "--detach", "--no-deps", "postgres")); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		// The image's first start runs a server without a network before the real one, so what answers here is real.
		pingErr := ping(ctx, s.url(database))
		if pingErr == nil {
			return s.url(database), nil
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("the server does not answer: %w", pingErr)
		case <-time.After(pollInterval):
		}
	}
}

func (e dockerEngine) stop(ctx context.Context, c cluster) error {
	return output(e.compose(ctx, c, 0, "stop", "postgres"))
}

func (e dockerEngine) remove(ctx context.Context, c cluster) error {
	return output(e.compose(ctx, c, 0, "down", "--volumes"))
}

// output runs a program quietly; its last line becomes part of the error.
func output(cmd *exec.Cmd) error {
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, lastLine(text.String()))
	}
	return nil
}

// lastLine is the line of a program's output that usually carries the reason.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

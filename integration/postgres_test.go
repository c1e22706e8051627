package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"
)

const (
	defaultImage = "pgvector/pgvector:pg18"
	// upTimeout bounds a first start with initdb, and recovery after a kill.
	upTimeout = 2 * time.Minute
	// pollInterval is the pause between two looks at something awaited.
	pollInterval = 50 * time.Millisecond
)

// postgres is a database server in a container, at an address that it keeps
// when it is restarted.
type postgres struct {
	container *testcontainers.DockerContainer
	url       string
}

// startPostgres gives a running server of the test's own.
func startPostgres(t *testing.T) *postgres {
	t.Helper()
	requireEngine(t)
	image := os.Getenv("PGRECALL_TEST_IMAGE")
	if image == "" {
		image = defaultImage
	}
	// Docker would give a container another port after each restart.
	port := freePort(t)
	server, err := testcontainers.Run(t.Context(), image,
		testcontainers.WithEnv(map[string]string{
			"POSTGRES_USER": "pgrecall", "POSTGRES_PASSWORD": "secret", "POSTGRES_DB": "pgrecall",
		}),
		testcontainers.WithExposedPorts("5432/tcp"),
		testcontainers.WithHostConfigModifier(func(host *container.HostConfig) {
			host.PortBindings = network.PortMap{network.MustParsePort("5432/tcp"): {
				{HostIP: netip.MustParseAddr("127.0.0.1"), HostPort: strconv.Itoa(port)},
			}}
		}),
		testcontainers.WithConfigModifier(func(config *container.Config) {
			config.StopSignal = "SIGINT" // PostgreSQL's fast shutdown: it does not wait for clients
		}),
	)
	testcontainers.CleanupContainer(t, server)
	require.NoError(t, err)
	p := &postgres{container: server, url: fmt.Sprintf("postgres://pgrecall:secret@127.0.0.1:%d/pgrecall?sslmode=disable", port)}
	p.awaitUp(t)
	return p
}

// requireEngine skips the test where no Docker engine answers. In CI it fails it.
func requireEngine(t *testing.T) {
	t.Helper()
	err := engineHealth(t.Context())
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("no Docker engine answers, and CI must run these tests: %v", err)
	default:
		t.Skipf("no Docker engine answers: %v", err)
	}
}

// engineHealth asks the engine; testcontainers panics when it finds none.
func engineHealth(ctx context.Context) (err error) {
	defer func() {
		if found := recover(); found != nil {
			err = fmt.Errorf("%v", found)
		}
	}()
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return err
	}
	return errors.Join(provider.Health(ctx), provider.Close())
}

// awaitUp waits until the server answers a query.
func (p *postgres) awaitUp(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), upTimeout)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, p.url)
		if err == nil {
			require.NoError(t, conn.Close(ctx))
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("PostgreSQL does not answer: %v\n%s", err, p.logs())
		case <-time.After(pollInterval):
		}
	}
}

func (p *postgres) logs() string {
	logs, err := p.container.Logs(context.Background())
	if err != nil {
		return err.Error()
	}
	defer logs.Close()
	text, err := io.ReadAll(logs)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// killContainer ends all processes of the server at once, as a power cut does.
func (p *postgres) killContainer(t *testing.T) {
	t.Helper()
	docker, err := testcontainers.NewDockerClientWithOpts(t.Context())
	require.NoError(t, err)
	defer docker.Close()
	_, err = docker.ContainerKill(t.Context(), p.container.GetContainerID(), client.ContainerKillOptions{Signal: "KILL"})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		state, err := p.container.State(t.Context())
		return err == nil && !state.Running
	}, upTimeout, pollInterval)
}

// startAgain starts the container after a kill or stop. It does not wait for the server in it.
func (p *postgres) startAgain(t *testing.T) {
	t.Helper()
	require.NoError(t, p.container.Start(t.Context()))
}

// killBackend kills one server process, upon which PostgreSQL ends all
// connections and recovers from its log.
func (p *postgres) killBackend(t *testing.T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.url)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	var pid int
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid))
	code, _, err := p.container.Exec(t.Context(), []string{"sh", "-c", fmt.Sprintf("kill -9 %d", pid)})
	require.NoError(t, err)
	require.Zero(t, code)
	_, err = conn.Exec(t.Context(), `SELECT 1`)
	require.Error(t, err, "the connection outlived its process")
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

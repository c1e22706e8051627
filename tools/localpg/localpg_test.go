package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeSource answers without looking at the machine.
type fakeSource struct {
	called string
	engine engine
	err    error
	wanted *[]int // records each question
}

func (f fakeSource) name() string { return f.called }

func (f fakeSource) find(_ context.Context, want int) (engine, error) {
	if f.wanted != nil {
		*f.wanted = append(*f.wanted, want)
	}
	return f.engine, f.err
}

func postgres(major int) binaries {
	return binaries{from: "test", bin: "/somewhere/bin", postgres: version{major, 3}, vector: version{0, 8, 1}}
}

func TestChooseTakesTheFirstSourceThatApplies(t *testing.T) {
	all := []source{
		fakeSource{called: "installed", err: errors.New("nothing there")},
		fakeSource{called: "docker", engine: postgres(18)},
		fakeSource{called: "pypi", engine: postgres(16)},
	}
	e, made, err := choose(t.Context(), all, 0, choice{})
	require.NoError(t, err)
	require.Equal(t, 18, e.major())
	require.Equal(t, choice{Source: "docker", Version: 18}, made)
}

func TestChooseKeepsToTheSourceTheDataWereMadeWith(t *testing.T) {
	var wanted []int
	all := []source{
		fakeSource{called: "installed", engine: postgres(17)},
		fakeSource{called: "pypi", engine: postgres(16), wanted: &wanted},
	}
	remembered := choice{Source: "pypi", Version: 16}
	e, made, err := choose(t.Context(), all, 0, remembered)
	require.NoError(t, err)
	require.Equal(t, 16, e.major())
	require.Equal(t, remembered, made)
	require.Equal(t, []int{16}, wanted, "the remembered version is asked for")
}

func TestChooseFallsBackWhenTheRememberedSourceIsGone(t *testing.T) {
	all := []source{
		fakeSource{called: "installed", engine: postgres(17)},
		fakeSource{called: "docker", err: errors.New("not running")},
	}
	_, made, err := choose(t.Context(), all, 0, choice{Source: "docker", Version: 18})
	require.NoError(t, err)
	require.Equal(t, choice{Source: "installed", Version: 17}, made)
}

func TestChooseListsEachSourceWithItsReason(t *testing.T) {
	all := []source{
		fakeSource{called: "installed", err: errors.New("reason one")},
		fakeSource{called: "docker", err: errors.New("reason two")},
	}
	_, _, err := choose(t.Context(), all, 17, choice{})
	require.ErrorContains(t, err, "no Postgres 17 with pgvector 0.8.0 or newer")
	require.ErrorContains(t, err, "installed: reason one")
	require.ErrorContains(t, err, "docker:    reason two")
	require.ErrorContains(t, err, "DATABASE_URL")
}

func TestBestInstalledIsTheNewestThatFits(t *testing.T) {
	old := binaries{bin: "/14/bin", postgres: version{14, 9}, vector: version{0, 8, 5}}
	oldVector := binaries{bin: "/18/bin", postgres: version{18, 1}, vector: version{0, 7, 4}}
	fifteen := binaries{bin: "/15/bin", postgres: version{15, 18}, vector: version{0, 8, 0}}
	seventeen := binaries{bin: "/17/bin", postgres: version{17, 2}, vector: version{0, 8, 5}}
	all := []binaries{old, fifteen, seventeen, oldVector}

	best, err := bestInstalled(all, 0)
	require.NoError(t, err)
	require.Equal(t, seventeen, best)

	best, err = bestInstalled(all, 15)
	require.NoError(t, err)
	require.Equal(t, fifteen, best)

	_, err = bestInstalled(all, 18)
	require.ErrorContains(t, err, "pgvector 0.7.4, older than 0.8.0")
	_, err = bestInstalled([]binaries{old}, 0)
	require.ErrorContains(t, err, "older than 15")
	_, err = bestInstalled(nil, 0)
	require.ErrorContains(t, err, "no Postgres server with pgvector is installed")
}

func TestPythonPackageHasTwoMajorVersions(t *testing.T) {
	_, err := pypiSource{dir: t.TempDir()}.find(t.Context(), 17)
	require.ErrorContains(t, err, "16 and 18, wanted 17")
}

func TestPythonPackagePinsAgree(t *testing.T) {
	require.Contains(t, string(requirements), strings.Replace(pypiRelease, "server-", "server==", 1))
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]version{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)": {15, 18},
		"postgres (PostgreSQL) 18beta1":                        {18},
		"PostgreSQL 17.2":                                      {17, 2},
		"0.8.5":                                                {0, 8, 5},
		"1.0":                                                  {1},
	} {
		got, err := parseVersion(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	_, err := parseVersion("none")
	require.Error(t, err)
	_, err = parseVersion("99999999999999999999.1")
	require.Error(t, err)
}

func TestVersionsCompareByNumber(t *testing.T) {
	require.True(t, version{0, 8, 0}.less(version{0, 10, 0}))
	require.True(t, version{0, 8, 0}.less(version{0, 8, 1}))
	require.False(t, version{0, 8, 0}.less(version{0, 8, 0}))
	require.False(t, version{1}.less(version{0, 9, 9}))
}

func TestControlVersion(t *testing.T) {
	got, err := controlVersion("comment = 'vector data type'\ndefault_version = '0.8.5'\nrelocatable = true\n")
	require.NoError(t, err)
	require.Equal(t, version{0, 8, 5}, got)
	_, err = controlVersion("# default_version = '1'\n")
	require.Error(t, err)
}

func TestParseExec(t *testing.T) {
	opts, err := parseExec([]string{"--name", "test", "--version", "16", "--", "go", "test", "-run", "x"})
	require.NoError(t, err)
	require.Equal(t, execOptions{name: "test", version: 16, command: []string{"go", "test", "-run", "x"}}, opts)

	for _, wrong := range [][]string{
		{},
		{"--name", "test"},
		{"--name", "../etc", "--", "true"},
		{"--name", "", "--", "true"},
		{"--version", "14", "--", "true"},
		{"--version", "new", "--", "true"},
		{"--unknown", "--", "true"},
	} {
		_, err := parseExec(wrong)
		require.Error(t, err, "%q", wrong)
	}
}

func TestChoicesOfDifferentVersionsDoNotMix(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, ".local"), 0o755))
	anyVersion, sixteen := choiceFile(root, execOptions{name: "test"}), choiceFile(root, execOptions{name: "test", version: 16})
	require.NotEqual(t, anyVersion, sixteen)

	require.Equal(t, choice{}, readChoice(anyVersion))
	want := choice{Source: "pypi", Version: 18}
	require.NoError(t, writeChoice(anyVersion, want))
	require.Equal(t, want, readChoice(anyVersion))
	require.NoError(t, os.WriteFile(anyVersion, []byte("{"), 0o600))
	require.Equal(t, choice{}, readChoice(anyVersion), "a broken file is as good as none")
}

func TestStateIsPrivate(t *testing.T) {
	c := cluster{dir: t.TempDir()}
	s, err := c.readState()
	require.NoError(t, err)
	require.Equal(t, state{}, s)
	s = state{Source: "pypi", Version: 18, Port: 5433, Password: newPassword()}
	require.NoError(t, c.writeState(s))
	got, err := c.readState()
	require.NoError(t, err)
	require.Equal(t, s, got)
	if runtime.GOOS != "windows" {
		info, err := os.Stat(c.stateFile())
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
	require.Equal(t, "postgres://pgrecall:"+s.Password+"@127.0.0.1:5433/pgrecall?sslmode=disable", s.url(database))
}

func TestFreePortAvoidsOneThatIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	taken := l.Addr().(*net.TCPAddr).Port
	got, err := freePort(taken)
	require.NoError(t, err)
	require.NotEqual(t, taken, got)
	require.NoError(t, l.Close())
}

func TestOnlyThrowawayClustersGiveUpDurability(t *testing.T) {
	for _, name := range []string{"run", "bench"} {
		require.NotContains(t, strings.Join(settings(name), " "), "off", name)
	}
	require.Contains(t, settings("test"), "fsync=off")
}

func TestServersSeeNoPostgresVariables(t *testing.T) {
	t.Setenv("PGDATA", "/elsewhere")
	for _, variable := range serverEnv() {
		require.NotContains(t, variable, "PGDATA")
	}
}

func TestRunCommandReturnsTheCommandsExitCode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	code, err := runCommand([]string{"sh", "-c", `test "$DATABASE_URL" = postgres://x && exit 7`}, "postgres://x")
	require.NoError(t, err)
	require.Equal(t, 7, code)
	code, err = runCommand([]string{"sh", "-c", "kill -9 $$"}, "")
	require.NoError(t, err)
	require.Equal(t, 137, code)
	code, err = runCommand([]string{"no-such-command-at-all"}, "")
	require.Error(t, err)
	require.Equal(t, 127, code)
}

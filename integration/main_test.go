package integration

import (
	"os"
	"testing"
)

// TestMain removes the program that a test built.
func TestMain(m *testing.M) {
	code := m.Run()
	if programDir != "" {
		_ = os.RemoveAll(programDir)
	}
	os.Exit(code)
}

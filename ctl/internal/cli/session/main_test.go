package session

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/service-dev/service/test/reaper"
)

func TestMain(m *testing.M) { os.Exit(reaper.Run(m.Run)) }

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

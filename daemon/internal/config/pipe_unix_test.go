//go:build unix

package config

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/service-dev/service/internal/problem"
)

func TestPipeInItsPlace(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "pipe"), filepath.Join(dir, FileName)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	_, err := Open(dir, nil, slog.New(slog.DiscardHandler))
	if p := problem.From(err); p == nil || !strings.HasSuffix(p.Message, ": not a file") {
		t.Errorf("start: %v", err)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	changed := make(chan struct{})
	s, err := Open(dir, changed, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(t.Context()) }()
	if err := os.Rename(path, link); err != nil {
		t.Fatal(err)
	}
	changed <- struct{}{}
	changed <- struct{}{}
	if err := s.Problem(); err == nil || *s.Current() != *Default() {
		t.Errorf("reload of a pipe: problem %v, configuration %+v; want a problem and the default", err, s.Current())
	}
}

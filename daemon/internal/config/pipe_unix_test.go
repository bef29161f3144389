//go:build unix

package config

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
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
	var e *Error
	if _, err := Open(dir, nil, slog.New(slog.DiscardHandler)); !errors.As(err, &e) || e.Problem != "it is not a file" {
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

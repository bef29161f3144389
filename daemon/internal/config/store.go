package config

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
)

// maxFile bounds config.yaml, in bytes.
const maxFile = 64 << 10

// Store holds the configuration that counts now.
type Store struct {
	path    string
	changed <-chan struct{}
	log     *slog.Logger
	current atomic.Pointer[Config]
}

// Open loads config.yaml; a missing file gives Default. A file that cannot be used is an *Error. changed signals that
// the file may have changed (statefile.Watch); nil for never.
func Open(dir string, changed <-chan struct{}, log *slog.Logger) (*Store, error) {
	s := &Store{path: filepath.Join(dir, FileName), changed: changed, log: log}
	c, err := load(s.path)
	if err != nil {
		return nil, err
	}
	s.current.Store(c)
	return s, nil
}

// Current is the configuration now.
func (s *Store) Current() *Config { return s.current.Load() }

// Path is the file's absolute path, whether it exists or not.
func (s *Store) Path() string { return s.path }

// Serve follows the file until ctx ends. A change that cannot be used is logged, and what counted before goes on.
func (s *Store) Serve(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
		}
		c, err := load(s.path)
		if err != nil {
			s.log.Error("the configuration stays as it was", "err", err)
			continue
		}
		s.current.Store(c)
		s.log.Info("the configuration was read again")
	}
}

// load follows symbolic links, unlike the readers of state: people keep their settings elsewhere.
func load(path string) (*Config, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Default(), nil
	}
	if err != nil {
		return nil, &Error{Source: path, Problem: errors.Unwrap(err).Error()}
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, &Error{Source: path, Problem: errors.Unwrap(err).Error()}
	}
	if len(data) > maxFile {
		return nil, &Error{Source: path, Problem: "it is too large"}
	}
	return parse(path, data)
}

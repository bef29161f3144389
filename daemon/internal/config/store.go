package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/internal/problem"
)

// maxFile is the maximum size of config.yaml, in bytes.
const maxFile = 64 << 10

// readWait is how long the daemon waits for config.yaml, which may be on a mount that hangs.
const readWait = 2 * time.Second

// Store holds the configuration in use.
type Store struct {
	path    string
	changed <-chan struct{}
	log     *slog.Logger
	current atomic.Pointer[Config]
	refused atomic.Pointer[problem.Error]

	readFile func(path string, limit int64) ([]byte, error)
	wait     time.Duration
}

// Open loads config.yaml; a missing or empty file means Default. It returns a *problem.Error if the file is unusable.
// changed receives a value when the file may have changed (see statefile.Watch); it may be nil.
func Open(dir string, changed <-chan struct{}, log *slog.Logger) (*Store, error) {
	s := newStore(dir, changed, log)
	return s, s.open()
}

func newStore(dir string, changed <-chan struct{}, log *slog.Logger) *Store {
	return &Store{
		path: filepath.Join(dir, FileName), changed: changed, log: log,
		readFile: statefile.ReadFollowing, wait: readWait,
	}
}

// open loads the file for the first time, when there is no earlier configuration to keep.
func (s *Store) open() error {
	select {
	case l := <-s.load():
		if l.refused != nil && !l.empty {
			return l.refused
		}
		s.current.Store(l.config)
		return nil
	case <-time.After(s.wait):
		return s.timeoutError()
	}
}

// Current returns the configuration in use.
func (s *Store) Current() *Config { return s.current.Load() }

// Problem returns the reason why the current file is not in use, or nil if it is in use. Without a usable file, Current
// returns the last valid configuration.
func (s *Store) Problem() error {
	if p := s.refused.Load(); p != nil {
		return p
	}
	return nil
}

// Path returns the file's absolute path, even if the file does not exist.
func (s *Store) Path() string { return s.path }

// Serve follows changes to the file until ctx ends. An invalid file leaves the configuration unchanged.
func (s *Store) Serve(ctx context.Context) error {
	var pending <-chan loaded // a read that exceeded wait; the next read starts after it ends
	rereading := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
			if rereading = pending != nil; !rereading {
				pending = s.reload(ctx)
			}
		case l := <-pending:
			pending = nil
			s.apply(l)
			if rereading {
				rereading, pending = false, s.reload(ctx)
			}
		}
	}
}

// reload reads the file and applies it. If the read takes longer than wait, reload returns the pending
// read.
func (s *Store) reload(ctx context.Context) (pending <-chan loaded) {
	reading := s.load()
	timeoutError := time.NewTimer(s.wait)
	defer timeoutError.Stop()
	select {
	case l := <-reading:
		s.apply(l)
		return nil
	case <-ctx.Done():
	case <-timeoutError.C:
		s.refuse(s.timeoutError())
	}
	return reading
}

func (s *Store) apply(l loaded) {
	if l.refused != nil {
		s.refuse(l.refused)
		return
	}
	s.current.Store(l.config)
	s.refused.Store(nil)
	s.log.Info("loaded the configuration")
}

func (s *Store) refuse(err *problem.Error) {
	s.refused.Store(err)
	s.log.Error("failed to load the configuration; the previous one stays in use", "err", err)
}

func (s *Store) timeoutError() *problem.Error {
	return invalid(s.path, "", fmt.Sprintf("timed out after %v; the file system may not be responding", s.wait))
}

// loaded is the result of reading the file.
type loaded struct {
	config  *Config
	refused *problem.Error
	empty   bool // the file may have been truncated by an editor or a full disk, so the defaults are not applied
}

// load reads the file in a separate goroutine, because a read from a hanging mount may never return. Unlike the readers
// of state files, it follows symbolic links, because users may keep their settings elsewhere.
func (s *Store) load() <-chan loaded {
	done := make(chan loaded, 1)
	go func() {
		data, err := s.readFile(s.path, maxFile)
		done <- s.parseRead(data, err)
	}()
	return done
}

func (s *Store) parseRead(data []byte, err error) loaded {
	refused := func(why string) loaded { return loaded{refused: invalid(s.path, "", why)} }
	var system *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return loaded{config: Default()}
	case errors.Is(err, statefile.ErrNotRegular):
		return refused("not a file")
	case errors.Is(err, statefile.ErrTooLarge):
		return refused(fmt.Sprintf("larger than %d bytes", maxFile))
	case errors.As(err, &system):
		return refused(system.Err.Error())
	case err != nil:
		return refused(err.Error())
	case len(bytes.TrimSpace(data)) == 0:
		empty := refused("empty")
		empty.empty, empty.config = true, Default()
		return empty
	}
	config, err := parse(s.path, data)
	return loaded{config: config, refused: problem.From(err)}
}

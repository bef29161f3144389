package statefile

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Timing of a watch. A burst of events causes one check, at most debounce after the first event. Polling detects
// changes without events and a recreated directory.
const (
	debounce = 60 * time.Millisecond
	slowPoll = 2 * time.Second
	lostPoll = 100 * time.Millisecond
)

// maxWatched is the number of bytes of a file that are compared.
const maxWatched = 1 << 20

// Watch reports changes to files in one directory. A file may change in place, by a rename, or together with the
// directory. A signal is a hint to read the file again.
type Watch struct {
	dir string
	log *slog.Logger

	slowPoll time.Duration

	mu    sync.Mutex
	files map[string]*watched

	gone chan struct{}
}

type watched struct {
	sum  [sha256.Size]byte
	hint chan struct{}
}

// NewWatch returns a watch of dir. It has no effect until Serve is called.
func NewWatch(dir string, log *slog.Logger) *Watch {
	return &Watch{dir: dir, log: log, slowPoll: slowPoll, files: map[string]*watched{}, gone: make(chan struct{}, 1)}
}

// Changed returns the channel that signals changes of the named file. The channel holds at most one signal and is for a
// single receiver. A signal means that the content has changed since the first call for this file.
func (w *Watch) Changed(name string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, ok := w.files[name]
	if !ok {
		f = &watched{sum: w.sum(name), hint: make(chan struct{}, 1)}
		w.files[name] = f
	}
	return f.hint
}

// Gone returns a channel that receives a signal when the directory is missing.
func (w *Watch) Gone() <-chan struct{} { return w.gone }

// Serve watches until ctx ends. It polls if the system provides no notifications.
func (w *Watch) Serve(ctx context.Context) error {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		w.log.Warn("failed to watch the state directory; polling it", "err", err)
		notify = &fsnotify.Watcher{}
	} else {
		defer notify.Close()
	}
	s := &watching{Watch: w, notify: notify, works: err == nil}
	return s.run(ctx)
}

// watching is the state of one call of Serve.
type watching struct {
	*Watch
	notify *fsnotify.Watcher
	works  bool
	seen   os.FileInfo // the directory that notify watches; nil if none
}

func (s *watching) run(ctx context.Context) error {
	s.attach()
	s.check()
	var soon <-chan time.Time
	for {
		pause := s.slowPoll
		if s.seen == nil {
			pause = lostPoll
		}
		poll := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			poll.Stop()
			return nil
		case <-s.notify.Events:
			if soon == nil {
				soon = time.After(debounce)
			}
			poll.Stop()
			continue
		case err := <-s.notify.Errors:
			s.log.Warn("failed to watch the state directory", "err", err) // usually an overflow, so check every file
		case <-soon:
			soon = nil
		case <-poll.C:
		}
		poll.Stop()
		s.attach()
		s.check()
	}
}

// attach looks up the directory by name again, because the directory may have been deleted, moved or recreated.
func (s *watching) attach() {
	info, err := os.Stat(s.dir)
	if err != nil {
		s.detach()
		select {
		case s.gone <- struct{}{}:
		default:
		}
		return
	}
	if s.seen != nil && os.SameFile(info, s.seen) && s.watches() {
		return
	}
	s.detach()
	if s.works && s.notify.Add(s.dir) == nil {
		s.seen = info
	}
}

func (s *watching) watches() bool { return len(s.notify.WatchList()) > 0 }

func (s *watching) detach() {
	if s.seen != nil {
		_ = s.notify.Remove(s.dir) // fails if the system removed it together with the directory
		s.seen = nil
	}
}

// check sends a signal for every file whose content has changed.
func (w *Watch) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, f := range w.files {
		sum := w.sum(name)
		if sum == f.sum {
			continue
		}
		f.sum = sum
		select {
		case f.hint <- struct{}{}:
		default:
		}
	}
}

// Wrote records a change by this process. Call it after a file has changed, with the written data, or with nil after a
// removal. Later content is compared with data, so that a change right afterwards is detected even if it restores the
// previous content.
func (w *Watch) Wrote(name string, data []byte) {
	var err error
	if data == nil {
		err = syscall.ENOENT
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if f, ok := w.files[name]; ok {
		f.sum = sumOf(data, err)
	}
}

// sum returns a hash of a file's content, or of the error if the file cannot be read.
func (w *Watch) sum(name string) [sha256.Size]byte {
	return sumOf(Read(filepath.Join(w.dir, name), maxWatched))
}

func sumOf(data []byte, err error) [sha256.Size]byte {
	if err != nil {
		return sha256.Sum256([]byte("\x00" + cause(err).Error()))
	}
	return sha256.Sum256(append([]byte{1}, data...))
}

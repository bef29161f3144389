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

// How quickly a watch answers. A burst of events is one look, at most debounce after its first event; the polls see
// what events miss, and find a directory that was made again.
const (
	debounce = 60 * time.Millisecond
	slowPoll = 2 * time.Second
	lostPoll = 100 * time.Millisecond
)

// maxWatched bounds what is compared of a file, in bytes.
const maxWatched = 1 << 20

// Watch tells when the contents of named files of one directory changed, whoever changed them and however: in place,
// by rename, with the whole directory. A signal is a hint to read the file again.
type Watch struct {
	dir string
	log *slog.Logger

	mu    sync.Mutex
	files map[string]*watched

	gone chan struct{}
}

type watched struct {
	sum  [sha256.Size]byte
	hint chan struct{}
}

// NewWatch is a watch over dir that does nothing before Serve.
func NewWatch(dir string, log *slog.Logger) *Watch {
	return &Watch{dir: dir, log: log, files: map[string]*watched{}, gone: make(chan struct{}, 1)}
}

// Changed returns the file's channel: it holds at most one signal, and one caller may receive from it. What the file
// holds at the time of this call is the state that changes are compared with.
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

// Gone holds a signal after the directory was found missing.
func (w *Watch) Gone() <-chan struct{} { return w.gone }

// Serve watches until ctx ends. It goes on by polling where the system's notification cannot be had.
func (w *Watch) Serve(ctx context.Context) error {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		w.log.Warn("changes of files are found by polling", "err", err)
		notify = &fsnotify.Watcher{}
	} else {
		defer notify.Close()
	}
	s := &watching{Watch: w, notify: notify, works: err == nil}
	return s.run(ctx)
}

// watching is the state of one Serve.
type watching struct {
	*Watch
	notify *fsnotify.Watcher
	works  bool
	seen   os.FileInfo // the directory that notify watches; nil for none
}

func (s *watching) run(ctx context.Context) error {
	s.attach()
	s.look()
	var soon <-chan time.Time
	for {
		pause := slowPoll
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
			s.log.Warn("watching the state directory", "err", err) // an overflow, mostly: look at everything
		case <-soon:
			soon = nil
		case <-poll.C:
		}
		poll.Stop()
		s.attach()
		s.look()
	}
}

// attach follows the directory's name: it may have been deleted, moved away or made again.
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
		_ = s.notify.Remove(s.dir) // fails when the system dropped it with the directory
		s.seen = nil
	}
}

// look signals every file whose content is not the one last seen.
func (w *Watch) look() {
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

// Wrote tells what this process itself has just made of a file: written data, or removed it (nil). Later changes are
// compared with that, so that none is missed which comes right after and restores what the watch saw last.
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

// sum stands for a file's content, or for why it has none.
func (w *Watch) sum(name string) [sha256.Size]byte {
	return sumOf(Read(filepath.Join(w.dir, name), maxWatched))
}

func sumOf(data []byte, err error) [sha256.Size]byte {
	if err != nil {
		return sha256.Sum256([]byte("\x00" + cause(err).Error()))
	}
	return sha256.Sum256(append([]byte{1}, data...))
}

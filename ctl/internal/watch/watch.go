// Package watch reports when a person changes files below folders, and distinguishes that from files that programs
// write in between. It must not know which programs run.
package watch

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Bounds of a watch.
const (
	maxFolders = 2000
	maxPending = 4096 // changed paths that Next has not returned yet
)

// Timing of a burst of changes, such as a save of several files: it ends after quiet without a change, and at the
// latest after longest.
const (
	quiet   = 100 * time.Millisecond
	longest = time.Second
)

// slack is how far the time of a file may be from the clock, by the granularity of file systems.
const slack = 10 * time.Millisecond

// Watcher watches folders with everything below them. Its methods are for one goroutine.
type Watcher struct {
	ignored func(path string) bool
	notify  *fsnotify.Watcher
	pump    sync.WaitGroup
	hint    chan struct{} // holds one signal

	known   map[string]bool // files that existed or that a person created
	strikes map[string]int  // how often in a row a run wrote a known file

	mu      sync.Mutex // guards what follows
	pending map[string]bool
	folders map[string]bool // that are watched
}

// New watches folders. It does not watch names that begin with a dot, backups, packages, or paths for which ignored
// returns true. Call Close.
func New(roots []string, ignored func(path string) bool) (*Watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch files: %w", err)
	}
	w := &Watcher{ignored: ignored, notify: notify, hint: make(chan struct{}, 1), known: map[string]bool{},
		strikes: map[string]int{}, pending: map[string]bool{}, folders: map[string]bool{}}
	for _, root := range roots {
		if err := w.add(root, func(file string) { w.known[file] = true }); err != nil {
			return nil, fmt.Errorf("watch %s: %w", root, closing(notify, err))
		}
	}
	w.pump.Go(w.follow)
	return w, nil
}

func closing(notify *fsnotify.Watcher, err error) error {
	_ = notify.Close()
	return err
}

// Close ends the watch and waits for it.
func (w *Watcher) Close() {
	_ = w.notify.Close() // ends follow
	w.pump.Wait()
}

// add watches a folder with those below it and calls found for every file. The folder may be a symbolic link; links
// below it are not followed.
func (w *Watcher) add(root string, found func(file string)) error {
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return err
	}
	return filepath.WalkDir(real, func(path string, entry fs.DirEntry, err error) error {
		path = root + strings.TrimPrefix(path, real)
		switch {
		case err != nil && path == root:
			return err
		case err != nil:
			return nil // it was deleted, or we may not read it
		case path != root && w.skips(path):
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case !entry.IsDir():
			found(path)
			return nil
		}
		w.mu.Lock()
		w.folders[path] = true
		over := len(w.folders) > maxFolders
		w.mu.Unlock()
		if over {
			return fmt.Errorf("there are more than %d folders; start it in the folder of the app", maxFolders)
		}
		return w.notify.Add(path)
	})
}

// skips reports whether a path is one that people do not edit.
func (w *Watcher) skips(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || name == "node_modules" ||
		name == "__pycache__" || w.ignored(path)
}

// follow records changed paths until the watch is closed.
func (w *Watcher) follow() {
	for {
		select {
		case e, ok := <-w.notify.Events:
			if !ok {
				return
			}
			if e.Op != fsnotify.Chmod && !w.skips(e.Name) {
				w.note(e)
			}
		case _, ok := <-w.notify.Errors:
			if !ok {
				return
			}
		}
	}
}

func (w *Watcher) note(e fsnotify.Event) {
	if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
		w.forget(e.Name)
	}
	if info, err := os.Lstat(e.Name); err == nil && info.IsDir() {
		if e.Has(fsnotify.Create) {
			_ = w.add(e.Name, w.change) // a folder that cannot be watched was deleted again
		}
		return
	}
	w.change(e.Name)
}

// forget drops a deleted folder and those below it, which makes room for others.
func (w *Watcher) forget(folder string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.folders[folder] {
		return
	}
	maps.DeleteFunc(w.folders, func(path string, _ bool) bool {
		return path == folder || strings.HasPrefix(path, folder+string(filepath.Separator))
	})
}

func (w *Watcher) change(path string) {
	w.mu.Lock()
	if len(w.pending) < maxPending {
		w.pending[path] = true
	}
	w.mu.Unlock()
	select {
	case w.hint <- struct{}{}:
	default:
	}
}

// Span is when a run began and ended.
type Span struct{ From, To time.Time }

func (s Span) has(t time.Time) bool {
	return !t.Before(s.From.Add(-slack)) && !t.After(s.To.Add(slack))
}

// Next waits for files that a person changed and returns them in order. run is the last run: a new file that it wrote
// does not count, and a file that two runs in a row wrote no longer does. Those are in written, once.
func (w *Watcher) Next(ctx context.Context, run Span) (changed, written []string, err error) {
	for {
		if err := settle(ctx, w.hint); err != nil {
			return nil, nil, err
		}
		w.mu.Lock()
		pending := w.pending
		w.pending = map[string]bool{}
		w.mu.Unlock()
		for path := range pending {
			switch counts, now := w.judge(path, run); {
			case counts:
				changed = append(changed, path)
			case now:
				written = append(written, path)
			}
		}
		if len(changed) > 0 {
			slices.Sort(changed)
			slices.Sort(written)
			return changed, written, nil
		}
	}
}

// judge reports whether a change counts, and if not, whether it never will.
func (w *Watcher) judge(path string, run Span) (counts, now bool) {
	info, err := os.Stat(path)
	switch {
	case err != nil: // it was deleted
		was := w.known[path]
		delete(w.known, path)
		delete(w.strikes, path)
		return was, false
	case !run.has(info.ModTime()):
		w.known[path] = true
		delete(w.strikes, path)
		return true, false
	case !w.known[path]:
		return false, false
	}
	w.strikes[path]++
	return w.strikes[path] < 2, w.strikes[path] == 2
}

// settle waits for a hint, and then until none has arrived for quiet, at most for longest.
func settle(ctx context.Context, hint <-chan struct{}) error {
	select {
	case <-hint:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	over := time.NewTimer(longest)
	defer over.Stop()
	calm := time.NewTimer(quiet)
	defer calm.Stop()
	for {
		select {
		case <-hint:
			calm.Reset(quiet)
		case <-calm.C:
			return nil
		case <-over.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

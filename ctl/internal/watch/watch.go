// Package watch reports when the user changes files below folders. It distinguishes these changes from files that
// programs write in the meantime. It is independent of those programs.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/service-dev/service/internal/problem"
)

// Limits of a watch.
const (
	maxFolders = 2000
	maxPending = 4096 // changed paths that Next has not returned yet
)

// A burst of changes, such as saving several files, ends when nothing has changed for the duration quiet, and at the
// latest after longest.
const (
	quiet   = 100 * time.Millisecond
	longest = time.Second
)

// slack is the maximum difference between a file's modification time and the clock, due to the granularity of file
// systems.
const slack = 10 * time.Millisecond

// Watcher watches folders and everything below them. Its methods must be called from one goroutine.
type Watcher struct {
	ignored func(path string) bool
	notify  *fsnotify.Watcher
	pump    sync.WaitGroup
	hint    chan struct{} // capacity 1: signals a change

	known   map[string]bool // files that existed at the start or that the user created
	strikes map[string]int  // number of consecutive runs that wrote a known file

	mu      sync.Mutex // guards the fields below
	pending map[string]bool
	folders map[string]bool // the watched folders
}

// New watches folders. It ignores names that begin with a dot, backups, packages, and paths for which ignored returns
// true. Call Close when done.
func New(roots []string, ignored func(path string) bool) (*Watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, failed("files", err)
	}
	w := &Watcher{ignored: ignored, notify: notify, hint: make(chan struct{}, 1), known: map[string]bool{},
		strikes: map[string]int{}, pending: map[string]bool{}, folders: map[string]bool{}}
	for _, root := range roots {
		if err := w.add(root, func(file string) { w.known[file] = true }); err != nil {
			return nil, failed(root, closing(notify, err))
		}
	}
	w.pump.Go(w.follow)
	return w, nil
}

var errTooMany = fmt.Errorf("there are more than %d folders", maxFolders)

// limitHint names a Linux limit that all programs of a user share.
const limitHint = "End other programs that watch files, or raise the limit, such as: sudo sysctl fs.inotify.max_user_"

func failed(what string, err error) error {
	e := &problem.Error{Code: "usage", Message: "watch " + what + ": " + err.Error(), Err: err,
		FixHint: "Check that the folder exists and that you may read it."}
	switch {
	case errors.Is(err, errTooMany):
		e.FixHint = "Start the command in the app's folder."
	case errors.Is(err, syscall.EMFILE):
		e.FixHint = limitHint + "instances=1024."
	case errors.Is(err, syscall.ENOSPC):
		e.FixHint = limitHint + "watches=524288."
	}
	return e
}

func closing(notify *fsnotify.Watcher, err error) error {
	_ = notify.Close()
	return err
}

// Close ends the watch and waits until it has stopped.
func (w *Watcher) Close() {
	_ = w.notify.Close() // ends follow
	w.pump.Wait()
}

// add watches a folder and the folders below it, and calls found for every file. The folder may be a symbolic link;
// links below it are not followed.
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
			return nil // it was deleted, or we lack the permission to read it
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
			return errTooMany
		}
		return w.notify.Add(path)
	})
}

// skips reports whether a path is one that users do not edit.
func (w *Watcher) skips(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") || name == "node_modules" ||
		name == "__pycache__" || w.ignored(path)
}

// follow records changed paths until the watcher is closed.
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
			_ = w.add(e.Name, w.change) // fails if the folder has already been deleted, which is harmless
		}
		return
	}
	w.change(e.Name)
}

// forget stops watching a deleted folder and its subfolders, which makes room for other folders.
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

// Span is the time between the beginning and end of a run.
type Span struct{ From, To time.Time }

func (s Span) has(t time.Time) bool {
	return !t.Before(s.From.Add(-slack)) && !t.After(s.To.Add(slack))
}

// Next waits until the user changes files and returns the changed files in order. run is the last run. A new file
// that the run wrote does not count as changed. A known file that two consecutive runs wrote no longer counts; Next
// returns each such file once, in written.
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

// judge reports whether a change counts. now reports whether a known file stops counting with this change, because
// two consecutive runs wrote it.
func (w *Watcher) judge(path string, run Span) (counts, now bool) {
	info, err := os.Stat(path)
	switch {
	case err != nil: // the file was deleted
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

// settle waits for a hint, and then until no further one has arrived for quiet, at most for longest.
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

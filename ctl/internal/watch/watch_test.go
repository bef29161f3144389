package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/service-dev/service/test/reaper"
)

func TestMain(m *testing.M) {
	os.Exit(reaper.Run(func() int {
		code := m.Run()
		if err := goleak.Find(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}))
}

func TestSettle_TakesABurstAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hint := make(chan struct{})
		start := time.Now()
		go func() {
			for range 5 {
				time.Sleep(60 * time.Millisecond) // in the test's fake time
				hint <- struct{}{}
			}
		}()
		if err := settle(t.Context(), hint); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 5*60*time.Millisecond+quiet {
			t.Errorf("settle took %v, want 5 writes and one quiet period", took)
		}
	})
}

func TestSettle_EndsThoughChangesGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hint := make(chan struct{}, 1)
		ctx, cancel := context.WithCancel(t.Context())
		var changes sync.WaitGroup
		changes.Go(func() {
			for ctx.Err() == nil {
				select {
				case hint <- struct{}{}:
				default:
				}
				time.Sleep(50 * time.Millisecond)
			}
		})
		start := time.Now()
		err := settle(ctx, hint)
		if took := time.Since(start); err != nil || took != longest {
			t.Errorf("settle returned %v after %v, want nil after %v", err, took, longest)
		}
		cancel()
		changes.Wait()
	})
}

func TestSettle_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := settle(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// project is a watched folder.
type project struct {
	t   *testing.T
	dir string
	*Watcher
}

func newProject(t *testing.T, files ...string) *project {
	t.Helper()
	p := &project{t: t, dir: t.TempDir()}
	for _, file := range files {
		p.write(file, time.Now().Add(-time.Hour))
	}
	var err error
	if p.Watcher, err = New([]string{p.dir}, func(path string) bool { return filepath.Base(path) == "report.xml" }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// write changes a file and sets its modification time.
func (p *project) write(file string, at time.Time) {
	p.t.Helper()
	path := filepath.Join(p.dir, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(at.String()), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		p.t.Fatal(err)
	}
}

func (p *project) next(run Span) (changed, written []string) {
	p.t.Helper()
	changed, written, err := p.Next(p.t.Context(), run)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, list := range [][]string{changed, written} {
		for i := range list {
			list[i], _ = filepath.Rel(p.dir, list[i])
		}
	}
	return changed, written
}

func TestWatcher_NoticesWhatAPersonChanges(t *testing.T) {
	p := newProject(t, "app.js", "lib/a.js", "node_modules/x/y.js")
	run := Span{time.Now().Add(-time.Minute), time.Now().Add(-30 * time.Second)}
	p.write("node_modules/x/y.js", time.Now())
	p.write(".git/index", time.Now())
	p.write("report.xml", time.Now())
	p.write("lib/a.js", time.Now())
	if changed, _ := p.next(run); !slices.Equal(changed, []string{filepath.Join("lib", "a.js")}) {
		t.Errorf("changed files: got %v, want lib/a.js", changed)
	}
	p.write("new/b.js", time.Now())
	if changed, _ := p.next(run); !slices.Equal(changed, []string{filepath.Join("new", "b.js")}) {
		t.Errorf("changed files in a new folder: got %v, want new/b.js", changed)
	}
	if err := os.Remove(filepath.Join(p.dir, "app.js")); err != nil {
		t.Fatal(err)
	}
	if changed, _ := p.next(run); !slices.Equal(changed, []string{"app.js"}) {
		t.Errorf("changed files after a removal: got %v, want app.js", changed)
	}
}

// Folders that are created and deleted do not use up the limit of watched folders.
func TestWatcher_ForgetsFoldersThatWent(t *testing.T) {
	p := newProject(t, "app.js")
	run := Span{time.Now().Add(-time.Minute), time.Now().Add(-30 * time.Second)}
	until := func(file string) {
		p.write(file, time.Now())
		for changed, _ := p.next(run); !slices.Contains(changed, file); changed, _ = p.next(run) {
		}
	}
	until(filepath.Join("build", "deep", "a.js"))
	if err := os.RemoveAll(filepath.Join(p.dir, "build")); err != nil {
		t.Fatal(err)
	}
	until("app.js")
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.folders) != 1 || !p.folders[p.dir] {
		t.Errorf("watched folders: got %v, want only the project's", p.folders)
	}
}

// A watched folder may be a symbolic link.
func TestWatcher_EntersALink(t *testing.T) {
	p := newProject(t, "app.js")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(p.dir, link); err != nil {
		t.Fatal(err)
	}
	w, err := New([]string{link}, func(string) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if !w.known[filepath.Join(link, "app.js")] || !w.folders[link] {
		t.Errorf("got known files %v, folders %v, want those below the link", w.known, w.folders)
	}
}

// A run that writes files does not cause an endless series of runs.
func TestWatcher_ForgetsWhatRunsWrite(t *testing.T) {
	p := newProject(t, "app.js", "app.log")
	run := Span{time.Now().Add(-time.Minute), time.Now().Add(-30 * time.Second)}
	during := run.From.Add(time.Second)
	p.write("trace.tmp", during) // a new file
	p.write("app.log", during)   // could be a change by the user during the run
	if changed, written := p.next(run); !slices.Equal(changed, []string{"app.log"}) || written != nil {
		t.Errorf("after one run: got changed %v, written %v, want changed app.log", changed, written)
	}
	p.write("app.log", during)
	p.write("trace.tmp", during)
	p.write("app.js", time.Now())
	changed, written := p.next(run)
	if !slices.Equal(changed, []string{"app.js"}) || !slices.Equal(written, []string{"app.log"}) {
		t.Errorf("after two runs: got changed %v, written %v, want changed app.js, written app.log", changed, written)
	}
	p.write("app.log", during)
	p.write("app.js", time.Now())
	if changed, written := p.next(run); !slices.Equal(changed, []string{"app.js"}) || written != nil {
		t.Errorf("after three runs: got changed %v, written %v, want changed app.js", changed, written)
	}
	p.write("app.log", time.Now())
	if changed, _ := p.next(run); !slices.Equal(changed, []string{"app.log"}) {
		t.Errorf("changed by a person later: got %v, want app.log", changed)
	}
}

func TestWatcher_EndsWithItsContext(t *testing.T) {
	p := newProject(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := p.Next(ctx, Span{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := New([]string{filepath.Join(p.dir, "nosuch")}, func(string) bool { return false }); err == nil {
		t.Error("New accepted a missing folder")
	}
}

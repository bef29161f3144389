//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// holding counts the resources of a process. unknown stands for a missing or failed count.
type holding struct{ goroutines, descriptors int }

const unknown = -1

// settle lowers each count to its current value and reports whether any was lowered. Failed counts change nothing.
func (h *holding) settle(now holding) (fell bool) {
	for _, count := range []struct {
		least *int
		now   int
	}{{&h.goroutines, now.goroutines}, {&h.descriptors, now.descriptors}} {
		if count.now != unknown && (*count.least == unknown || count.now < *count.least) {
			*count.least, fell = count.now, true
		}
	}
	return fell
}

func (h holding) String() string {
	if h.goroutines == unknown {
		return fmt.Sprintf("%d descriptors", h.descriptors)
	}
	return fmt.Sprintf("%d goroutines, %d descriptors", h.goroutines, h.descriptors)
}

// descriptors counts a process's open files, except those of databases, whose pool has its own limit and grows with
// the load.
func descriptors(pid int) int {
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if len(links) == 0 {
		return unknown // the process has exited
	}
	n := 0
	for _, link := range links {
		target, err := os.Readlink(link)
		if err == nil && !strings.HasPrefix(filepath.Base(target), "service.db") {
			n++
		}
	}
	return n
}

// goroutines requests the count and the stacks from the soak build.
func (w *testbed) goroutines(pid int) (n int, stacks []byte) {
	path := filepath.Join(w.seam, "goroutines."+strconv.Itoa(pid))
	os.Remove(path)
	if syscall.Kill(pid, syscall.SIGUSR1) != nil ||
		!eventually(5*time.Second, func() bool { _, err := os.Stat(path); return err == nil }) {
		return unknown, nil
	}
	data, err := os.ReadFile(path)
	os.Remove(path)
	first, stacks, _ := bytes.Cut(data, []byte("\n"))
	if n, err2 := strconv.Atoi(string(first)); err == nil && err2 == nil {
		return n, stacks
	}
	return unknown, nil
}

// settled measures until the counts no longer fall. It reports counts that always failed.
func (w *testbed) settled(name string, pid int, counts bool) (least holding, stacks []byte) {
	least = holding{unknown, unknown}
	for quiet := 0; quiet < 6; quiet++ {
		now, text := holding{unknown, descriptors(pid)}, []byte(nil)
		if counts {
			now.goroutines, text = w.goroutines(pid)
		}
		if least.settle(now) {
			quiet = 0
			if text != nil {
				stacks = text
			}
		}
		time.Sleep(500 * time.Millisecond)
	}
	if least.descriptors == unknown || counts && least.goroutines == unknown {
		w.results.report("failed to count the resources of %s (pid %d): %s", name, pid, least)
	}
	return least, stacks
}

// How much more a process may hold than a new process with the same role. Most of it is connection pools. The pool
// for PostgreSQL may have 16 connections.
const (
	slack         = 4
	slackPostgres = 16
)

// compare compares the resources of a process after the soak with the resources of a new process.
func (w *testbed) compare(name string, after, fresh holding, slack int, stacks []byte) {
	w.results.note(name, fmt.Sprintf("%s; a fresh one %s", after, fresh))
	if after.goroutines <= fresh.goroutines+slack && after.descriptors <= fresh.descriptors+slack {
		return
	}
	w.results.report("%s holds %s, a fresh one %s", name, after, fresh)
	keep("the goroutines of "+name, stacks)
}

// evidence saves the stacks of every running daemon.
func (w *testbed) evidence() {
	for _, pid := range w.pids("serviced") {
		_, stacks := w.goroutines(pid)
		keep(fmt.Sprintf("goroutines of daemon %d", pid), stacks)
	}
}

// keep saves evidence of a finding.
func keep(what string, text []byte) {
	if len(text) == 0 {
		return
	}
	f, err := os.CreateTemp("", fmt.Sprintf("soak-%d-*", os.Getpid()))
	if err != nil {
		return
	}
	defer f.Close()
	if _, err := f.Write(text); err == nil {
		fmt.Printf("kept %s: %s\n", what, f.Name())
	}
}

// tree lists the files in the machine's directories, except the files of the soak itself.
func (w *testbed) tree() []string {
	var list []string
	for _, top := range []string{w.state, w.tmp, filepath.Join(w.root, "data")} {
		_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err == nil {
				rel, _ := filepath.Rel(w.root, path)
				list = append(list, rel)
			}
			return nil
		})
	}
	return list
}

// kept reports whether a run may leave a file: recorded data, logs, codes, and the folders of open sessions, by id.
func kept(path string, open map[string]bool) bool {
	if temporary(filepath.Base(path)) {
		return false
	}
	if rest, ok := strings.CutPrefix(path, "disk/state/sessions/"); ok {
		id, _, _ := strings.Cut(rest, "/")
		return open[id]
	}
	for _, prefix := range []string{"disk/state/log/", "disk/state/telemetry/", "data/service.db"} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return path == "disk/state/sessions" || path == "disk/state/run/codes.json"
}

// temporary reports whether a name is a writer's temporary file.
func temporary(name string) bool {
	return strings.HasPrefix(name, ".") || strings.Contains(name, ".tmp") || strings.Contains(name, ".new") ||
		strings.HasSuffix(name, ".sock")
}

// swept reports whether a file is a temporary file of a killed daemon that was too new to be removed by the last
// start, because its writer might still have been running.
func (w *testbed) swept(path string) bool {
	if !strings.Contains(filepath.Base(path), ".tmp-") {
		return false
	}
	info, err := os.Stat(filepath.Join(w.root, path))
	return err == nil && time.Since(info.ModTime()) < 2*time.Minute
}

// left compares the file tree with the tree before the soak. open holds the open sessions.
func (w *testbed) left(before []string, open map[string]bool) {
	after := w.tree()
	more := 0
	for _, path := range after {
		if slices.Contains(before, path) || w.swept(path) {
			continue
		}
		more++
		if !kept(path, open) {
			w.results.report("left behind: %s", path)
		}
	}
	for _, path := range before {
		if !slices.Contains(after, path) {
			w.results.report("missing at the end: %s", path)
		}
	}
	w.results.note("files before, and new files that may remain", fmt.Sprintf("%d, %d", len(before), more))
}

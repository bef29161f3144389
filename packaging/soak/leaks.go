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

// holding is what a process holds; unknown is what nobody counted, or could not be.
type holding struct{ goroutines, descriptors int }

const unknown = -1

// settle takes over from now what is less; fell tells whether something is. A count that failed says nothing.
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

// descriptors counts what a process has open, but for a database's files: their pool has a bound of its own and grows
// with the load of the moment.
func descriptors(pid int) int {
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if len(links) == 0 {
		return unknown // it is gone
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

// goroutines asks the soak build for its count and its stacks.
func (w *world) goroutines(pid int) (n int, stacks []byte) {
	path := filepath.Join(w.seam, "goroutines."+strconv.Itoa(pid))
	os.Remove(path)
	if syscall.Kill(pid, syscall.SIGUSR1) != nil || !eventually(5*time.Second, func() bool { _, err := os.Stat(path); return err == nil }) {
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

// settled measures until the figures have not fallen for a while: what ends by itself has ended then. What could never
// be counted is a finding: nothing can be said about it.
func (w *world) settled(name string, pid int, counts bool) (least holding, stacks []byte) {
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
		w.ledger.find("what %s (pid %d) holds could not be counted: %s", name, pid, least)
	}
	return least, stacks
}

// How much more a process may hold than a fresh one in the same place: pools of connections, mostly. That to PostgreSQL
// may have 16.
const (
	slack         = 4
	slackPostgres = 16
)

// compare holds what a process had left after the soak against a fresh one.
func (w *world) compare(name string, after, fresh holding, slack int, stacks []byte) {
	w.ledger.note(name, fmt.Sprintf("%s; a fresh one %s", after, fresh))
	if after.goroutines <= fresh.goroutines+slack && after.descriptors <= fresh.descriptors+slack {
		return
	}
	w.ledger.find("%s holds %s, a fresh one %s", name, after, fresh)
	keep("the goroutines of "+name, stacks)
}

// evidence keeps what every daemon that runs is doing.
func (w *world) evidence() {
	for _, pid := range w.pids("serviced") {
		_, stacks := w.goroutines(pid)
		keep(fmt.Sprintf("goroutines of daemon %d", pid), stacks)
	}
}

// keep saves something for whoever looks into a finding.
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

// tree lists every file below the machine's directories, without what belongs to the soak itself.
func (w *world) tree() []string {
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

// kept are the files that a run may add: what was recorded and is meant to last, logs, codes, and the folders of sessions that
// are still open, by id; a closed session leaves nothing.
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

// temporary tells names that writers use while they write.
func temporary(name string) bool {
	return strings.HasPrefix(name, ".") || strings.Contains(name, ".tmp") || strings.Contains(name, ".new") || strings.HasSuffix(name, ".sock")
}

// left compares the tree with what it was before the soak; open are the sessions that are.
func (w *world) left(before []string, open map[string]bool) {
	after := w.tree()
	more := 0
	for _, path := range after {
		if slices.Contains(before, path) {
			continue
		}
		more++
		if !kept(path, open) {
			w.ledger.find("left behind: %s", path)
		}
	}
	for _, path := range before {
		if !slices.Contains(after, path) {
			w.ledger.find("missing at the end: %s", path)
		}
	}
	w.ledger.note("files before, and new ones that are meant to last", fmt.Sprintf("%d, %d", len(before), more))
}

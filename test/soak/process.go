//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a running program on this machine.
type process struct {
	pid  int
	name string
}

// processes returns all running programs of the simulated machine.
func (w *testbed) processes() []process {
	var found []process
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil || filepath.Dir(strings.TrimSuffix(target, " (deleted)")) != w.bin {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			found = append(found, process{pid, filepath.Base(target)})
		}
	}
	return found
}

// pids returns the processes whose program has the given prefix.
func (w *testbed) pids(prefix string) []int {
	var found []int
	for _, p := range w.processes() {
		if strings.HasPrefix(p.name, prefix) {
			found = append(found, p.pid)
		}
	}
	return found
}

// daemons returns the running daemons without their children, which also run serviced until they execute an adapter's
// program.
func (w *testbed) daemons() []int {
	all := w.pids("serviced")
	return slices.DeleteFunc(slices.Clone(all), func(pid int) bool { return slices.Contains(all, parentOf(pid)) })
}

// parentOf returns the parent of a process, or 0 if the process has exited.
func parentOf(pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "\nPPid:")
	line, _, _ := strings.Cut(rest, "\n")
	parent, _ := strconv.Atoi(strings.TrimSpace(line))
	return parent
}

// eventually polls until yes returns true or the limit is reached, because other processes do not send events.
func eventually(limit time.Duration, yes func() bool) bool {
	deadline := time.Now().Add(limit)
	for !yes() {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
	return true
}

// kill kills a process, which may already have exited.
func kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }

package reaper

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Processes get SIGTERM first, and SIGKILL after grace. The watchdog gives up after limit.
const (
	grace = 2 * time.Second
	limit = 20 * time.Second
	pause = 20 * time.Millisecond
)

// Watch starts a watchdog for dir, a temporary directory of this process. When this process ends or calls release, the
// watchdog ends every process that has dir in its environment, working directory or program path, and then removes
// dir. release returns after that.
func Watch(dir string) (release func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	held, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer held.Close()
	watchdog := exec.CommandContext(context.Background(), self) // it must outlive this process
	watchdog.Env = []string{variable + "=" + dir}
	watchdog.Dir = "/"
	watchdog.Stdin = held
	// The watchdog gets its own session, so that signals to the test's process group do not reach it.
	watchdog.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := watchdog.Start(); err != nil {
		ours.Close()
		return nil, fmt.Errorf("start the watchdog of %s: %w", dir, err)
	}
	return func() {
		ours.Close()
		_ = watchdog.Wait()
	}, nil
}

// guard runs the watchdog: it waits until the other end of its standard input is closed.
func guard(dir string) {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	spared := []int{os.Getpid(), os.Getppid()}
	_, _ = io.Copy(io.Discard, os.Stdin)
	end(dir, spared)
	unmount(dir)
	os.RemoveAll(dir)
}

// end ends the processes that use dir, including those that start in the meantime.
func end(dir string, spared []int) {
	began := time.Now()
	asked := map[int]bool{}
	for time.Since(began) < limit {
		left := processesOf(dir, spared)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			switch {
			case time.Since(began) > grace:
				_ = syscall.Kill(pid, syscall.SIGKILL)
			case !asked[pid]:
				asked[pid] = true
				_ = syscall.Kill(pid, syscall.SIGTERM)
			}
		}
		time.Sleep(pause)
	}
}

// processesOf returns the processes that have dir in their environment, program path or working directory.
func processesOf(dir string, spared []int) []int {
	entries, _ := os.ReadDir("/proc")
	var found []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || slices.Contains(spared, pid) {
			continue
		}
		proc := filepath.Join("/proc", e.Name())
		program, _ := os.Readlink(filepath.Join(proc, "exe"))
		place, _ := os.Readlink(filepath.Join(proc, "cwd"))
		environ, _ := os.ReadFile(filepath.Join(proc, "environ"))
		if mentions(program, dir) || mentions(place, dir) || mentions(string(environ), dir) {
			found = append(found, pid)
		}
	}
	return found
}

// mentions reports whether text contains the path dir or a path below it, not just a path with the same prefix.
func mentions(text, dir string) bool {
	for {
		_, after, found := strings.Cut(text, dir)
		if !found {
			return false
		}
		if after == "" || strings.ContainsRune("/\x00:\n ", rune(after[0])) {
			return true
		}
		text = after
	}
}

// unmount detaches everything that tests mounted below dir.
func unmount(dir string) {
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range bytes.Lines(mounts) {
		if fields := bytes.Fields(line); len(fields) > 1 && strings.HasPrefix(string(fields[1]), dir+"/") {
			_ = syscall.Unmount(string(fields[1]), syscall.MNT_DETACH)
		}
	}
}

package session

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// strays finds processes of an app that left its process group, for example by starting a session of their own. It
// finds them by an inherited environment variable, because their parents may have exited.
type strays struct {
	mark  string // an assignment of a variable in their environment
	group int    // the app's process group, which is ended separately
	asked map[int]bool
}

func newStrays(mark string, group int) *strays { return &strays{mark, group, map[int]bool{}} }

// list returns the processes that are still running.
func (s *strays) list() (pids []int) {
	const procs = "/proc"
	entries, err := os.ReadDir(procs)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(filepath.Join(procs, e.Name(), "environ")) // fails for processes of other users
		if err != nil || !bytes.Contains(append([]byte{0}, env...), []byte("\x00"+s.mark+"\x00")) {
			continue
		}
		if group, err := syscall.Getpgid(pid); err == nil && group != s.group {
			pids = append(pids, pid)
		}
	}
	return pids
}

// ask asks each process once to exit. Many programs treat a second signal as a request to exit immediately.
func (s *strays) ask() {
	for _, pid := range s.list() {
		if !s.asked[pid] {
			s.asked[pid] = true
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
	}
}

// killAfter waits until the processes have exited. When late receives a value, it kills the remaining ones.
func (s *strays) killAfter(late time.Time) {
	const pause = 10 * time.Millisecond
	for end := time.Now().Add(2 * endWait); ; time.Sleep(pause) {
		left := s.list()
		if len(left) == 0 || time.Now().After(end) {
			return
		}
		if time.Now().Before(late) {
			s.ask() // end processes that were started in the meantime
			continue
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

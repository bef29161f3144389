package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// strays are processes of an app that left its process group, for example for a session of their own. They are found
// by their environment, which they inherited, because their parents may have exited.
type strays struct {
	mark  string // an assignment of a variable in their environment
	group int    // the app's process group, which is ended otherwise
	asked map[int]bool
}

func newStrays(mark string, group int) *strays { return &strays{mark, group, map[int]bool{}} }

// list returns the processes that are left.
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

// ask asks each process once to exit: many programs take a second signal as a wish to exit at once.
func (s *strays) ask() {
	for _, pid := range s.list() {
		if !s.asked[pid] {
			s.asked[pid] = true
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
	}
}

// killAfter waits until the processes have exited, and kills those that have not by the given time.
func (s *strays) killAfter(late time.Time) {
	const pause = 10 * time.Millisecond
	for end := time.Now().Add(2 * endWait); ; time.Sleep(pause) {
		left := s.list()
		if len(left) == 0 || time.Now().After(end) {
			return
		}
		if time.Now().Before(late) {
			s.ask() // those that were started in the meantime
			continue
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

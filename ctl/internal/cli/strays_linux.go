package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Strays are processes of an app that left its process group, for example for a session of their own. They are found
// by their environment, which they inherited, because their parents may have exited.

// strays returns the processes whose environment has the variable assignment mark.
func strays(mark string) (pids []int) {
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
		if err == nil && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+mark+"\x00")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func askStrays(mark string) {
	for _, pid := range strays(mark) {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
}

// killStrays waits until the strays have exited, and kills those that have not by the given time.
func killStrays(mark string, late time.Time) {
	const pause = 10 * time.Millisecond
	signal := syscall.SIGTERM // for those that were started while others were asked
	for end := time.Now().Add(2 * endWait); ; time.Sleep(pause) {
		left := strays(mark)
		if len(left) == 0 || time.Now().After(end) {
			return
		}
		if time.Now().After(late) {
			signal = syscall.SIGKILL
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, signal)
		}
	}
}

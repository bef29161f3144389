package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/service-dev/service/ctl/internal/dialer"
	"github.com/service-dev/service/internal/rendezvous"
)

// holds reports whether a process belongs to this user and has the lock file of the state directory open. A daemon
// keeps that file open until it exits.
func holds(d dialer.Daemon, pid int) bool {
	lock, err := os.Stat(filepath.Join(d.Paths.Run, rendezvous.DaemonLock))
	if err != nil || !d.Held() {
		return false
	}
	info, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	if err != nil {
		return false
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Getuid() {
		return false
	}
	open, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, fd := range open {
		if file, err := os.Stat(fd); err == nil && os.SameFile(file, lock) {
			return true
		}
	}
	return false
}

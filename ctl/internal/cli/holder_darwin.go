package cli

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/service-dev/service/ctl/internal/dialer"
)

// holds reports whether a process is listening on the control socket, whose directory only this user can access.
func holds(d dialer.Daemon, pid int) bool {
	conn, err := d.Dial(d.Paths.Control)
	if err != nil {
		return false
	}
	defer conn.Close()
	file, ok := conn.(*os.File)
	return ok && d.Held() && listener(file.Fd()) == pid
}

// listener returns the process at the other end of a Unix socket, or 0 if it is unknown.
func listener(fd uintptr) int {
	pid, err := unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	if err != nil {
		return 0
	}
	return pid
}

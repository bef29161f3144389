package cli

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/windows"

	"github.com/service-dev/service/ctl/internal/dialer"
)

// askProcess ends the process, because Windows has no signal that asks for a clean exit.
func askProcess(p *os.Process) error { return p.Kill() }

// holds reports whether a process runs serviced while a daemon holds the state directory.
func holds(d dialer.Daemon, pid int) bool {
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return false
	}
	defer func() { _ = windows.CloseHandle(process) }()
	var name [windows.MAX_LONG_PATH]uint16
	size := uint32(len(name))
	if windows.QueryFullProcessImageName(process, 0, &name[0], &size) != nil {
		return false
	}
	return d.Held() && strings.EqualFold(filepath.Base(windows.UTF16ToString(name[:size])), "serviced.exe")
}

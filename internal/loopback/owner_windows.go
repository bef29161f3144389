package loopback

import (
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/windows"
)

var getExtendedTCPTable = windows.NewLazySystemDLL("iphlpapi.dll").NewProc("GetExtendedTcpTable")

// tableConnections is TCP_TABLE_OWNER_PID_CONNECTIONS.
const tableConnections = 4

// checkOwner finds the process at the other end and compares the user of its token with the user of this process. It
// treats the local system as root. If this user may not read the token, the process belongs to another user.
func checkOwner(peer, local netip.AddrPort) error {
	pid, err := processOf(peer, local)
	if err != nil {
		return err
	}
	if pid == 0 { // the process exited before its connection closed
		return ErrNoOwner
	}
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
	if err != nil {
		return notReadable(err, pid)
	}
	defer windows.CloseHandle(process)
	var token windows.Token
	if err := windows.OpenProcessToken(process, windows.TOKEN_QUERY, &token); err != nil {
		return notReadable(err, pid)
	}
	defer token.Close()
	theirs, err := token.GetTokenUser()
	if err != nil {
		return fmt.Errorf("read the user of process %d: %w", pid, err)
	}
	ours, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return fmt.Errorf("read the user of this process: %w", err)
	}
	// The process may have exited in the meantime, and its PID may have been reused.
	if again, err := processOf(peer, local); err != nil || again != pid {
		return ErrNoOwner
	}
	if theirs.User.Sid.Equals(ours.User.Sid) || theirs.User.Sid.IsWellKnown(windows.WinLocalSystemSid) {
		return nil
	}
	return fmt.Errorf("%w, %s", ErrOtherUser, theirs.User.Sid)
}

func notReadable(err error, pid uint32) error {
	switch {
	case errors.Is(err, windows.ERROR_ACCESS_DENIED):
		return fmt.Errorf("%w, process %d", ErrOtherUser, pid)
	case errors.Is(err, windows.ERROR_INVALID_PARAMETER): // the process has exited
		return ErrNoOwner
	}
	return fmt.Errorf("read the user of process %d: %w", pid, err)
}

// processOf returns the ID of the process that owns the socket at peer, connected to local.
func processOf(peer, local netip.AddrPort) (uint32, error) {
	families := []uint32{windows.AF_INET, windows.AF_INET6} // an IPv6 socket may carry IPv4
	if !peer.Addr().Is4() {
		families = families[1:]
	}
	for _, family := range families {
		table, err := readTCPTable(family)
		if err != nil {
			return 0, err
		}
		if pid, found := findInTCPTable(table, family == windows.AF_INET6, peer, local); found {
			return pid, nil
		}
	}
	return 0, ErrNoOwner
}

// readTCPTable calls GetExtendedTcpTable, and again with a larger buffer if the table has grown.
func readTCPTable(family uint32) ([]byte, error) {
	size := uint32(16 << 10)
	for range 8 {
		buf := make([]byte, size)
		code, _, _ := getExtendedTCPTable.Call(uintptr(unsafe.Pointer(&buf[0])), uintptr(unsafe.Pointer(&size)), 0,
			uintptr(family), tableConnections, 0)
		switch errno := windows.Errno(code); errno {
		case windows.ERROR_SUCCESS:
			return buf, nil
		case windows.ERROR_INSUFFICIENT_BUFFER:
			size += size / 4
		default:
			return nil, fmt.Errorf("read the table of TCP connections: %w", errno)
		}
	}
	return nil, errors.New("read the table of TCP connections: it grows faster than it can be read")
}

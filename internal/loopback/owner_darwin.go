package loopback

import (
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// checkOwner searches the system's list of TCP control blocks, which netstat also uses.
func checkOwner(peer, local netip.AddrPort) error {
	list, err := unix.SysctlRaw("net.inet.tcp.pcblist_n")
	if err != nil {
		return fmt.Errorf("read the list of TCP connections: %w", err)
	}
	uid, err := findInPCBList(list, peer, local)
	if err != nil {
		return err
	}
	if uid == 0 || int(uid) == os.Getuid() {
		return nil
	}
	return fmt.Errorf("%w, uid %d", ErrOtherUser, uid)
}

package loopback

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// holder is the owner of a socket. A socket that its process has closed has no inode and appears to be owned by root.
type holder struct {
	uid   uint32
	inode uint32
}

// diagWorks is set once the kernel has responded to a query for one socket. Before that, "no such entry" may mean that
// the kernel does not support such queries.
var diagWorks atomic.Bool

// checkOwner looks up the owner of the socket whose local address is peer and whose remote address is local.
func checkOwner(peer, local netip.AddrPort) error {
	if err := checkUserNamespace(); err != nil {
		return err
	}
	h, err := queryKernel(peer, local)
	switch {
	case err == nil:
		diagWorks.Store(true)
	case errors.Is(err, ErrNoOwner) && diagWorks.Load():
		return err
	default: // sandboxes and small kernels lack sock_diag
		if h, err = readTable(peer, local); err != nil {
			return err
		}
	}
	switch {
	case h.inode == 0:
		return ErrNoOwner
	case h.uid == 0 || int(h.uid) == os.Getuid():
		return nil
	}
	return fmt.Errorf("%w, uid %d", ErrOtherUser, h.uid)
}

// checkOpen returns an error if the peer has reset the connection. Data of such a connection can still be read, but
// another process, which checkOwner would find, may now have a socket at the same address.
func checkOpen(conn net.Conn) error {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	var info *unix.TCPInfo
	var inner error
	err = raw.Control(func(fd uintptr) {
		info, inner = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	if err = cmp.Or(err, inner); err != nil {
		return err
	}
	if info.State == stateClose {
		return ErrNoOwner
	}
	return nil
}

// checkUserNamespace returns an error if users cannot be distinguished. In a user namespace the kernel reports all
// unmapped users under one uid, which may also be the uid of this process.
func checkUserNamespace() error {
	overflow, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if strings.TrimSpace(string(overflow)) != strconv.Itoa(os.Getuid()) {
		return nil
	}
	ids, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return err
	}
	if f := strings.Fields(string(ids)); len(f) != 3 || f[0] != "0" || f[1] != "0" || f[2] != "4294967295" {
		return errors.New("this user namespace does not distinguish other users from this one")
	}
	return nil
}

// Layout of struct inet_diag_req_v2 and struct inet_diag_msg (linux/inet_diag.h). Ports and addresses are in network
// byte order, and all other fields are in the machine's byte order.
const (
	diagIDSize  = 48
	diagReqSize = 8 + diagIDSize
	diagMsgSize = 4 + diagIDSize + 20

	stateTimeWait = 6
	stateClose    = 7
	stateListen   = 10
)

// queryKernel looks up exactly one socket with netlink.
func queryKernel(peer, local netip.AddrPort) (holder, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return holder{}, fmt.Errorf("query the owner of a socket: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		return holder{}, fmt.Errorf("query the owner of a socket: %w", err)
	}
	if err := unix.Sendto(fd, diagRequest(peer, local), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return holder{}, fmt.Errorf("query the owner of a socket: %w", err)
	}
	var buf [1024]byte
	n, from, err := unix.Recvfrom(fd, buf[:], 0)
	if err != nil {
		return holder{}, fmt.Errorf("query the owner of a socket: %w", err)
	}
	if sender, ok := from.(*unix.SockaddrNetlink); !ok || sender.Pid != 0 {
		return holder{}, errors.New("query the owner of a socket: the response does not come from the kernel")
	}
	return diagAnswer(buf[:n], peer, local)
}

func diagRequest(peer, local netip.AddrPort) []byte {
	m := make([]byte, unix.SizeofNlMsghdr+diagReqSize)
	native := binary.NativeEndian
	native.PutUint32(m, uint32(len(m)))
	native.PutUint16(m[4:], unix.SOCK_DIAG_BY_FAMILY)
	native.PutUint16(m[6:], unix.NLM_F_REQUEST)
	req := m[unix.SizeofNlMsghdr:]
	req[0], req[1] = family(peer), unix.IPPROTO_TCP
	native.PutUint32(req[4:], ^uint32(0)) // any state
	id := req[8:]
	binary.BigEndian.PutUint16(id, peer.Port())
	binary.BigEndian.PutUint16(id[2:], local.Port())
	copy(id[4:20], peer.Addr().AsSlice())
	copy(id[20:36], local.Addr().AsSlice())
	native.PutUint32(id[40:], ^uint32(0)) // any cookie
	native.PutUint32(id[44:], ^uint32(0))
	return m
}

func family(a netip.AddrPort) byte {
	if a.Addr().Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// diagAnswer parses the single message of a response. It ignores responses about other sockets, because if there is no
// connection, the kernel reports a listener at the same address.
func diagAnswer(m []byte, peer, local netip.AddrPort) (holder, error) {
	if len(m) < unix.SizeofNlMsghdr+4 {
		return holder{}, errors.New("query the owner of a socket: response too short")
	}
	native := binary.NativeEndian
	body := m[unix.SizeofNlMsghdr:]
	switch native.Uint16(m[4:]) {
	case unix.NLMSG_ERROR:
		errno := unix.Errno(-int32(native.Uint32(body)))
		if errno == unix.ENOENT {
			return holder{}, ErrNoOwner
		}
		return holder{}, fmt.Errorf("query the owner of a socket: %w", errno)
	case unix.SOCK_DIAG_BY_FAMILY:
	default:
		return holder{}, errors.New("query the owner of a socket: unknown response")
	}
	if len(body) < diagMsgSize {
		return holder{}, errors.New("query the owner of a socket: response too short")
	}
	state, id := body[1], body[4:4+diagIDSize]
	size := 16
	if body[0] == unix.AF_INET {
		size = 4
	}
	src, okSrc := netip.AddrFromSlice(id[4 : 4+size])
	dst, okDst := netip.AddrFromSlice(id[20 : 20+size])
	if !okSrc || !okDst || state == stateListen || state == stateTimeWait ||
		plain(netip.AddrPortFrom(src, binary.BigEndian.Uint16(id))) != peer ||
		plain(netip.AddrPortFrom(dst, binary.BigEndian.Uint16(id[2:]))) != local {
		return holder{}, ErrNoOwner
	}
	rest := body[4+diagIDSize:]
	return holder{uid: native.Uint32(rest[12:]), inode: native.Uint32(rest[16:])}, nil
}

// readTable searches the kernel's text tables. If a program uses IPv4 through an IPv6 socket, its socket is in the
// second table.
func readTable(peer, local netip.AddrPort) (holder, error) {
	tables := []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"}
	if !peer.Addr().Is4() {
		tables = tables[1:]
	}
	for _, path := range tables {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) && path != tables[0] {
			continue // the kernel has no IPv6
		}
		if err != nil {
			return holder{}, fmt.Errorf("find the owner of a socket: %w", err)
		}
		h, found, err := findInTable(bufio.NewScanner(f), peer, local)
		f.Close()
		if err != nil {
			return holder{}, fmt.Errorf("find the owner of a socket in %s: %w", path, err)
		}
		if found {
			return h, nil
		}
	}
	return holder{}, ErrNoOwner
}

// findInTable parses lines in the format of proc(5). The second and third fields are the addresses, the fourth is the
// state, the eighth the uid and the tenth the inode.
func findInTable(lines *bufio.Scanner, peer, local netip.AddrPort) (h holder, found bool, err error) {
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 10 {
			continue
		}
		own, err := parseAddress(f[1])
		if err != nil || own != peer {
			continue
		}
		if other, err := parseAddress(f[2]); err != nil || other != local {
			continue
		}
		if state, err := strconv.ParseUint(f[3], 16, 8); err != nil || state == stateListen || state == stateTimeWait {
			continue
		}
		uid, err := strconv.ParseUint(f[7], 10, 32)
		if err != nil {
			return holder{}, false, err
		}
		inode, err := strconv.ParseUint(f[9], 10, 32)
		if err != nil {
			return holder{}, false, err
		}
		return holder{uid: uint32(uid), inode: uint32(inode)}, true, nil
	}
	return holder{}, false, lines.Err()
}

// parseAddress parses a hexadecimal ADDRESS:PORT. The address consists of 32-bit words in the machine's byte order.
func parseAddress(s string) (netip.AddrPort, error) {
	host, port, _ := strings.Cut(s, ":")
	raw, err := hex.DecodeString(host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	for i := 0; i+4 <= len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	addr, ok := netip.AddrFromSlice(raw)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("%q is not an address", s)
	}
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return plain(netip.AddrPortFrom(addr, uint16(n))), nil
}

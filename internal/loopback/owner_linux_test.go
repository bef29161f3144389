package loopback

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/service-dev/service/test/reaper"
)

// dialTo is the environment variable that makes this test binary connect to an address and wait until its input ends.
const dialTo = "LOOPBACK_TEST_DIAL"

func TestMain(m *testing.M) {
	if address := os.Getenv(dialTo); address != "" {
		os.Exit(dialAndWait(address))
	}
	os.Exit(reaper.Run(m.Run))
}

func dialAndWait(address string) int {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer conn.Close()
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func addresses(conn net.Conn) (peer, local netip.AddrPort) {
	return plain(conn.RemoteAddr().(*net.TCPAddr).AddrPort()), plain(conn.LocalAddr().(*net.TCPAddr).AddrPort())
}

// Both kinds of lookup return the same owner, for each address family.
func TestLookups(t *testing.T) {
	for network, host := range map[string]string{"tcp4": "127.0.0.1", "tcp6": "::1"} {
		client, conn := pair(t, network, host)
		peer, local := addresses(conn)
		for name, look := range map[string]func(peer, local netip.AddrPort) (holder, error){"netlink": queryKernel,
			"table": readTable} {
			h, err := look(peer, local)
			if err != nil || int(h.uid) != os.Getuid() || h.inode == 0 {
				t.Errorf("%s by %s: got %+v, %v, want this user", host, name, h, err)
			}
			other := netip.AddrPortFrom(peer.Addr(), 1)
			if _, err := look(other, local); !errors.Is(err, ErrNoOwner) {
				t.Errorf("no connection at %s, by %s: got %v, want ErrNoOwner", host, name, err)
			}
		}
		client.Close()
		for name, look := range map[string]func(peer, local netip.AddrPort) (holder, error){"netlink": queryKernel,
			"table": readTable} {
			if h, err := look(peer, local); err == nil && h.inode != 0 {
				t.Errorf("closed end at %s, by %s: got %+v, want no owner", host, name, h)
			}
		}
	}
}

// Without a connection, the kernel's lookup falls back to a listener at the address, which is not the peer.
func TestAListenerIsNotTheOtherEnd(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := plain(l.Addr().(*net.TCPAddr).AddrPort())
	for name, look := range map[string]func(peer, local netip.AddrPort) (holder, error){"netlink": queryKernel,
		"table": readTable} {
		if h, err := look(at, local4); !errors.Is(err, ErrNoOwner) {
			t.Errorf("%s: got %+v, %v, want ErrNoOwner", name, h, err)
		}
	}
}

// A program may use IPv4 through an IPv6 socket.
func TestCheck_IPv4ThroughAnIPv6Socket(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Skipf("SKIPPED: no IPv6 on this machine: %v", err)
	}
	defer unix.Close(fd)
	to := &unix.SockaddrInet6{Port: l.Addr().(*net.TCPAddr).Port, Addr: netip.MustParseAddr("::ffff:127.0.0.1").As16()}
	if err := unix.Connect(fd, to); err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := CheckPeer(conn); err != nil {
		t.Errorf("check by netlink: %v", err)
	}
	peer, local := addresses(conn)
	if h, err := readTable(peer, local); err != nil || int(h.uid) != os.Getuid() {
		t.Errorf("check by table: got %+v, %v, want this user", h, err)
	}
}

// The kernel reports a closed or reset peer as owned by root, so it cannot be identified.
func TestCheck_RefusesAClosedPeer(t *testing.T) {
	for name, leave := range map[string]func(*net.TCPConn){
		"closed": func(c *net.TCPConn) { c.Close() },
		"reset":  func(c *net.TCPConn) { _ = c.SetLinger(0); c.Close() },
	} {
		client, conn := pair(t, "tcp4", "127.0.0.1")
		if _, err := io.WriteString(client, "GET / HTTP/1.0\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		leave(client.(*net.TCPConn))
		if err := CheckPeer(conn); !errors.Is(err, ErrNoOwner) {
			t.Errorf("Check of a %s peer: got %v, want ErrNoOwner", name, err)
		}
		if err := checkOpen(conn); name == "reset" && !errors.Is(err, ErrNoOwner) {
			t.Errorf("checkOpen of a %s peer: got %v, want ErrNoOwner", name, err)
		}
	}
}

// A guarded listener refuses another user before it reads anything, and still accepts its own user afterwards.
func TestGuard_RefusesAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("switching to another user requires root")
		}
		t.Skip("SKIPPED: switching to another user requires root")
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reported := make(chan error, 1)
	g := Guard(l, func(err error) { reported <- err })
	defer g.Close()
	accepted := make(chan net.Conn)
	go func() {
		if conn, err := g.Accept(); err == nil {
			accepted <- conn
		}
	}()
	stranger := asNobody(t, l.Addr().String())
	stdin, err := stranger.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	if err := <-reported; !errors.Is(err, ErrOtherUser) || !strings.Contains(err.Error(), "uid 65534") {
		t.Errorf("refused with %v, want ErrOtherUser that names uid 65534", err)
	}
	own, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if conn := <-accepted; conn.RemoteAddr().String() != own.LocalAddr().String() {
		t.Errorf("the connection of another user at %s was accepted", conn.RemoteAddr())
	}
	stdin.Close()
	if err := stranger.Wait(); err != nil {
		t.Error(err)
	}
}

// asNobody returns a command that runs this test binary as another user, from a directory where that user may execute
// it.
func asNobody(t *testing.T, address string) *exec.Cmd {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "loopback")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "self")
	if err := errors.Join(os.WriteFile(program, self, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Dir, cmd.Env = "/", []string{dialTo + "=" + address}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	return cmd
}

func TestFindInTable(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:9C40 0100007F:1F90 06 00000000:00000000 03:00000000 00000000     0        0 0 3 0000000000000000
   1: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000   500        0 70 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:9C40 0100007F:1F90 01 00000000:00000000 00:00000000 00000000   501        0 71 1 0000000000000000 20 4 30 10 -1
`
	h, found, err := findInTable(bufio.NewScanner(strings.NewReader(table)), peer4, local4)
	if isLittleEndian() && (err != nil || !found || h != (holder{uid: 501, inode: 71})) {
		t.Errorf("got %+v, %t, %v, want uid 501 and inode 71", h, found, err)
	}
}

func isLittleEndian() bool {
	a, err := parseAddress("0100007F:0001")
	return err == nil && a.Addr() == netip.MustParseAddr("127.0.0.1")
}

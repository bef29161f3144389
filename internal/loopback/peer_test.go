package loopback

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
)

// pair returns a connection of this process to itself. client is the end whose owner is looked up.
func pair(t *testing.T, network, host string) (client, accepted net.Conn) {
	t.Helper()
	l, err := net.Listen(network, net.JoinHostPort(host, "0"))
	if err != nil {
		t.Skipf("no %s on this machine: %v", host, err)
	}
	defer l.Close()
	if client, err = net.Dial(network, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if accepted, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { accepted.Close() })
	return client, accepted
}

func TestProbe(t *testing.T) {
	if err := ProbePeers(); err != nil {
		t.Fatalf("owners cannot be determined on this system: %v", err)
	}
}

func TestCheck_OwnConnection(t *testing.T) {
	for network, host := range map[string]string{"tcp4": "127.0.0.1", "tcp6": "::1"} {
		_, conn := pair(t, network, host)
		if err := CheckPeer(conn); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestCheck_RefusesWhatIsNotTCP(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if CheckPeer(a) == nil {
		t.Error("Check accepted a pipe")
	}
}

// The addresses have the form that the lookups receive.
var (
	peer4  = netip.MustParseAddrPort("127.0.0.1:40000")
	local4 = netip.MustParseAddrPort("127.0.0.1:8080")
	peer6  = netip.MustParseAddrPort("[::1]:40000")
	local6 = netip.MustParseAddrPort("[::1]:8080")
)

// pcb builds a list in macOS' format.
type pcb struct{ list []byte }

func newPCB() *pcb {
	p := &pcb{make([]byte, pcbHeaderSize)}
	binary.NativeEndian.PutUint32(p.list, pcbHeaderSize)
	return p
}

// record adds size bytes, padded to eight.
func (p *pcb) record(kind uint32, size int) []byte {
	at := len(p.list)
	p.list = append(p.list, make([]byte, (size+7)&^7)...)
	r := p.list[at : at+size]
	binary.NativeEndian.PutUint32(r, uint32(size))
	binary.NativeEndian.PutUint32(r[4:], kind)
	return r
}

func (p *pcb) add(own, other netip.AddrPort, uid uint32, socket bool) {
	r := p.record(kindINPCB, 104)
	version, pad := byte(2), 0
	if own.Addr().Is4() {
		version, pad = 1, 12
	}
	r[pcbVersion] = version
	binary.BigEndian.PutUint16(r[pcbLocalPort:], own.Port())
	binary.BigEndian.PutUint16(r[pcbForeignPort:], other.Port())
	copy(r[pcbLocal+pad:], own.Addr().AsSlice())
	copy(r[pcbForeign+pad:], other.Addr().AsSlice())
	s := p.record(kindSocket, 90)
	if socket {
		binary.NativeEndian.PutUint16(s[socketType:], sockStream)
		binary.NativeEndian.PutUint32(s[socketUID:], uid)
	}
	p.record(0x002, 36)
	p.record(0x020, 204)
}

func TestFindInPCBList(t *testing.T) {
	p := newPCB()
	// The accepted end must not be mistaken for the end that is looked up.
	p.add(local4, peer4, 1, true)
	p.add(peer4, local4, 501, true)
	p.add(peer6, local6, 502, true)
	gone := netip.MustParseAddrPort("127.0.0.1:40001")
	p.add(gone, local4, 0, false)
	list := slices.Concat(p.list, make([]byte, pcbHeaderSize))
	for _, c := range []struct {
		peer, local netip.AddrPort
		uid         uint32
		err         error
	}{
		{peer4, local4, 501, nil},
		{peer6, local6, 502, nil},
		{gone, local4, 0, ErrNoOwner},
		{netip.MustParseAddrPort("127.0.0.1:40002"), local4, 0, ErrNoOwner},
	} {
		if uid, err := findInPCBList(list, c.peer, c.local); uid != c.uid || !errors.Is(err, c.err) {
			t.Errorf("%s: got uid %d, %v, want %d, %v", c.peer, uid, err, c.uid, c.err)
		}
	}
	binary.NativeEndian.PutUint32(list[pcbHeaderSize:], 1<<30)
	if _, err := findInPCBList(list, peer4, local4); !errors.Is(err, errPCBList) {
		t.Errorf("a record longer than the list: got %v, want errPCBList", err)
	}
	if _, err := findInPCBList(nil, peer4, local4); !errors.Is(err, errPCBList) {
		t.Errorf("an empty list: got %v, want errPCBList", err)
	}
}

func TestFindInTCPTable(t *testing.T) {
	four := make([]byte, 4+2*row4Size)
	binary.LittleEndian.PutUint32(four, 2)
	row := four[4+row4Size:]
	copy(row[row4Local:], peer4.Addr().AsSlice())
	copy(row[row4Remote:], local4.Addr().AsSlice())
	binary.BigEndian.PutUint16(row[row4LocalPort:], peer4.Port())
	binary.BigEndian.PutUint16(row[row4RemotePort:], local4.Port())
	binary.LittleEndian.PutUint32(row[row4PID:], 77)
	if pid, found := findInTCPTable(four, false, peer4, local4); pid != 77 || !found {
		t.Errorf("IPv4: got pid %d, %t, want 77", pid, found)
	}
	if _, found := findInTCPTable(four, false, local4, peer4); found {
		t.Error("the accepted end was mistaken for the other one")
	}
	six := make([]byte, 4+row6Size)
	binary.LittleEndian.PutUint32(six, 1)
	row = six[4:]
	copy(row[row6Local:], peer6.Addr().AsSlice())
	copy(row[row6Remote:], local6.Addr().AsSlice())
	binary.BigEndian.PutUint16(row[row6LocalPort:], peer6.Port())
	binary.BigEndian.PutUint16(row[row6RemotePort:], local6.Port())
	binary.LittleEndian.PutUint32(row[row6PID:], 78)
	if pid, found := findInTCPTable(six, true, peer6, local6); pid != 78 || !found {
		t.Errorf("IPv6: got pid %d, %t, want 78", pid, found)
	}
	if _, found := findInTCPTable(six[:20], true, peer6, local6); found {
		t.Error("an owner was found in a truncated table")
	}
}

// A listener accepts its own user, and continues to work after it has refused another user.
func TestGuard(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var reports atomic.Int32
	g := Guard(l, func(error) { reports.Add(1) })
	defer g.Close()
	client, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := g.Accept()
	if err != nil || conn.RemoteAddr().String() != client.LocalAddr().String() {
		t.Fatalf("got connection %v, %v, want an accepted connection", conn, err)
	}
	conn.Close()
	if reports.Load() != 0 {
		t.Error("a refusal was reported for this user")
	}
}

func TestGuard_ReportsRefusalsOnceAMinute(t *testing.T) {
	var reports int
	g := &guarded{report: func(error) { reports++ }}
	for range 100 {
		g.note(ErrOtherUser)
	}
	if reports != 1 {
		t.Errorf("got %d reports, want 1", reports)
	}
}

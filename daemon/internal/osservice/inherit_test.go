//go:build unix

package osservice

import (
	"net"
	"os"
	"syscall"
	"testing"
)

func TestPassedDescriptors(t *testing.T) {
	for _, c := range []struct {
		pid, n string
		count  int
		ok     bool
	}{
		{"7", "2", 2, true}, {"8", "2", 0, false}, {"", "2", 0, false}, {"7", "", 0, false}, {"7", "0", 0, false},
		{"7", "-1", 0, false}, {"7", "65", 0, false}, {"x", "x", 0, false},
	} {
		if count, ok := passed(c.pid, c.n, 7); ok != c.ok || ok && count != c.count {
			t.Errorf("%q %q: %d %v", c.pid, c.n, count, ok)
		}
	}
}

// TestOtherDescriptorsAreRefused checks that a descriptor that is not a listening Unix socket is refused, because it
// belongs to another unit.
func TestOtherDescriptorsAreRefused(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	socket, err := tcp.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	pipe, other, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	defer pipe.Close()
	for name, file := range map[string]*os.File{"a TCP socket": socket, "a pipe": pipe} {
		fd, err := syscall.Dup(int(file.Fd())) // listener closes it
		if err != nil {
			t.Fatal(err)
		}
		if l, err := listener(fd); err == nil {
			t.Errorf("%s was accepted as a socket at %v", name, l.Addr())
		}
	}
}

package descriptors

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestShare(t *testing.T) {
	for _, test := range []struct{ limit, want int }{{0, 256}, {1 << 20, 256}, {1024, 256}, {256, 108}, {100, 30},
		{44, fewest}, {8, fewest}} {
		if got := share(test.limit, 256, 50); got != test.want {
			t.Errorf("a limit of %d leaves %d connections, want %d", test.limit, got, test.want)
		}
	}
}

func TestReserveIsSpentOnWhoWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	r := NewReserve()
	exhausted := exhaustion()
	if conn := r.Accept(l, exhausted); conn != nil || r.file == nil {
		t.Errorf("without a client: connection %v, reserve %v; want no connection and the reserve kept", conn, r.file)
	}
	client, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if conn := r.Accept(l, errors.New("anything else")); conn != nil {
		t.Error("the reserve was spent on another failure")
	}
	conn := r.Accept(l, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept", exhausted)})
	if conn == nil || r.file != nil {
		t.Fatalf("with a client: connection %v, reserve %v; want a connection and the reserve spent", conn, r.file)
	}
	_ = conn.Close()
	if r.Fill(); r.file == nil {
		t.Error("Fill did not reserve a descriptor again")
	}
}

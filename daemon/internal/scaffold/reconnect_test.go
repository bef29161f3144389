package scaffold

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/service-dev/service/glasses"
)

// gate is a listener that breaks connections while it is closed.
type gate struct {
	net.Listener
	closed atomic.Bool
	broken chan struct{} // gets a value for each broken connection
}

func (g *gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil || !g.closed.Load() {
			return conn, err
		}
		conn.Close()
		g.broken <- struct{}{}
	}
}

// A module attaches again after failed attempts, which a runtime may report differently from the end of a connection.
func TestModuleComesBack_AfterFailedAttempts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(env ...string) *app) {
		s := newService(t)
		app := start("SERVICE_GLASSES_URL=" + s.url)
		p := s.accept(7)
		p.ok(p.expect(glasses.TypeDisplayShow, ""))
		s.gate.closed.Store(true)
		p.cut()
		for range 3 {
			select {
			case <-s.gate.broken:
			case <-time.After(2 * time.Minute):
				t.Fatal("the app did not try again within 2 minutes")
			}
		}
		s.gate.closed.Store(false)
		s.accept(8).leave(app)
	})
}

// The service may also be gone, or so frozen that it accepts connections but does not respond. The apps wait in
// parallel, because each of them needs 10 to 20 s.
func TestModuleGivesUp_WithoutAService(t *testing.T) {
	t.Parallel()
	frozen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { frozen.Close() })
	endpoints := []string{unusedAddress(t), frozen.Addr().String()}
	apps := map[string]*app{}
	for _, v := range variants(t) {
		for i, endpoint := range endpoints {
			apps[fmt.Sprintf("%s, frozen=%v", v.name, i == 1)] = start(t, v, "SERVICE_GLASSES_URL=ws://"+endpoint+"/app")
		}
	}
	for name, app := range apps {
		t.Run(name, func(t *testing.T) {
			app.t = t
			app.says("not_connected")
		})
	}
}

// unusedAddress returns an address at which no program listens while the test runs. The port is in use by a connection,
// so that parallel tests cannot get it.
func unusedAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); listener.Close() })
	return conn.LocalAddr().String()
}

// In virtual time, events about the connection also carry the time on the session's clock.
func TestModuleTellsTheSessionsTime_WhenItIsOffline(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, start func(env ...string) *app) {
		s := newService(t)
		app := start("SERVICE_GLASSES_URL=" + s.url)
		p := s.accept(7)
		p.ok(p.expect(glasses.TypeDisplayShow, ""))
		p.sendAt(glasses.TypeInput, "g-1", 5000, glasses.Input{Kind: glasses.InputTap, Target: "connection"})
		p.barrier("b-1")
		p.cut()
		p = s.accept(20)
		p.expect("com.example.connection", `{"at":5000,"state":"offline"}`)
		p.expect("com.example.connection", `{"at":1,"state":"online"}`)
		p.leave(app)
	})
}

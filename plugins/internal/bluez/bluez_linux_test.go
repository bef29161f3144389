package bluez

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/test/glassestest/fakebluez"
	"github.com/service-dev/service/test/glassestest/peripheral"
	"github.com/service-dev/service/test/glassestest/peripheral/echo"
	"github.com/service-dev/service/test/reaper"
)

func TestMain(m *testing.M) {
	os.Exit(reaper.Run(func() int {
		code := m.Run()
		if err := goleak.Find(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}))
}

const (
	leftAddress  = "C0:FF:EE:00:00:01"
	rightAddress = "C0:FF:EE:00:00:02"
)

// pair is a fake radio with two devices in range.
type pair struct {
	*fakebluez.Radio
	left, right *echo.Device
}

func newPair(t *testing.T, opts fakebluez.Options) pair {
	t.Helper()
	p := pair{left: echo.New(leftAddress, "Echo_L"), right: echo.New(rightAddress, "Echo_R")}
	opts.Peripherals = []peripheral.Peripheral{p.left, p.right}
	p.Radio = fakebluez.Start(t, opts)
	return p
}

func (p pair) open(t *testing.T) *Radio {
	t.Helper()
	return p.openWith(t, Options{})
}

// openPatiently is like open, for tests that need every active adapter to receive the device even on a busy machine.
func (p pair) openPatiently(t *testing.T) *Radio {
	t.Helper()
	return p.openWith(t, Options{Find: time.Minute, Others: time.Minute})
}

func (p pair) openWith(t *testing.T, o Options) *Radio {
	t.Helper()
	o.Address = p.Address
	r, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func target(address string) Target {
	return Target{Address: address, Service: echo.Service, Write: echo.Write, Notify: echo.Notify}
}

func connect(t *testing.T, r *Radio, to Target) *Conn {
	t.Helper()
	c, err := r.Connect(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// receive returns the next n notifications.
func receive(t *testing.T, c *Conn, n int) (got []string) {
	t.Helper()
	for range n {
		select {
		case v, ok := <-c.Notifications():
			if !ok {
				t.Fatalf("the connection ended after %q: %v", got, c.Err())
			}
			got = append(got, string(v))
		case <-time.After(time.Minute):
			t.Fatalf("no notification follows %q", got)
		}
	}
	return got
}

// wantCode fails the test unless err has the given code and texts for the user.
func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var e *problem.Error
	if !errors.As(err, &e) || e.Code != code || e.Message == "" || e.FixHint == "" {
		t.Fatalf("got error %#v, want code %s with a message and a hint", err, code)
	}
	t.Logf("%s: %s", e.Code, e.Message)
}

func wantLost(t *testing.T, c *Conn, reason string) {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(time.Minute):
		t.Fatal("the connection still lasts")
	}
	wantCode(t, c.Err(), problem.CodeLost)
	if !strings.Contains(c.Err().Error(), reason) {
		t.Errorf("error %q does not name the reason %q", c.Err(), reason)
	}
	if _, ok := <-c.Notifications(); ok {
		t.Error("a notification followed the end of the connection")
	}
	wantCode(t, c.Write(t.Context(), []byte("x"), true), problem.CodeLost)
}

func TestScan_FindsWhatMatches(t *testing.T) {
	p := newPair(t, fakebluez.Options{})
	r := p.open(t)
	for _, filter := range []Filter{{NamePrefixes: []string{"Nobody", "Echo_"}}, {},
		{Services: []string{strings.ToUpper(echo.Service)}}} {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		found := map[string]Found{}
		err := r.Scan(ctx, filter, func(d Found) {
			if found[d.Address] = d; len(found) == 2 {
				stop()
			}
		})
		stop()
		if err != nil || found[leftAddress].Name != "Echo_L" || found[rightAddress].Name != "Echo_R" ||
			found[leftAddress].RSSI != -60 {
			t.Errorf("%+v found %+v (%v)", filter, found, err)
		}
	}
	if p.Calls("Set Powered") > 0 {
		t.Error("a scan set the adapter's power")
	}
}

func TestConn_WritesAndReceives(t *testing.T) {
	p := newPair(t, fakebluez.Options{MTU: 251})
	r := p.open(t)
	left, right := connect(t, r, target(leftAddress)), connect(t, r, target(strings.ToLower(rightAddress)))
	if left.MTU() != 251 {
		t.Errorf("the MTU is %d, want 251", left.MTU())
	}
	var want []string
	for i := range 50 {
		want = append(want, fmt.Sprintf("%d%s", i, strings.Repeat("x", 200)))
		if err := errors.Join(left.Write(t.Context(), []byte(want[i]), i%2 == 0),
			right.Write(t.Context(), []byte("right"), true)); err != nil {
			t.Fatal(err)
		}
	}
	if got := receive(t, left, 50); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("received %q", got)
	}
	receive(t, right, 50)
	if n, m := p.Calls("WriteValue request"), p.Calls("WriteValue command"); n != 75 || m != 25 {
		t.Errorf("%d requests and %d commands, want 75 and 25", n, m)
	}
	if p.Calls("AcquireNotify")+p.Calls("AcquireWrite")+p.Calls("RegisterAgent")+p.Calls("Set Powered") > 0 {
		t.Error("the client called what it should not")
	}
	left.Close()
	if err := left.Write(t.Context(), []byte("x"), true); !errors.Is(err, ErrClosed) {
		t.Errorf("a write after Close returned %v", err)
	}
	if p.Connected(p.left) || !p.Connected(p.right) {
		t.Error("Close did not disconnect exactly its own device")
	}
}

func TestConnect_TwoPairsAtOnce(t *testing.T) {
	var devices []peripheral.Peripheral
	names := []string{"Even G1_27_L_119A6C", "Even G1_27_R_119A6D", "Even G1_31_L_22B001", "Even G1_31_R_22B002"}
	for i, name := range names {
		devices = append(devices, echo.New(fmt.Sprintf("C0:FF:EE:00:00:0%d", i+1), name))
	}
	p := pair{Radio: fakebluez.Start(t, fakebluez.Options{Peripherals: devices})}
	r := p.open(t)
	var group errgroup.Group
	for i, name := range names {
		group.Go(func() error {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			var address string
			if err := r.Scan(ctx, Filter{NamePrefixes: []string{name}}, func(d Found) {
				address = d.Address
				stop()
			}); err != nil {
				return err
			}
			c, err := r.Connect(t.Context(), target(address))
			if err != nil {
				return err
			}
			defer c.Close()
			for range 10 {
				if err := c.Write(t.Context(), []byte(name), i%2 == 0); err != nil {
					return err
				}
				if got := <-c.Notifications(); string(got) != name {
					return fmt.Errorf("%s received %q", name, got)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

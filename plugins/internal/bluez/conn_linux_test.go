package bluez

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/godbus/dbus/v5"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/test/glassestest/fakebluez"
)

func TestConn_IsLostWithItsReason(t *testing.T) {
	for _, test := range []struct {
		name, reason string
		fault        func(pair)
	}{
		{"dropped by the device", "out of range", func(p pair) { p.Emulate(func(int64) { p.left.Drop() }) }},
		{"out of range", "out of range", func(p pair) { p.Drop(p.left) }},
		{"switched off", "", func(p pair) { p.SetPowered(false) }},
		{"unplugged", "", func(p pair) { p.SetAdapter(false) }},
		{"BlueZ crashed", "service has stopped", func(p pair) { p.Vanish() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPair(t, fakebluez.Options{})
			r := p.open(t)
			left := connect(t, r, target(leftAddress))
			right := connect(t, r, target(rightAddress))
			test.fault(p)
			wantLost(t, left, test.reason)
			if strings.Contains(test.reason, "range") {
				if err := right.Write(t.Context(), []byte("x"), true); err != nil {
					t.Errorf("the other device: %v", err)
				}
			} else {
				wantLost(t, right, test.reason)
			}
			left.Close()
			right.Close()
			p.SetAdapter(true)
			p.SetPowered(true)
			if err := p.Return(); err != nil {
				t.Fatal(err)
			}
			again := connect(t, r, target(leftAddress))
			if err := again.Write(t.Context(), []byte("again"), true); err != nil {
				t.Fatal(err)
			}
			if got := receive(t, again, 1); got[0] != "again" {
				t.Errorf("received %q", got)
			}
		})
	}
}

func TestConn_NamesTheReasonThatBlueZGives(t *testing.T) {
	for reason, fault := range map[string]func(pair){
		"the device ended it":        func(p pair) { p.Emulate(func(int64) { p.left.Drop() }) },
		"the device is out of range": func(p pair) { p.Drop(p.left) },
		"this computer ended it":     func(p pair) { p.SetPowered(false) },
	} {
		p := newPair(t, fakebluez.Options{WithReasons: true})
		c := connect(t, p.open(t), target(leftAddress))
		fault(p)
		wantLost(t, c, "was lost: "+reason)
	}
}

func TestConn_WritesFailWithTheirReason(t *testing.T) {
	p := newPair(t, fakebluez.Options{})
	c := connect(t, p.open(t), target(leftAddress))
	write := func(f fakebluez.Faults) error {
		p.SetFaults(p.left, f)
		ctx, cancel := t.Context(), context.CancelFunc(func() {})
		if f.HangWrites {
			ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
		}
		defer cancel()
		return c.Write(ctx, []byte("x"), true)
	}
	if err := write(fakebluez.Faults{BusyWrites: 2}); err != nil {
		t.Errorf("a write that BlueZ was too busy for was not repeated: %v", err)
	}
	wantCode(t, write(fakebluez.Faults{BusyWrites: -1}), problem.CodeBusyElsewhere)
	wantCode(t, write(fakebluez.Faults{HangWrites: true}), problem.CodeTimeout)
	if err := write(fakebluez.Faults{}); err != nil {
		t.Errorf("after its failures the connection is of no use: %v", err)
	}
}

func TestConn_MTU(t *testing.T) {
	for _, test := range []struct {
		opts fakebluez.Options
		want int
	}{
		{fakebluez.Options{MTU: 23}, 23}, {fakebluez.Options{MTU: 247}, 247}, {fakebluez.Options{MTU: 517}, 517},
		{fakebluez.Options{MTU: 517, WithoutMTU: true}, 23},
	} {
		p := newPair(t, test.opts)
		c := connect(t, p.open(t), target(leftAddress))
		if c.MTU() != test.want {
			t.Errorf("%+v: the MTU is %d, want %d", test.opts, c.MTU(), test.want)
		}
		fits := min(test.want-3, 512) // no value is longer
		if err := c.Write(t.Context(), make([]byte, fits), false); err != nil {
			t.Error(err)
		}
		if got := receive(t, c, 1); len(got[0]) != fits {
			t.Errorf("received %d bytes, want %d", len(got[0]), fits)
		}
		if err := c.Write(t.Context(), make([]byte, fits+1), true); !errors.Is(err, ErrTooLong) {
			t.Errorf("a longer value returned %v", err)
		}
	}
}

// Radio faults in notifications reach the client unchanged, because drivers have to handle them.
func TestConn_DeliversWhatTheAirLeaves(t *testing.T) {
	for _, test := range []struct {
		faults fakebluez.Faults
		want   string
	}{
		{fakebluez.Faults{LoseEach: 3}, "a b d e g"},
		{fakebluez.Faults{RepeatEach: 3}, "a b c c d e f f g"},
		{fakebluez.Faults{SwapEach: 3}, "a b d c e g f"},
	} {
		p := newPair(t, fakebluez.Options{})
		c := connect(t, p.open(t), target(leftAddress))
		p.SetFaults(p.left, test.faults)
		p.Emulate(func(int64) {
			for _, v := range "abcdefg" {
				p.left.Send([]byte(string(v)))
			}
		})
		want := strings.Fields(test.want)
		if got := receive(t, c, len(want)); strings.Join(got, " ") != test.want {
			t.Errorf("%+v: received %q, want %q", test.faults, got, want)
		}
	}
}

func TestConn_MissesNothingThatFollowsItsSubscription(t *testing.T) {
	p := newPair(t, fakebluez.Options{})
	p.Emulate(func(int64) { p.left.Greeting = []byte("welcome") })
	if got := receive(t, connect(t, p.open(t), target(leftAddress)), 1); got[0] != "welcome" {
		t.Errorf("received %q", got)
	}
}

func TestRadio_CloseEndsAll(t *testing.T) {
	p := newPair(t, fakebluez.Options{})
	r := p.open(t)
	c := connect(t, r, target(leftAddress))
	scan := make(chan error, 1)
	begun := make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	go func() { scan <- r.Scan(t.Context(), Filter{}, func(Found) { begin() }) }()
	<-begun
	r.Close()
	wantCode(t, <-scan, problem.CodeNoBluetooth)
	<-c.Done()
	if !errors.Is(c.Err(), ErrClosed) || p.Connected(p.left) {
		t.Errorf("the connection ended with %v, connected %v", c.Err(), p.Connected(p.left))
	}
	_, err := r.Connect(t.Context(), target(leftAddress))
	wantCode(t, err, problem.CodeNoBluetooth)
	r.Close() // harmless
}

func TestConn_BoundsUnreceivedNotifications(t *testing.T) {
	p := newPair(t, fakebluez.Options{})
	c := connect(t, p.open(t), target(leftAddress))
	p.Emulate(func(int64) {
		for range maxNotifications + 500 {
			p.left.Send([]byte("flood"))
		}
	})
	// The answer to a write arrives after everything that was sent before it.
	if err := c.Write(t.Context(), []byte("x"), true); err != nil {
		t.Fatal(err)
	}
	if c.Dropped() < 500 {
		t.Errorf("%d notifications were dropped, want at least 500", c.Dropped())
	}
	receive(t, c, maxNotifications)
}

// Any program can send signals to a connection on the bus.
func TestRadio_IgnoresSignalsOfOthers(t *testing.T) {
	p := newPair(t, fakebluez.Options{})
	r := p.open(t)
	c := connect(t, r, target(leftAddress))
	other, err := dbus.Connect(p.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	send := func(from *dbus.Conn, body ...any) {
		from.Send(&dbus.Message{Type: dbus.TypeSignal, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldDestination: dbus.MakeVariant(r.bus.Names()[0]), dbus.FieldPath: dbus.MakeVariant(c.path),
			dbus.FieldInterface: dbus.MakeVariant(propertiesInterface),
			dbus.FieldMember:    dbus.MakeVariant("PropertiesChanged"),
			dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(body...)),
		}}, nil)
	}
	send(other, deviceInterface, properties{"Connected": dbus.MakeVariant(false)}, []string{})
	send(other, "not", "understood")
	// The answer to a call arrives after the signals.
	if err := other.BusObject().Call("org.freedesktop.DBus.GetId", 0).Err; err != nil {
		t.Fatal(err)
	}
	if err := c.Write(t.Context(), []byte("x"), true); err != nil || c.Err() != nil {
		t.Errorf("after a false signal: write %v, connection %v", err, c.Err())
	}
}

func TestParse_IgnoresWhatItDoesNotUnderstand(t *testing.T) {
	for _, member := range []string{".PropertiesChanged", ".InterfacesAdded", ".InterfacesRemoved", ".Other"} {
		for _, body := range [][]any{nil, {1}, {"a", "b", "c"}, {dbus.ObjectPath("/"), 7}, {"a", properties{}}} {
			for _, iface := range []string{propertiesInterface, managerInterface} {
				if got := parse(&dbus.Signal{Name: iface + member, Body: body}); got != nil {
					t.Errorf("%s%s%v parsed as %+v", iface, member, body, got)
				}
			}
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("Even G1_27_L_119A6C")
	f.Add("\x1b]0;title\x07\u202egnp.\xff" + strings.Repeat("x", 248))
	f.Fuzz(func(t *testing.T, name string) {
		got := clean(name)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > maxName ||
			strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q became %q", name, got)
		}
	})
}

package bluez

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/test/glassestest/fakebluez"
	"github.com/service-dev/service/test/glassestest/peripheral/echo"
)

func TestOpen_SaysWhyBluetoothIsUnusable(t *testing.T) {
	for _, test := range []struct {
		name    string
		opts    fakebluez.Options
		prepare func(pair)
		want    string
	}{
		{"switched off", fakebluez.Options{PoweredOff: true}, nil, problem.CodeRadioOff},
		{"no adapter", fakebluez.Options{WithoutAdapter: true}, nil, problem.CodeNoBluetooth},
		{"no BlueZ", fakebluez.Options{}, func(p pair) { p.Vanish() }, problem.CodeNoBluetooth},
		{"not allowed", fakebluez.Options{Denied: true}, nil, problem.CodeNoPermission},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPair(t, test.opts)
			if test.prepare != nil {
				test.prepare(p)
			}
			_, err := Open(t.Context(), Options{Address: p.Address})
			wantCode(t, err, test.want)
		})
	}
	_, err := Open(t.Context(), Options{Address: "unix:path=" + filepath.Join(t.TempDir(), "bus")})
	wantCode(t, err, problem.CodeNoBluetooth)
}

func TestScan_EndsWithTheRadio(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault func(pair)
		want  string
	}{
		{"switched off", func(p pair) { p.SetPowered(false) }, problem.CodeRadioOff},
		{"unplugged", func(p pair) { p.SetAdapter(false) }, problem.CodeNoBluetooth},
		{"BlueZ crashed", func(p pair) { p.Vanish() }, problem.CodeNoBluetooth},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPair(t, fakebluez.Options{})
			faulty := false
			wantCode(t, p.open(t).Scan(t.Context(), Filter{}, func(Found) {
				if !faulty {
					faulty = true
					test.fault(p)
				}
			}), test.want)
		})
	}
}

func TestScan_ReportsNewNames(t *testing.T) {
	p := newPair(t, fakebluez.Options{})
	hostile := "Echo_L\x1b[2J\u202e\n" + strings.Repeat("ü", 100)
	var names []string
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if err := p.open(t).Scan(ctx, Filter{NamePrefixes: []string{"Echo_L"}}, func(d Found) {
		if len(names) == 0 || names[len(names)-1] != d.Name {
			names = append(names, d.Name)
			p.Rename(p.left, hostile)
		}
		if len(names) == 2 {
			stop()
		}
	}); err != nil {
		t.Fatal(err)
	}
	if want := "Echo_L[2J" + strings.Repeat("ü", 64-len("Echo_L[2J")); len(names) != 2 || names[1] != want {
		t.Errorf("the names are %q, want Echo_L and %q", names, want)
	}
}

func TestConnect_SaysWhyItFails(t *testing.T) {
	const soon = 300 * time.Millisecond
	for _, test := range []struct {
		name   string
		faults fakebluez.Faults
		limits Options
		change func(*echo.Device)
		pair   bool
		want   string
	}{
		{name: "aborted", faults: fakebluez.Faults{AbortConnects: -1}, want: problem.CodeBusyElsewhere},
		{name: "hangs", faults: fakebluez.Faults{HangConnect: true}, limits: Options{Connect: soon},
			want: problem.CodeTimeout},
		{name: "never resolved", faults: fakebluez.Faults{NeverResolve: true}, limits: Options{Resolve: soon},
			want: problem.CodeServicesMissing},
		{name: "pairing rejected", faults: fakebluez.Faults{RejectPairing: true}, pair: true, want: problem.CodeNotPaired},
		{name: "bound to another host", change: func(d *echo.Device) { d.Bound = true }, pair: true,
			want: problem.CodeBusyElsewhere},
		{name: "needs a bond", change: func(d *echo.Device) { d.Guarded = true }, want: problem.CodeNotPaired},
		{name: "silent", change: func(d *echo.Device) { d.Silent = true }, limits: Options{Find: soon},
			want: problem.CodeNotInRange},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPair(t, fakebluez.Options{})
			p.SetFaults(p.left, test.faults)
			if test.change != nil {
				p.Emulate(func(int64) { test.change(p.left) })
			}
			test.limits.Address = p.Address
			r, err := Open(t.Context(), test.limits)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			to := target(leftAddress)
			to.Pair = test.pair
			_, err = r.Connect(t.Context(), to)
			wantCode(t, err, test.want)
			if p.Connected(p.left) || p.Agents() > 0 {
				t.Error("the failure left a connection or an agent behind")
			}
			// The other device is not affected.
			c := connect(t, p.open(t), target(rightAddress))
			if err := c.Write(t.Context(), []byte("x"), true); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestConnect_ServiceOrCharacteristicMissing(t *testing.T) {
	p := newPair(t, fakebluez.Options{})
	r := p.open(t)
	for _, change := range []func(*Target){
		func(to *Target) { to.Service = strings.Replace(echo.Service, "6e", "7a", 1) },
		func(to *Target) { to.Write = strings.Replace(echo.Write, "6e", "7a", 1) },
		func(to *Target) { to.Notify = echo.Write },
	} {
		to := target(leftAddress)
		change(&to)
		_, err := r.Connect(t.Context(), to)
		wantCode(t, err, problem.CodeServicesMissing)
	}
}

func TestConnect_RetriesWhatInterferenceAborts(t *testing.T) {
	p := newPair(t, fakebluez.Options{})
	p.SetFaults(p.left, fakebluez.Faults{AbortConnects: 2})
	connect(t, p.open(t), target(leftAddress))
}

func TestConnect_ForgetsStaleServicesOnceUnlessPaired(t *testing.T) {
	p := newPair(t, fakebluez.Options{})
	r := p.open(t)
	to := target(rightAddress)
	to.Pair = true
	connect(t, r, to).Close() // the device stays paired
	for _, d := range []*echo.Device{p.left, p.right} {
		p.SetFaults(d, fakebluez.Faults{StaleServices: true})
	}
	connect(t, r, target(leftAddress))
	if n := p.Calls("RemoveDevice"); n != 1 {
		t.Errorf("the device was removed %d times, want once", n)
	}
	_, err := r.Connect(t.Context(), target(rightAddress))
	wantCode(t, err, problem.CodeServicesMissing)
	if n := p.Calls("RemoveDevice"); n != 1 {
		t.Error("a bond was destroyed")
	}
}

func TestConnect_PairsWhenAsked(t *testing.T) {
	p := newPair(t, fakebluez.Options{})
	p.Emulate(func(int64) { p.left.Guarded = true })
	r := p.open(t)
	to := target(leftAddress)
	to.Pair = true
	for range 2 { // there is a bond the second time
		c := connect(t, r, to)
		if err := c.Write(t.Context(), []byte("hello"), true); err != nil {
			t.Fatal(err)
		}
		receive(t, c, 1)
		c.Close()
	}
	if n, m, left := p.Calls("RegisterAgent"), p.Calls("Pair"), p.Agents(); n != 1 || m != 1 || left != 0 {
		t.Errorf("%d agents registered, %d pairings, %d agents left; want 1, 1, 0", n, m, left)
	}
}

// whileConnecting runs f while BlueZ keeps trying to connect the left device.
func whileConnecting(t *testing.T, p pair, f func()) {
	t.Helper()
	p.SetFaults(p.left, fakebluez.Faults{HangConnect: true})
	var done sync.WaitGroup
	t.Cleanup(done.Wait)
	done.Go(func() {
		for p.Calls("Connect") == 0 { // each call waits for the radio
			if t.Context().Err() != nil {
				return
			}
		}
		f()
	})
}

func TestConnect_EndsWithItsContext(t *testing.T) {
	p := newPair(t, fakebluez.Options{})
	r := p.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	whileConnecting(t, p, cancel)
	if _, err := r.Connect(ctx, target(leftAddress)); !errors.Is(err, context.Canceled) {
		t.Errorf("Connect returned %v", err)
	}
	if p.Calls("Disconnect") == 0 {
		t.Error("BlueZ still tries to connect")
	}
}

func TestConnect_EndsWithTheRadio(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault func(pair)
		want  string
	}{
		{"switched off", func(p pair) { p.SetPowered(false) }, problem.CodeRadioOff},
		{"unplugged", func(p pair) { p.SetAdapter(false) }, problem.CodeNoBluetooth},
		{"BlueZ crashed", func(p pair) { p.Vanish() }, problem.CodeNoBluetooth},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPair(t, fakebluez.Options{})
			r := p.open(t)
			whileConnecting(t, p, func() { test.fault(p) })
			_, err := r.Connect(t.Context(), target(leftAddress))
			wantCode(t, err, test.want)
		})
	}
}

func TestConnect_SharesADeviceThatIsConnected(t *testing.T) {
	p := newPair(t, fakebluez.Options{})
	first := connect(t, p.open(t), target(leftAddress))
	r := p.open(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if err := r.Scan(ctx, Filter{NamePrefixes: []string{"Echo_L"}}, func(d Found) {
		if !d.Connected {
			t.Errorf("found %+v, want it to be connected", d)
		}
		stop()
	}); err != nil {
		t.Fatal(err)
	}
	second := connect(t, r, target(leftAddress))
	if err := second.Write(t.Context(), []byte("both"), true); err != nil {
		t.Fatal(err)
	}
	receive(t, first, 1)
	receive(t, second, 1)
	first.Close()
	wantLost(t, second, "out of range")
}

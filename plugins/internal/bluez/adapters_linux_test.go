package bluez

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/test/glassestest/fakebluez"
	"github.com/service-dev/service/test/glassestest/peripheral"
	"github.com/service-dev/service/test/glassestest/peripheral/echo"
)

const secondAdapter dbus.ObjectPath = "/org/bluez/hci1"

// newApart is a pair whose left device is in range of hci0 and whose right device is in range of hci1.
func newApart(t *testing.T, second fakebluez.AdapterOptions) pair {
	t.Helper()
	p := pair{left: echo.New(leftAddress, "Echo_L"), right: echo.New(rightAddress, "Echo_R")}
	second.Peripherals = []peripheral.Peripheral{p.right}
	p.Radio = fakebluez.Start(t, fakebluez.Options{
		Peripherals: []peripheral.Peripheral{p.left}, More: []fakebluez.AdapterOptions{second},
	})
	return p
}

// newShared is a pair whose devices are in range of both adapters. The second one receives them better.
func newShared(t *testing.T) pair {
	t.Helper()
	p := pair{left: echo.New(leftAddress, "Echo_L"), right: echo.New(rightAddress, "Echo_R")}
	both := []peripheral.Peripheral{p.left, p.right}
	p.Radio = fakebluez.Start(t, fakebluez.Options{
		Peripherals: both, More: []fakebluez.AdapterOptions{{Peripherals: both, Gain: 20}},
	})
	return p
}

// scanUntil scans until both devices have been found, and calls once when the left one is found for the first time.
func scanUntil(t *testing.T, r *Radio, once func()) error {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	found := map[string]bool{}
	err := r.Scan(ctx, Filter{}, func(d Found) {
		if len(found) == 0 && once != nil {
			once()
		}
		if found[d.Address] = true; len(found) == 2 {
			stop()
		}
	})
	if err == nil && len(found) != 2 {
		t.Errorf("the scan found %v, want both devices", found)
	}
	return err
}

func TestScan_HearsWithEachAdapter(t *testing.T) {
	p := newApart(t, fakebluez.AdapterOptions{})
	r := p.open(t)
	if err := scanUntil(t, r, nil); err != nil {
		t.Fatal(err)
	}
	connect(t, r, target(leftAddress))
	c := connect(t, r, target(rightAddress))
	if by := p.ConnectedBy(p.right); by != secondAdapter {
		t.Errorf("the device is connected by %q, want %s", by, secondAdapter)
	}
	if err := c.Write(t.Context(), []byte("x"), true); err != nil {
		t.Error(err)
	}
	p.SetAdapter(false) // the other device's adapter
	receive(t, c, 1)
	if err := c.Write(t.Context(), []byte("x"), true); err != nil {
		t.Errorf("the connection ended with the adapter of another device: %v", err)
	}
}

func TestScan_UsesAdaptersThatAppear(t *testing.T) {
	for name, test := range map[string]struct {
		second fakebluez.AdapterOptions
		change func(pair)
	}{
		"switched on": {fakebluez.AdapterOptions{PoweredOff: true}, func(p pair) { p.SetPoweredOf(1, true) }},
		"plugged in":  {fakebluez.AdapterOptions{Missing: true}, func(p pair) { p.SetAdapterOf(1, true) }},
		"off and on": {fakebluez.AdapterOptions{}, func(p pair) {
			p.SetPoweredOf(1, false)
			p.SetPoweredOf(1, true)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newApart(t, test.second)
			if err := scanUntil(t, p.open(t), func() { test.change(p) }); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestScan_EndsWithTheLastAdapter(t *testing.T) {
	for name, test := range map[string]struct {
		lose func(pair, int)
		want string
	}{
		"switched off": {func(p pair, n int) { p.SetPoweredOf(n, false) }, problem.CodeRadioOff},
		"unplugged":    {func(p pair, n int) { p.SetAdapterOf(n, false) }, problem.CodeNoBluetooth},
	} {
		t.Run(name, func(t *testing.T) {
			p := newShared(t)
			r := p.open(t)
			sightings := 0
			wantCode(t, r.Scan(t.Context(), Filter{}, func(Found) {
				switch sightings++; sightings {
				case 1:
					test.lose(p, 0)
				case 10: // more than can wait to be delivered
					test.lose(p, 1)
				}
			}), test.want)
			if sightings < 10 {
				t.Error("the scan ended with one of two adapters")
			}
		})
	}
}

func TestConnect_ChoosesAmongAdapters(t *testing.T) {
	p := newShared(t)
	r := p.openPatiently(t)
	connect(t, r, target(leftAddress)).Close()
	c := connect(t, r, target(leftAddress))
	if by := p.ConnectedBy(p.left); by != secondAdapter {
		t.Errorf("the device is connected by %q, want the one that hears it better", by)
	}
	c.Close()
	p.SetPoweredOf(1, false)
	paired := target(rightAddress)
	paired.Pair = true
	connect(t, r, paired).Close()
	p.SetPoweredOf(1, true)
	connect(t, r, target(rightAddress))
	if by := p.ConnectedBy(p.right); by != fakebluez.Adapter {
		t.Errorf("the device is connected by %q, want the one that has its bond", by)
	}
}

// A device whose adapter is removed is found by the other adapter.
func TestConnect_AnotherAdapterTakesOver(t *testing.T) {
	for name, lose := range map[string]func(pair){
		"switched off": func(p pair) { p.SetPoweredOf(1, false) },
		"removed":      func(p pair) { p.SetAdapterOf(1, false) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newShared(t)
			r := p.open(t)
			c := connect(t, r, target(rightAddress))
			lose(p)
			wantLost(t, c, "")
			connect(t, r, target(rightAddress))
			if by := p.ConnectedBy(p.right); by != fakebluez.Adapter {
				t.Errorf("the device is connected by %q, want %s", by, fakebluez.Adapter)
			}
			p = newShared(t)
			whileConnecting(t, p, func() { lose(p) })
			_, err := p.openPatiently(t).Connect(t.Context(), target(leftAddress))
			wantCode(t, err, problem.CodeLost)
			wantText(t, err, "the Bluetooth adapter hci1 was "+name)
		})
	}
}

func wantText(t *testing.T, err error, parts ...string) {
	t.Helper()
	var e *problem.Error
	for _, part := range parts {
		if !errors.As(err, &e) || !strings.Contains(e.Message+" "+e.FixHint, part) {
			t.Errorf("error %#v lacks %q", err, part)
		}
	}
}

func TestErrors_NameTheAdapters(t *testing.T) {
	const soon = 300 * time.Millisecond
	rfkill := t.TempDir()
	block := func(device string, values map[string]string) {
		for file, value := range values {
			if err := os.MkdirAll(filepath.Join(rfkill, device), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(rfkill, device, file), []byte(value+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	open := func(p pair) (*Radio, error) {
		return Open(t.Context(), Options{Address: p.Address, Find: soon, RFKill: rfkill})
	}

	p := newApart(t, fakebluez.AdapterOptions{PoweredOff: true})
	r, err := open(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	_, err = r.Connect(t.Context(), target(rightAddress))
	wantCode(t, err, problem.CodeNotInRange)
	wantText(t, err, "(searched with hci0; hci1 is switched off)")
	p.SetPoweredOf(1, true)
	_, err = r.Connect(t.Context(), target("C0:FF:EE:00:00:03"))
	wantText(t, err, "(searched with hci0 and hci1)")

	p.SetPowered(false)
	p.SetPoweredOf(1, false)
	_, err = open(p)
	wantCode(t, err, problem.CodeRadioOff)
	wantText(t, err, "hci0 is switched off, hci1 is switched off", "bluetoothctl power on")
	block("rfkill0", map[string]string{"type": "bluetooth", "name": "hci0", "soft": "1", "hard": "0"})
	block("rfkill1", map[string]string{"type": "wlan", "name": "hci1", "soft": "1", "hard": "0"})
	_, err = open(p)
	wantText(t, err, "hci0 is blocked by rfkill, hci1 is switched off", "bluetoothctl power on")
	block("rfkill1", map[string]string{"type": "bluetooth", "name": "hci1", "soft": "0", "hard": "1"})
	_, err = open(p)
	wantText(t, err, "hci1 is blocked by a switch or key of this computer", "rfkill unblock bluetooth")
	block("rfkill0", map[string]string{"hard": "1"})
	_, err = open(p)
	wantText(t, err, "Press the key")

	p.SetAdapter(false)
	p.SetAdapterOf(1, false)
	_, err = open(p)
	wantCode(t, err, problem.CodeNoBluetooth)
	wantText(t, err, "no Bluetooth adapter", "USB", "rfkill unblock bluetooth")
	p.Vanish()
	_, err = open(p)
	wantText(t, err, "service is not running", "systemctl start bluetooth")
}

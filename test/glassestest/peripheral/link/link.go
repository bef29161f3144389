// Package link is the radio part of an emulated peripheral: advertising, the connection, subscriptions, output and
// scheduled steps. The packages of the emulated models add the protocol.
package link

import (
	"math"
	"slices"

	"github.com/service-dev/service/test/glassestest/peripheral"
)

// maxOut limits the output that waits to be taken, and maxSteps the scheduled steps. Further ones are lost, as in a
// radio.
const (
	maxOut   = 16_384
	maxSteps = 4_096
)

// Forever is a duration that never ends in practice.
const Forever = math.MaxInt64 / 4

// Link implements the parts of peripheral.Peripheral that all models share. Its owner may set Up and Down, which are
// called after the connection has opened and after it has closed.
type Link struct {
	Up, Down func()

	adv      peripheral.Advertisement
	services []peripheral.Service

	now         int64
	steps       []step // by time, then by order of creation
	connected   bool
	connection  int // counts connections, so that steps of an earlier connection do not run
	mtu         int
	silentUntil int64
	occupied    bool // by another client, e.g. the vendor's app on a phone
	subscribed  map[string]bool
	out         []peripheral.Out
}

type step struct {
	at         int64
	connection int // 0 for a step that is independent of the connection
	do         func()
}

// New returns a link that is advertising.
func New(adv peripheral.Advertisement, services []peripheral.Service) *Link {
	return &Link{adv: adv, services: services, subscribed: map[string]bool{}}
}

// Advertisement implements peripheral.Peripheral.
func (l *Link) Advertisement() (peripheral.Advertisement, bool) {
	if l.connected || l.occupied || l.now < l.silentUntil {
		return peripheral.Advertisement{}, false
	}
	adv := l.adv
	adv.Services = slices.Clone(adv.Services)
	return adv, true
}

// Services implements peripheral.Peripheral.
func (l *Link) Services() []peripheral.Service { return l.services }

// Connect implements peripheral.Peripheral.
func (l *Link) Connect(now int64, mtu int) error {
	l.Tick(now)
	switch {
	case l.connected || l.occupied:
		return peripheral.ErrBusy
	case l.now < l.silentUntil:
		return peripheral.ErrUnreachable
	}
	l.connected, l.mtu = true, max(peripheral.MinMTU, min(mtu, peripheral.MaxMTU))
	l.connection++
	clear(l.subscribed)
	if l.Up != nil {
		l.Up()
	}
	return nil
}

// Disconnect implements peripheral.Peripheral.
func (l *Link) Disconnect(now int64) {
	l.Tick(now)
	l.close()
}

func (l *Link) close() {
	if !l.connected {
		return
	}
	l.connected = false
	l.steps = slices.DeleteFunc(l.steps, func(s step) bool { return s.connection != 0 })
	if l.Down != nil {
		l.Down()
	}
}

// Drop closes the connection from the device's side. The device then does not advertise for the given ms.
func (l *Link) Drop(silent int64) {
	l.Silence(silent)
	if l.connected {
		l.close()
		l.output(peripheral.Out{Dropped: true})
	}
}

// Silence stops the device from advertising for the given ms. It does not close the connection.
func (l *Link) Silence(ms int64) {
	l.silentUntil = l.now + min(ms, Forever)
	if ms > 0 && ms < Forever {
		l.After(ms, func() {}) // so that Next returns when it advertises again
	}
}

// Occupy makes another client take or release the device.
func (l *Link) Occupy(taken bool) {
	l.occupied = taken
	if taken && l.connected {
		l.Drop(0)
	}
}

// Subscribe implements peripheral.Peripheral.
func (l *Link) Subscribe(now int64, characteristic string, on bool) error {
	l.Tick(now)
	if err := l.Check(characteristic, "notify"); err != nil {
		return err
	}
	l.subscribed[characteristic] = on
	return nil
}

// Subscribed reports whether the client receives notifications of a characteristic.
func (l *Link) Subscribed(characteristic string) bool {
	return l.connected && l.subscribed[characteristic]
}

// Check returns an error if there is no connection, or no characteristic with this UUID and one of the flags.
func (l *Link) Check(characteristic string, flags ...string) error {
	if !l.connected {
		return peripheral.ErrNotConnected
	}
	for _, s := range l.services {
		for _, c := range s.Characteristics {
			if c.UUID != characteristic {
				continue
			}
			if slices.ContainsFunc(flags, func(f string) bool { return slices.Contains(c.Flags, f) }) {
				return nil
			}
			return peripheral.ErrNotPermitted
		}
	}
	return peripheral.ErrNotFound
}

// CheckWrite checks a write as the client's own Bluetooth stack would.
func (l *Link) CheckWrite(characteristic string, withResponse bool) error {
	if withResponse {
		return l.Check(characteristic, "write")
	}
	return l.Check(characteristic, "write-without-response")
}

// Connected reports whether a client is connected.
func (l *Link) Connected() bool { return l.connected }

// Payload returns the maximum length of a value in one packet: the MTU without the 3 bytes of its ATT header.
func (l *Link) Payload() int { return l.mtu - 3 }

// Now returns the latest time.
func (l *Link) Now() int64 { return l.now }

// After runs do in the given ms.
func (l *Link) After(ms int64, do func()) { l.schedule(step{at: l.now + ms, do: do}) }

// AfterLinked runs do in the given ms unless the connection has ended by then.
func (l *Link) AfterLinked(ms int64, do func()) {
	l.schedule(step{at: l.now + ms, connection: l.connection, do: do})
}

func (l *Link) schedule(s step) {
	if len(l.steps) >= maxSteps {
		return
	}
	i, _ := slices.BinarySearchFunc(l.steps, s.at, func(s step, at int64) int {
		if s.at <= at {
			return -1
		}
		return 1
	})
	l.steps = slices.Insert(l.steps, i, s)
}

// Next implements peripheral.Peripheral.
func (l *Link) Next() (int64, bool) {
	if len(l.steps) == 0 {
		return 0, false
	}
	return l.steps[0].at, true
}

// Tick implements peripheral.Peripheral. Each step runs at its own time.
func (l *Link) Tick(now int64) {
	for len(l.steps) > 0 && l.steps[0].at <= now {
		s := l.steps[0]
		l.steps = slices.Delete(l.steps, 0, 1)
		l.now = max(l.now, s.at)
		s.do()
	}
	l.now = max(l.now, now)
}

// Notify sends a notification, truncated to one packet, if the client subscribed to it.
func (l *Link) Notify(characteristic string, value []byte) {
	if l.Subscribed(characteristic) {
		l.output(peripheral.Out{Characteristic: characteristic, Value: slices.Clone(value[:min(len(value), l.Payload())])})
	}
}

// Inject sends a notification of any length, as a broken or hostile device does.
func (l *Link) Inject(characteristic string, value []byte) {
	if l.connected {
		l.output(peripheral.Out{Characteristic: characteristic, Value: slices.Clone(value)})
	}
}

func (l *Link) output(o peripheral.Out) {
	if len(l.out) < maxOut || o.Dropped {
		l.out = append(l.out, o)
	}
}

// Take implements peripheral.Peripheral.
func (l *Link) Take() []peripheral.Out {
	out := l.out
	l.out = nil
	return out
}

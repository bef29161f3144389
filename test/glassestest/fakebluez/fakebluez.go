// Package fakebluez is an org.bluez on a private D-Bus, with emulated peripherals in range of its adapter. Chromium,
// Python's bleak and our native client can use it like the system's BlueZ. It needs only dbus-daemon, but neither a
// kernel with Bluetooth nor root.
//
// To clients it behaves like BlueZ 5.66: object paths, the order of signals, error names, discovery that ends when
// its client disconnects, connections that do not, and devices that are removed some time after the last scan.
package fakebluez

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/service-dev/service/test/glassestest/peripheral"
)

// Adapter is the object path of the first adapter.
const Adapter dbus.ObjectPath = "/org/bluez/hci0"

// Options describes a radio and the peripherals in its range.
type Options struct {
	Peripherals []peripheral.Peripheral // in range of the first adapter, hci0
	// More lists further adapters: hci1 and so on.
	More []AdapterOptions
	// MTU is the MTU that both sides agree on; 0 means peripheral.MaxMTU.
	MTU int
	// WithoutMTU omits the property MTU, which BlueZ has since version 5.62.
	WithoutMTU bool
	// WithReasons adds the signal Disconnected, in which newer versions report why a connection has ended.
	WithReasons bool
	// PoweredOff and WithoutAdapter set the initial state of hci0; SetPowered and SetAdapter change it.
	PoweredOff, WithoutAdapter bool
	// Bus is the address of a bus without another radio; "" means that Start runs its own bus.
	Bus string
	// Denied makes its own bus refuse all calls, as for a user without permission to use Bluetooth.
	Denied bool
	// PairOnDemand makes a subscription that needs a bond pair without an agent, as BlueZ does for glasses that need
	// no confirmation.
	PairOnDemand bool
	// Forget is how long after a discovery unpaired devices are removed; 0 means 30 s, as in BlueZ.
	Forget time.Duration
}

// AdapterOptions describes an adapter and the peripherals in its range, which may also be in range of others.
type AdapterOptions struct {
	Peripherals []peripheral.Peripheral
	// Gain is added to the strength of every received signal, in dB.
	Gain                int
	PoweredOff, Missing bool
}

// Faults are the faults of one device; the zero value is a good connection. A count of -1 means always.
type Faults struct {
	AbortConnects int  // number of Connect calls that fail with le-connection-abort-by-local
	HangConnect   bool // Connect is not answered until Disconnect
	NeverResolve  bool // services are never resolved after Connect
	StaleServices bool // the services of an earlier firmware are found until RemoveDevice is called
	RejectPairing bool // Pair fails with AuthenticationFailed
	BusyWrites    int  // number of WriteValue calls that fail with InProgress
	HangWrites    bool // WriteValue is answered only after the services were removed
	// One of every N notifications is lost, sent twice, or sent after its successor; 0 means none.
	LoseEach, RepeatEach, SwapEach int
}

// Radio is a running fake. Its methods are safe for concurrent use and return after their effect has been sent.
type Radio struct {
	// Address is the bus, for DBUS_SYSTEM_BUS_ADDRESS.
	Address string

	opts  Options
	start time.Time
	ask   chan func()   // functions for the loop to run
	ended chan struct{} // closed when the loop has returned

	// The following fields belong to the loop.
	conn     *dbus.Conn // nil while org.bluez is not on the bus
	messages chan *dbus.Message
	steps    []step
	adapters []*adapter
	agents   map[string]dbus.ObjectPath // by the unique name of the client
	replies  map[uint32]func(ok bool)   // handlers of replies to agent calls
	calls    map[string]int
}

// Start runs a radio until the test ends. If the machine has no dbus-daemon, it skips the test, or in CI fails it.
func Start(t testing.TB, opts Options) *Radio {
	t.Helper()
	if opts.MTU == 0 {
		opts.MTU = peripheral.MaxMTU
	}
	if opts.Forget == 0 {
		opts.Forget = 30 * time.Second
	}
	needBus(t)
	if opts.Bus == "" {
		opts.Bus = startBus(t, opts.Denied)
	}
	r := &Radio{
		Address: opts.Bus, opts: opts, start: time.Now(), ask: make(chan func()),
		ended: make(chan struct{}), calls: map[string]int{},
	}
	first := AdapterOptions{Peripherals: opts.Peripherals, PoweredOff: opts.PoweredOff, Missing: opts.WithoutAdapter}
	for i, o := range append([]AdapterOptions{first}, opts.More...) {
		r.adapters = append(r.adapters, newAdapter(r, i, o))
	}
	if err := r.appear(); err != nil {
		t.Fatalf("offer org.bluez: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go r.run(ctx)
	t.Cleanup(func() {
		cancel()
		<-r.ended
	})
	return r
}

// do runs f in the loop, unless the radio has stopped.
func (r *Radio) do(f func()) {
	done := make(chan struct{})
	select {
	case r.ask <- func() { f(); close(done) }:
		<-done
	case <-r.ended:
	}
}

// Emulate runs f while no other code uses a peripheral, e.g. to tap emulated glasses. now is the radio's time in ms.
func (r *Radio) Emulate(f func(now int64)) { r.do(func() { f(r.now()) }) }

// SetFaults replaces the faults of a device.
func (r *Radio) SetFaults(p peripheral.Peripheral, f Faults) {
	r.do(func() {
		for _, d := range r.devicesOf(p) {
			d.faults = f
		}
	})
}

// Drop ends the connection to a device as if it went out of range.
func (r *Radio) Drop(p peripheral.Peripheral) {
	r.do(func() {
		p.Disconnect(r.now())
		for _, d := range r.devicesOf(p) {
			d.disconnected(byTimeout)
		}
	})
}

// Rename changes the name that a device advertises.
func (r *Radio) Rename(p peripheral.Peripheral, name string) {
	r.do(func() {
		for _, d := range r.devicesOf(p) {
			d.rename = name
		}
	})
}

// SetPowered switches hci0 on or off, as a user can do.
func (r *Radio) SetPowered(on bool) { r.SetPoweredOf(0, on) }

// SetPoweredOf switches the adapter hci<n> on or off.
func (r *Radio) SetPoweredOf(n int, on bool) { r.do(func() { r.adapters[n].power(on) }) }

// SetAdapter plugs hci0 in or out.
func (r *Radio) SetAdapter(present bool) { r.SetAdapterOf(0, present) }

// SetAdapterOf plugs the adapter hci<n> in or out.
func (r *Radio) SetAdapterOf(n int, present bool) { r.do(func() { r.adapters[n].plug(present) }) }

// Vanish removes org.bluez from the bus as if the system's Bluetooth service had crashed. Return starts it again.
func (r *Radio) Vanish() {
	r.do(func() {
		r.forgetAll()
		r.leave()
	})
}

// Return undoes Vanish.
func (r *Radio) Return() (err error) {
	r.do(func() {
		if r.conn == nil {
			err = r.appear()
		}
	})
	return err
}

// Calls returns how often clients called a method of org.bluez, e.g. "WriteValue". Writes are also counted by their
// type: "WriteValue command" and "WriteValue request". Setting a property counts as e.g. "Set Powered".
func (r *Radio) Calls(method string) (n int) {
	r.do(func() { n = r.calls[method] })
	return n
}

// Agents returns the number of agents that clients have registered.
func (r *Radio) Agents() (n int) {
	r.do(func() { n = len(r.agents) })
	return n
}

// Connected reports whether a device is connected.
func (r *Radio) Connected(p peripheral.Peripheral) bool { return r.ConnectedBy(p) != "" }

// ConnectedBy returns the path of the adapter that a device is connected to, or "".
func (r *Radio) ConnectedBy(p peripheral.Peripheral) (path dbus.ObjectPath) {
	r.do(func() {
		for _, d := range r.devicesOf(p) {
			if d.connected {
				path = d.a.path
			}
		}
	})
	return path
}

// devicesOf returns the devices of a peripheral on all adapters that have it in range.
func (r *Radio) devicesOf(p peripheral.Peripheral) (list []*device) {
	for d := range r.devices() {
		if d.p == p {
			list = append(list, d)
		}
	}
	if list == nil {
		panic("fakebluez: the peripheral is not in range of an adapter")
	}
	return list
}

// devices returns the devices of all adapters.
func (r *Radio) devices() iter.Seq[*device] {
	return func(yield func(*device) bool) {
		for _, a := range r.adapters {
			for _, d := range a.devices {
				if !yield(d) {
					return
				}
			}
		}
	}
}

func (r *Radio) now() int64 { return time.Since(r.start).Milliseconds() }

// Package echo emulates the simplest useful device: it notifies the values that are written to it. Tests of the radio
// and its clients use it when the protocol of real glasses does not matter.
package echo

import (
	"slices"

	"github.com/service-dev/service/test/glassestest/peripheral"
)

// UUIDs of the only service, the Nordic UART service, which several models of glasses use.
const (
	Service = "6e400001-b5a3-f393-e0a9-e50e24dcca9e"
	Write   = "6e400002-b5a3-f393-e0a9-e50e24dcca9e"
	Notify  = "6e400003-b5a3-f393-e0a9-e50e24dcca9e"
)

// Device implements peripheral.Peripheral. Tests may change its exported fields only while no other code uses it.
type Device struct {
	Name string
	// Silent is set for a device that does not advertise, e.g. because it is connected to a phone.
	Silent bool
	// Guarded is set for a device that needs a bond for everything after connecting.
	Guarded bool
	// Bound is set for a device that has a bond with another host. Like Brilliant's Frame, it ends the connection
	// instead of pairing.
	Bound bool
	// Greeting, if set, is sent immediately to a client that subscribes.
	Greeting []byte
	// Received holds everything that was written, in order.
	Received [][]byte
	// Delay is the time until an answer, in ms.
	Delay int64

	address           string
	connected, bonded bool
	subscribed        bool
	mtu               int
	waiting           []answer
	out               []peripheral.Out
}

type answer struct {
	at    int64
	value []byte
}

// New returns a device that is in range and free.
func New(address, name string) *Device { return &Device{Name: name, address: address} }

// Advertisement implements peripheral.Peripheral.
func (d *Device) Advertisement() (peripheral.Advertisement, bool) {
	return peripheral.Advertisement{Address: d.address, Name: d.Name, Services: []string{Service}, RSSI: -60},
		!d.connected && !d.Silent
}

// Services implements peripheral.Peripheral.
func (d *Device) Services() []peripheral.Service {
	return []peripheral.Service{{UUID: Service, Characteristics: []peripheral.Characteristic{
		{UUID: Write, Flags: []string{"write-without-response", "write"}},
		{UUID: Notify, Flags: []string{"read", "notify"}},
	}}}
}

// Connect implements peripheral.Peripheral.
func (d *Device) Connect(_ int64, mtu int) error {
	if d.connected || d.Silent {
		return peripheral.ErrBusy
	}
	d.connected, d.subscribed, d.mtu = true, false, mtu
	return nil
}

// Disconnect implements peripheral.Peripheral.
func (d *Device) Disconnect(int64) { d.connected, d.subscribed, d.waiting = false, false, nil }

// Pair implements peripheral.Peripheral.
func (d *Device) Pair(int64) error {
	if d.Bound {
		d.Drop()
		return peripheral.ErrPairing
	}
	d.bonded = true
	return nil
}

// check returns an error if the client may not use a characteristic, or if it is not the wanted one.
func (d *Device) check(characteristic, wanted string) error {
	switch {
	case !d.connected:
		return peripheral.ErrNotConnected
	case characteristic != wanted:
		return peripheral.ErrNotPermitted
	case d.Guarded && !d.bonded:
		return peripheral.ErrAuthentication
	}
	return nil
}

// Subscribe implements peripheral.Peripheral.
func (d *Device) Subscribe(_ int64, characteristic string, on bool) error {
	err := d.check(characteristic, Notify)
	if err == nil {
		d.subscribed = on
	}
	if d.subscribed && d.Greeting != nil {
		d.Send(d.Greeting)
	}
	return err
}

// Write implements peripheral.Peripheral.
func (d *Device) Write(now int64, characteristic string, value []byte, _ bool) error {
	if err := d.check(characteristic, Write); err != nil {
		return err
	}
	if len(value) > d.mtu-3 {
		return peripheral.ErrTooLong
	}
	d.Received = append(d.Received, slices.Clone(value))
	d.waiting = append(d.waiting, answer{at: now + d.Delay, value: slices.Clone(value)})
	return nil
}

// Read implements peripheral.Peripheral.
func (d *Device) Read(_ int64, characteristic string) ([]byte, error) {
	return []byte(d.Name), d.check(characteristic, Notify)
}

// Send notifies a value that was not requested.
func (d *Device) Send(value []byte) {
	if d.subscribed {
		d.out = append(d.out, peripheral.Out{Characteristic: Notify, Value: value})
	}
}

// Drop ends the connection from the device's side.
func (d *Device) Drop() {
	d.Disconnect(0)
	d.out = append(d.out, peripheral.Out{Dropped: true})
}

// Next implements peripheral.Peripheral.
func (d *Device) Next() (int64, bool) {
	if len(d.waiting) == 0 {
		return 0, false
	}
	return d.waiting[0].at, true
}

// Tick implements peripheral.Peripheral.
func (d *Device) Tick(now int64) {
	for len(d.waiting) > 0 && d.waiting[0].at <= now {
		d.Send(d.waiting[0].value)
		d.waiting = d.waiting[1:]
	}
}

// Take implements peripheral.Peripheral.
func (d *Device) Take() []peripheral.Out {
	out := d.out
	d.out = nil
	return out
}

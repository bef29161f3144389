// Package peripheral defines what an emulated Bluetooth LE peripheral offers to a test radio: an advertisement, GATT
// services and a connection. Each model of glasses has a package of emulators below it, written from the vendor's
// published protocol. They do no I/O and run in virtual or real time, so the same emulator can serve a driver in
// memory, a native client over D-Bus and a browser.
//
// Emulators test the drivers of glasses/driver and must not import them. Shipped code must not import this package.
package peripheral

import "errors"

// Peripheral is one emulated device with its own radio, such as one arm of a pair of glasses. It is not safe for
// concurrent use. All times are in milliseconds on one clock; a time earlier than the latest one counts as the
// latest.
type Peripheral interface {
	// Advertisement returns what a scan finds. ok is false while the device is silent, e.g. because it is connected.
	Advertisement() (a Advertisement, ok bool)
	Services() []Service
	// Connect opens the only connection, whose MTU is between MinMTU and MaxMTU.
	Connect(now int64, mtu int) error
	// Disconnect closes the connection from the client's side. Without a connection it does nothing.
	Disconnect(now int64)
	// Pair stores a bond for the connected client.
	Pair(now int64) error
	// Subscribe switches the notifications of a characteristic on or off.
	Subscribe(now int64, characteristic string, on bool) error
	// Write receives a value. The client learns about errors only if withResponse is set.
	Write(now int64, characteristic string, value []byte, withResponse bool) error
	// Read returns the value of a readable characteristic.
	Read(now int64, characteristic string) ([]byte, error)
	// Next returns the time of the next step; ok is false if there is none.
	Next() (at int64, ok bool)
	// Tick runs all steps that are due up to now.
	Tick(now int64)
	// Take returns the output since the last Take, in order.
	Take() []Out
}

// Limits of an ATT MTU (Bluetooth Core Specification 5.4, Vol 3, Part F, 3.2.8, and the limit of Chromium and BlueZ).
const (
	MinMTU = 23
	MaxMTU = 517
)

// Advertisement is the data that a scan finds.
type Advertisement struct {
	// Address is six bytes in upper-case hex with colons.
	Address string
	// Name is chosen by the peer, so it may contain any UTF-8.
	Name     string
	Services []string // UUIDs
	RSSI     int      // dBm
}

// Service is one GATT service. UUIDs are 36 characters long, in lower case.
type Service struct {
	UUID            string
	Characteristics []Characteristic
}

// Characteristic is one GATT characteristic.
type Characteristic struct {
	UUID string
	// Flags are flags of org.bluez.GattCharacteristic1: read, write, write-without-response, notify.
	Flags []string
}

// Out is one output: a notification, or the end of the connection if Dropped is set.
type Out struct {
	Characteristic string
	Value          []byte
	Dropped        bool
}

// Errors returned by a peripheral.
var (
	ErrNotConnected   = errors.New("the client is not connected")
	ErrBusy           = errors.New("the device is connected to another client")
	ErrUnreachable    = errors.New("the device does not answer")
	ErrAuthentication = errors.New("insufficient authentication: the device requires a bond")
	ErrPairing        = errors.New("the device refuses to pair")
	ErrNotFound       = errors.New("the device has no such characteristic")
	ErrNotPermitted   = errors.New("the characteristic does not permit this")
	ErrTooLong        = errors.New("the value is longer than the MTU allows")
)

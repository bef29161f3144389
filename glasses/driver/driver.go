// Package driver connects real glasses. A Driver translates between the Asks of package device and the bytes of one
// vendor's Bluetooth LE protocol. Glasses combines a Driver, a device.Device and the links to the peripherals into one
// pair of glasses that exchanges the frames of package glasses.
//
// The package does no I/O, starts no goroutine and reads no clock. A carrier (BlueZ, Web Bluetooth, a test's emulator)
// passes in bytes and times and carries out the output of Take. A whole session, including its faults, is therefore a
// function of its inputs. Carriers are independent of the vendor, and drivers are independent of the operating system.
package driver

import (
	"image"

	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/device"
)

// Driver is the vendor-specific part of one pair of glasses. It is not safe for concurrent use. All times are in
// milliseconds on the session's clock.
type Driver interface {
	// Links returns the connections that the glasses need, in the order in which to open them.
	Links() []LinkSpec
	// Event reports an event of a link.
	Event(now int64, e Event)
	// Do carries out an Ask. For device.AskShow, picture is the panel's picture; otherwise it is nil. If the Ask needs
	// an answer, the driver outputs exactly one Answer, now or later.
	Do(now int64, a device.Ask, picture *image.NRGBA)
	// Unconfirmed returns the parts of the glasses that have not confirmed that they show the picture of the latest
	// Ask, with the reason. It returns "" if all have confirmed it. A disconnected part counts as unconfirmed.
	Unconfirmed() string
	// SetPanel sets how the panel shows pictures, starting with the next one.
	SetPanel(p Panel)
	// Close switches off everything that the driver switched on and clears the panel. Closed reports whether this is
	// done.
	Close(now int64)
	Closed() bool
	// Cleared reports whether the glasses confirmed after Close that their panel is dark.
	Cleared() bool
	// Next returns the time of the next step. ok is false if there is none.
	Next() (at int64, ok bool)
	// Tick runs all steps that are due up to now.
	Tick(now int64)
	// Take returns the output since the last Take, in order.
	Take() []Out
}

// Panel describes how the panel of one pair shows pictures. The vendor's documents are ambiguous about it, so the user
// has to look at a picture and choose. The zero value follows the documents' first description.
type Panel struct {
	// Inverted is set if pixels of colour 0 are lit.
	Inverted bool `json:"inverted,omitempty"`
	// Rows is the height of a picture; 0 means the height of the device model.
	Rows int `json:"rows,omitempty"`
}

// LinkSpec describes one Bluetooth LE connection of a pair of glasses for the carrier, which opens it.
type LinkSpec struct {
	// Key names the link within the pair, e.g. left.
	Key string `json:"key"`
	// NamePrefix is the prefix of the names that peripherals of this kind advertise.
	NamePrefix string `json:"namePrefix"`
	// Service, Write and Notify are UUIDs of 36 characters in lower case.
	Service string `json:"service"`
	Write   string `json:"write"`
	Notify  string `json:"notify"`
	// Bonded is set if the peripheral accepts data only from a paired computer.
	Bonded bool `json:"bonded,omitempty"`
}

// Kinds of an Event.
const (
	LinkUp   = "up"     // the link is open and notifications are on
	LinkDown = "down"   // the link is closed, or it could not be opened
	Notified = "notify" // the peripheral sent Data
	Written  = "written"
)

// Event is an event of a link.
type Event struct {
	Kind string
	Link string
	// MTU is the ATT MTU in bytes, for LinkUp; 0 if the carrier does not know it.
	MTU  int
	Data []byte
	// Problem is a code of this package that explains why a link is down or a write failed; empty if there is no such
	// code.
	Problem string
}

// Write is a value to write to a peripheral. The carrier reports completion with a Written event, and accepts the
// link's next write only after that.
type Write struct {
	Link         string
	Data         []byte
	WithResponse bool
}

// Answer answers an Ask of the device.
type Answer struct {
	Ask      int
	Material device.Material
	Error    *glasses.Error
}

// Sense is an observation of the glasses in the form of a control frame: sim.input, sim.state or sim.motion.
type Sense struct {
	Type    string
	Payload any
}

// Info contains the data that the glasses reported about one link. Unknown fields are empty.
type Info struct {
	Link         string `json:"link"`
	Serial       string `json:"-"`
	Firmware     string `json:"firmware,omitempty"`
	BatteryLevel *int   `json:"batteryLevel,omitempty"` // percent
}

// Out is one output of a Driver. Exactly one field is set, except that Drop and Problem are set together.
type Out struct {
	Write  *Write
	Answer *Answer
	Sense  *Sense
	Info   *Info
	// Drop is the key of the link to close. Problem is the reason, a code of this package.
	Drop    string
	Problem string
	// Note is a line for the log. It contains no data of apps or users, no addresses and no serial numbers.
	Note string
}

package bluez

import "errors"

// Code is the code of an Error.
type Code string

// Codes of an Error.
const (
	NoBluetooth     Code = "no_bluetooth"     // no adapter, or BlueZ is not running
	RadioOff        Code = "radio_off"        // the adapter is switched off
	NoPermission    Code = "no_permission"    // this user may not use Bluetooth
	NotInRange      Code = "not_in_range"     // the device does not advertise
	BusyElsewhere   Code = "busy_elsewhere"   // another host or program holds the device
	NotPaired       Code = "not_paired"       // the device demands a bond, or refuses one
	ServicesMissing Code = "services_missing" // the device lacks the service or a characteristic
	Timeout         Code = "timeout"          // no answer in time
	Lost            Code = "lost"             // the connection has ended
	Refused         Code = "refused"          // the device or BlueZ refused a request
)

// Error is a failure with texts for the user.
type Error struct {
	Code    Code
	Message string // what failed
	FixHint string // what to do next
	Err     error  // the cause, if there is one
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of an error of this package, or "".
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// ErrClosed is the error of a connection that was closed with Close.
var ErrClosed = errors.New("the connection is closed")

// ErrTooLong is returned for a value that does not fit in one packet.
var ErrTooLong = errors.New("the value is longer than the MTU allows")

// hints maps each code to the user's next step.
var hints = map[Code]string{
	NoBluetooth: "Start the system's Bluetooth service: systemctl start bluetooth. If that fails, install BlueZ (the " +
		"package bluez).",
	RadioOff:     "Switch Bluetooth on: bluetoothctl power on. Then try again.",
	NoPermission: "Allow your user to use Bluetooth, e.g. sudo usermod -aG bluetooth $USER, and log in again.",
	NotInRange: "Switch the glasses on and bring them near. Take them from their case, or open it, and disconnect them " +
		"from the phone's app.",
	BusyElsewhere: "Close the app that uses the glasses, or switch the phone's Bluetooth off. If the glasses keep a " +
		"bond with one host only, remove that bond first.",
	NotPaired: "Set the glasses to pairing mode and connect with pairing. If they were paired before, remove them in " +
		"this computer's Bluetooth settings first.",
	ServicesMissing: "Remove the glasses in this computer's Bluetooth settings and connect again. If that does not " +
		"help, check their model and update their firmware.",
	Timeout: "Bring the glasses nearer, then try again.",
	Lost:    "Bring the glasses near and switch them on; connect again.",
	Refused: "Try again. If it happens each time, switch the glasses off and on.",
}

func problem(code Code, message string, cause error) *Error {
	return problemWith(code, message, hints[code], cause)
}

func problemWith(code Code, message, hint string, cause error) *Error {
	return &Error{Code: code, Message: message, FixHint: hint, Err: cause}
}

package bluez

import (
	"errors"

	"github.com/service-dev/service/internal/problem"
)

// ErrClosed is the error of a connection that was closed with Close.
var ErrClosed = errors.New("the connection is closed")

// ErrTooLong is returned for a value that does not fit in one packet.
var ErrTooLong = errors.New("the value is longer than the MTU allows")

// hints maps each code to the user's next step.
var hints = map[string]string{
	problem.CodeNoBluetooth: "Start the system's Bluetooth service: systemctl start bluetooth. If that fails, " +
		"install BlueZ (the package bluez).",
	problem.CodeRadioOff:     "Switch Bluetooth on: bluetoothctl power on. Then try again.",
	problem.CodeNoPermission: "Allow your user to use Bluetooth, e.g. sudo usermod -aG bluetooth $USER, and log in again.",
	problem.CodeNotInRange: "Switch the glasses on and bring them near. Take them from their case, or open it, and " +
		"disconnect them from the phone's app.",
	problem.CodeBusyElsewhere: "Close the app that uses the glasses, or switch the phone's Bluetooth off. If the " +
		"glasses keep a bond with one host only, remove that bond first.",
	problem.CodeNotPaired: "Set the glasses to pairing mode and connect with pairing. If they were paired before, " +
		"remove them in this computer's Bluetooth settings first.",
	problem.CodeServicesMissing: "Remove the glasses in this computer's Bluetooth settings and connect again. If " +
		"that does not help, check their model and update their firmware.",
	problem.CodeTimeout: "Bring the glasses nearer, then try again.",
	problem.CodeLost:    "Bring the glasses near and switch them on; connect again.",
	problem.CodeRefused: "Try again. If it happens each time, switch the glasses off and on.",
}

func failure(code string, message string, cause error) *problem.Error {
	return failureWith(code, message, hints[code], cause)
}

func failureWith(code string, message, hint string, cause error) *problem.Error {
	return &problem.Error{Code: code, Message: message, FixHint: hint, Err: cause}
}

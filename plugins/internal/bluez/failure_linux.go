package bluez

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/godbus/dbus/v5"
)

// codes maps the names of D-Bus and BlueZ errors to codes.
var codes = map[string]Code{
	"org.freedesktop.DBus.Error.ServiceUnknown": NoBluetooth,
	"org.freedesktop.DBus.Error.NameHasNoOwner": NoBluetooth,
	"org.freedesktop.DBus.Error.NoReply":        NoBluetooth, // BlueZ has stopped
	"org.freedesktop.DBus.Error.Disconnected":   NoBluetooth,
	"org.freedesktop.DBus.Error.TimedOut":       NoBluetooth, // the system could not start BlueZ
	"org.freedesktop.DBus.Error.AccessDenied":   NoPermission,
	"org.freedesktop.DBus.Error.UnknownObject":  NotInRange, // BlueZ has forgotten the device
	"org.freedesktop.DBus.Error.UnknownMethod":  NotInRange,
	"org.bluez.Error.DoesNotExist":              NotInRange,
	"org.bluez.Error.NotReady":                  RadioOff,
	"org.bluez.Error.InProgress":                BusyElsewhere,
	"org.bluez.Error.NotPermitted":              NotPaired,
	"org.bluez.Error.NotAuthorized":             NotPaired,
	"org.bluez.Error.AuthenticationFailed":      NotPaired,
	"org.bluez.Error.AuthenticationRejected":    NotPaired,
	"org.bluez.Error.AuthenticationTimeout":     NotPaired,
	"org.bluez.Error.NotSupported":              ServicesMissing,
}

// failure converts an error of the activity doing to an Error; nil stays nil. It returns an Error of this package and
// the error of an ended context unchanged.
func (r *Radio) failure(err error, doing string) error {
	var ours *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ours), errors.Is(err, context.Canceled), errors.Is(err, ErrClosed):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return problem(Timeout, "no answer in time: "+doing, err)
	case errors.Is(err, dbus.ErrClosed):
		return problem(NoBluetooth, "the connection to the system's D-Bus has ended", err)
	}
	code, ok := codes[name(err)]
	switch {
	case ok:
	case strings.HasPrefix(name(err), "org.freedesktop.DBus.Error.Spawn"),
		strings.HasPrefix(name(err), "org.freedesktop.systemd1."):
		code = NoBluetooth // BlueZ is not installed, or is disabled
	case name(err) == "":
		code = NoBluetooth // the bus itself is missing
	case strings.Contains(text(err), "Not connected"):
		code = Lost
	case strings.HasPrefix(text(err), "le-connection-"):
		code = BusyElsewhere
	default:
		code = Refused
	}
	message := fmt.Sprintf("%s: %s", doing, text(err))
	switch {
	case code == NoPermission:
		message = "this user may not use Bluetooth"
	case code == NoBluetooth && name(err) != "":
		message = "the system's Bluetooth service is not running"
	case text(err) == "":
		message = fmt.Sprintf("%s: %v", doing, err)
	}
	return problem(code, message, err)
}

// busError returns the Error for a bus that cannot be reached.
func busError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, fs.ErrPermission) {
		return problem(NoPermission, fmt.Sprintf("this user may not use the system's D-Bus: %v", err), err)
	}
	return problem(NoBluetooth, fmt.Sprintf("the system's D-Bus, by which Bluetooth is used, does not answer: %v", err),
		err)
}

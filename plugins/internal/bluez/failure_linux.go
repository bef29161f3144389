package bluez

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/godbus/dbus/v5"

	"github.com/service-dev/service/internal/problem"
)

// codes maps the names of D-Bus and BlueZ errors to codes.
var codes = map[string]string{
	"org.freedesktop.DBus.Error.ServiceUnknown": problem.CodeNoBluetooth,
	"org.freedesktop.DBus.Error.NameHasNoOwner": problem.CodeNoBluetooth,
	"org.freedesktop.DBus.Error.NoReply":        problem.CodeNoBluetooth, // BlueZ has stopped
	"org.freedesktop.DBus.Error.Disconnected":   problem.CodeNoBluetooth,
	"org.freedesktop.DBus.Error.TimedOut":       problem.CodeNoBluetooth, // the system could not start BlueZ
	"org.freedesktop.DBus.Error.AccessDenied":   problem.CodeNoPermission,
	"org.freedesktop.DBus.Error.UnknownObject":  problem.CodeNotInRange, // BlueZ has forgotten the device
	"org.freedesktop.DBus.Error.UnknownMethod":  problem.CodeNotInRange,
	"org.bluez.Error.DoesNotExist":              problem.CodeNotInRange,
	"org.bluez.Error.NotReady":                  problem.CodeRadioOff,
	"org.bluez.Error.InProgress":                problem.CodeBusyElsewhere,
	"org.bluez.Error.NotPermitted":              problem.CodeNotPaired,
	"org.bluez.Error.NotAuthorized":             problem.CodeNotPaired,
	"org.bluez.Error.AuthenticationFailed":      problem.CodeNotPaired,
	"org.bluez.Error.AuthenticationRejected":    problem.CodeNotPaired,
	"org.bluez.Error.AuthenticationTimeout":     problem.CodeNotPaired,
	"org.bluez.Error.NotSupported":              problem.CodeServicesMissing,
}

// failure converts an error to an Error; doing describes the failed operation. It returns nil, an Error of this
// package and the error of an ended context unchanged.
func (r *Radio) failure(err error, doing string) error {
	var ours *problem.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ours), errors.Is(err, context.Canceled), errors.Is(err, ErrClosed):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return failure(problem.CodeTimeout, "no answer in time: "+doing, err)
	case errors.Is(err, dbus.ErrClosed):
		return failure(problem.CodeNoBluetooth, "the connection to the system's D-Bus has ended", err)
	}
	code, ok := codes[name(err)]
	switch {
	case ok:
	case strings.HasPrefix(name(err), "org.freedesktop.DBus.Error.Spawn"),
		strings.HasPrefix(name(err), "org.freedesktop.systemd1."):
		code = problem.CodeNoBluetooth // BlueZ is not installed, or is disabled
	case name(err) == "":
		code = problem.CodeNoBluetooth // the bus itself is missing
	case strings.Contains(text(err), "Not connected"):
		code = problem.CodeLost
	case strings.HasPrefix(text(err), "le-connection-"):
		code = problem.CodeBusyElsewhere
	default:
		code = problem.CodeRefused
	}
	message := fmt.Sprintf("%s: %s", doing, text(err))
	switch {
	case code == problem.CodeNoPermission:
		message = "this user may not use Bluetooth"
	case code == problem.CodeNoBluetooth && name(err) != "":
		message = "the system's Bluetooth service is not running"
	case text(err) == "":
		message = fmt.Sprintf("%s: %v", doing, err)
	}
	return failure(code, message, err)
}

// busError returns the Error for a bus that cannot be reached.
func busError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, fs.ErrPermission) {
		return failure(problem.CodeNoPermission, fmt.Sprintf("this user may not use the system's D-Bus: %v", err), err)
	}
	return failure(problem.CodeNoBluetooth,
		fmt.Sprintf("the system's D-Bus, which Bluetooth requires, does not answer: %v", err),
		err)
}

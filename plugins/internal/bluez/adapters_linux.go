package bluez

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/godbus/dbus/v5"

	"github.com/service-dev/service/internal/problem"
)

// adapter is a Bluetooth adapter of this computer.
type adapter struct {
	path  dbus.ObjectPath
	state adapterState
}

// adapterState is an index into adapterStates. The states are ordered by how easy they are to change, the easiest
// first.
type adapterState int

const (
	isOn adapterState = iota
	isOff
	isBlocked
	isHardBlocked
)

// adapterStates holds, for each state, its text and the hint for making Bluetooth usable.
var adapterStates = []struct{ text, hint string }{
	isOn: {"is on", ""},
	isOff: {"is switched off",
		"Switch it on: bluetoothctl power on. The service never switches Bluetooth on for you."},
	isBlocked: {"is blocked by rfkill", "Unblock it: rfkill unblock bluetooth, then bluetoothctl power on."},
	isHardBlocked: {"is blocked by a switch or key of this computer",
		"Press the key for radios, or move the switch, and then run bluetoothctl power on."},
}

func (a adapter) String() string { return nameOf(a.path) + " " + adapterStates[a.state].text }

// nameOf returns the name of an adapter, such as hci0. Messages do not contain its address, which identifies its
// owner.
func nameOf(adapter dbus.ObjectPath) string { return path.Base(string(adapter)) }

// adapterOf returns the adapter that an object belongs to.
func adapterOf(device dbus.ObjectPath) dbus.ObjectPath {
	return dbus.ObjectPath(path.Dir(string(device)))
}

// adapters returns all adapters, ordered by name, and all objects of BlueZ.
func (r *Radio) adapters(ctx context.Context) ([]adapter, objects, error) {
	ctx, cancel := context.WithTimeout(ctx, r.limits.Write)
	defer cancel()
	var all objects
	// This call starts BlueZ on systems that start it on demand.
	if err := r.call(ctx, "/", managerInterface+".GetManagedObjects").Store(&all); err != nil {
		return nil, nil, r.failure(err, "list the Bluetooth adapters")
	}
	var list []adapter
	for _, p := range slices.Sorted(maps.Keys(all)) {
		if values, ok := all[p][adapterInterface]; ok {
			state := isOn
			if !value[bool](values, "Powered") {
				state = max(isOff, blockOf(r.limits.RFKill, nameOf(p)))
			}
			list = append(list, adapter{p, state})
		}
	}
	return list, all, nil
}

// usable returns the adapters. It fails with CodeNoBluetooth or CodeRadioOff if none of them is on.
func (r *Radio) usable(ctx context.Context) ([]adapter, error) {
	list, _, err := r.adapters(ctx)
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0 && blockOf(r.limits.RFKill, "") != isOn: // a block may hide an adapter from the system
		return nil, failureWith(problem.CodeNoBluetooth,
			"this computer has no Bluetooth adapter, and rfkill blocks Bluetooth",
			"Run rfkill unblock bluetooth, and press the key or move the switch for radios if there is one. "+
				"If that does not help, use a USB Bluetooth adapter.", nil)
	case len(list) == 0:
		return nil, failureWith(problem.CodeNoBluetooth, "this computer has no Bluetooth adapter",
			"Use a USB Bluetooth adapter.", nil)
	}
	easiest := isHardBlocked
	var texts []string
	for _, a := range list {
		easiest = min(easiest, a.state)
		texts = append(texts, a.String())
	}
	if easiest == isOn {
		return list, nil
	}
	return nil, failureWith(problem.CodeRadioOff, "Bluetooth is switched off: "+strings.Join(texts, ", "),
		adapterStates[easiest].hint, nil)
}

// Searched lists, in parentheses, the adapters that a scan uses and the adapters that it cannot use, for a message
// about a device that was not found. It returns "" if BlueZ does not respond.
func (r *Radio) Searched(ctx context.Context) string {
	list, _, err := r.adapters(ctx)
	var on, others []string
	for _, a := range list {
		if a.state == isOn {
			on = append(on, nameOf(a.path))
		} else {
			others = append(others, "; "+a.String())
		}
	}
	if err != nil || len(on) == 0 {
		return ""
	}
	return fmt.Sprintf(" (searched with %s%s)", strings.Join(on, " and "), strings.Join(others, ""))
}

// blockOf returns how rfkill blocks an adapter, or any Bluetooth device of this computer if the name is empty. It
// returns isOn if none is blocked or rfkill cannot be read.
func blockOf(rfkill, adapter string) (state adapterState) {
	names, _ := filepath.Glob(filepath.Join(rfkill, "*", "name")) // fails only for a malformed pattern
	for _, name := range names {
		read := func(file string) string {
			text, _ := os.ReadFile(filepath.Join(filepath.Dir(name), file))
			return strings.TrimSpace(string(text))
		}
		switch {
		case read("type") != "bluetooth" || adapter != "" && read("name") != adapter:
		case read("hard") == "1":
			state = max(state, isHardBlocked)
		case read("soft") == "1":
			state = max(state, isBlocked)
		}
	}
	return state
}

// Package bluez connects to Bluetooth Low Energy devices on Linux, through the D-Bus interface of BlueZ, the system's
// Bluetooth service. It scans for devices, connects to them, writes values and delivers notifications. It is
// independent of glasses. It never switches the radio on. On other systems, Open fails.
package bluez

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Limits of a radio.
const (
	// maxName is the maximum length of a name in characters. Bluetooth allows 248 bytes.
	maxName = 64
	// maxDevices is the maximum number of devices that a scan remembers. It ignores further ones.
	maxDevices = 1000
	// maxNotifications is the maximum number of notifications that wait to be received. Further ones are dropped and
	// counted.
	maxNotifications = 1024
	// minMTU is assumed if BlueZ does not report the MTU of a connection, as before version 5.62.
	minMTU = 23
	// maxValue is the maximum length of a value in the ATT protocol.
	maxValue = 512
)

// Options sets how to reach BlueZ and how long operations may take. Zero values are replaced by the defaults.
type Options struct {
	// Address is the address of the D-Bus; the default is the system bus.
	Address string
	// Find limits the search for a device before connecting to it (default 10 s). Others limits the remaining search
	// once the first of several adapters has received the device (1 s). Connect limits one attempt to connect or pair
	// (25 s). Resolve limits the search for services (10 s). Write limits one write or subscription (5 s).
	Find, Others, Connect, Resolve, Write time.Duration
	// RFKill is the directory where Linux lists the blocks of radios; the default is /sys/class/rfkill.
	RFKill string
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		limit   *time.Duration
		seconds time.Duration
	}{{&o.Find, 10}, {&o.Others, 1}, {&o.Connect, 25}, {&o.Resolve, 10}, {&o.Write, 5}} {
		if *d.limit <= 0 {
			*d.limit = d.seconds * time.Second
		}
	}
	o.RFKill = cmp.Or(o.RFKill, "/sys/class/rfkill")
	return o
}

// Filter selects devices that have one of the name prefixes or advertise one of the services. The zero value selects
// all devices.
type Filter struct {
	NamePrefixes []string
	Services     []string // UUIDs
}

// Found is a device in range.
type Found struct {
	Address string // six bytes in upper-case hex with colons
	// Name is the name that the device advertises: at most 64 printable characters, or empty.
	Name string
	RSSI int // dBm; 0 if Connected
	// Connected is set for devices that are connected to this computer and therefore do not advertise.
	Connected bool
	Services  []string // UUIDs in lower case
}

func (f Filter) matches(d Found) bool {
	if len(f.NamePrefixes)+len(f.Services) == 0 {
		return true
	}
	if slices.ContainsFunc(f.NamePrefixes, func(prefix string) bool { return strings.HasPrefix(d.Name, prefix) }) {
		return true
	}
	return slices.ContainsFunc(f.Services, func(uuid string) bool {
		return slices.Contains(d.Services, strings.ToLower(uuid))
	})
}

// Target is a device, and the service and two characteristics that a connection uses.
type Target struct {
	Address                string // address as in Found
	Service, Write, Notify string // UUIDs
	// Pair lets the device and this computer store a bond if they have none. Only just-works pairing is supported;
	// requests for a code are refused.
	Pair bool
}

// clean makes a name chosen by an unknown device safe to show.
func clean(name string) string {
	var out []rune
	for _, r := range strings.TrimSpace(strings.ToValidUTF8(name, "")) {
		if len(out) == maxName {
			break
		}
		if unicode.IsPrint(r) {
			out = append(out, r)
		}
	}
	return string(out)
}

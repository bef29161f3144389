package pluginhost

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/glasses/driver/kinds"
	"github.com/service-dev/service/internal/problem"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// Limits of a description, which agents read.
const (
	maxName    = 32 // bytes
	maxTitle   = 80 // characters
	maxVersion = 64 // bytes
)

// shippedTransports returns the descriptions of the shipped transport adapters. Sessions need them before an adapter
// first starts.
func shippedTransports() []backend.Transport {
	return []backend.Transport{
		{Name: LocalSim, Title: "LocalSimTransport: simulated glasses on this machine", VirtualClock: true},
		{Name: BrowserSim, Title: "Browser simulator", NeedsAccount: true, HostsSessions: true},
		{Name: RealDevice, Title: "RealDeviceTransport: real glasses over Bluetooth LE",
			DeviceModels: kinds.DeviceModels()},
	}
}

// reservedNames lists names that an added adapter must not have, because sessions report them.
var reservedNames = []string{backend.TransportLocal, backend.TransportBrowser}

// isFreeName reports whether an added adapter may have this name.
func isFreeName(name string) bool {
	return name != "" && len(name) <= maxName && name[0] != '-' &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" &&
		!slices.Contains(shipped(), name) && !slices.Contains(reservedNames, name)
}

// describedTransport reads the description of a transport adapter. An added adapter is named by its own description,
// not by the user or its file name, so that a session finds it under the same name on every machine. The name must
// never change.
func describedTransport(a *adapter, d *pluginv1.DescribeTransportResponse) (*backend.Transport, error) {
	t := backend.Transport{Name: d.GetName(), Title: d.GetTitle(), DeviceModels: d.GetDeviceModels(),
		NeedsAccount: d.GetNeedsAccount(), VirtualClock: d.GetVirtualClock(),
		HostsSessions: d.GetHostsSessions()}
	if a.added == nil {
		return &t, nil
	}
	switch {
	case !isFreeName(t.Name):
		return nil, refuseWith("Change the name that the adapter describes.", "it calls itself %.40q; a name has 1 to %d "+
			"of a-z, 0-9 and -, and is not one of a shipped adapter", t.Name, maxName)
	case a.name != "" && t.Name != a.name:
		return nil, refuseWith(runHint("servicectl plugin add "+a.added.Path), "it now calls itself %s instead of %s", t.Name,
			a.name)
	case t.NeedsAccount, t.HostsSessions:
		return nil, refuseWith("Describe it without needs_account and hosts_sessions.",
			"it needs an account, but only adapters that ship with the service receive credentials")
	case len(d.GetVersion()) > maxVersion || !isLine(d.GetVersion()):
		return nil, refuseWith("Change the version that the adapter describes.", "its version is not a line of at most %d "+
			"bytes", maxVersion)
	}
	if err := checkDescription(t); err != nil {
		return nil, err
	}
	return &t, nil
}

// checkDescription checks the parts of a description that are stored.
func checkDescription(t backend.Transport) error {
	if utf8.RuneCountInString(t.Title) > maxTitle || !isLine(t.Title) {
		return refuseWith("Change the title that the adapter describes.", "its title is not a line of at most %d characters",
			maxTitle)
	}
	if len(t.DeviceModels) > len(glasses.ModelIDs()) {
		return refuseWith("Name each device model once.", "it describes %d device models, more than are known",
			len(t.DeviceModels))
	}
	for _, id := range t.DeviceModels {
		if _, ok := glasses.Model(id); !ok {
			return refuseWith("Use ids of "+strings.Join(glasses.ModelIDs(), ", ")+".",
				"it describes the device model %.40q, which is unknown", id)
		}
	}
	return nil
}

// isLine reports whether s is one line of printable characters.
func isLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Transports lists the transports that sessions can select. It does not start adapters.
func (h *Host) Transports() []backend.Transport {
	var list []backend.Transport
	for _, a := range h.all() {
		if a.isTransport() {
			list = append(list, a.transport())
		}
	}
	return list
}

// Transport describes a transport without starting its adapter. It returns a *problem.Error on failure.
func (h *Host) Transport(name string) (backend.Transport, error) {
	a, err := h.findTransport(name)
	if err != nil {
		return backend.Transport{}, err
	}
	return a.transport(), nil
}

func (h *Host) findTransport(name string) (*adapter, error) {
	var known []string
	for _, a := range h.all() {
		if !a.isTransport() {
			continue
		}
		if a.name == name {
			return a, nil
		}
		if !a.transport().HostsSessions {
			known = append(known, a.name)
		}
	}
	return nil, &problem.Error{
		Code:    problem.CodeUnknownTransport,
		Message: fmt.Sprintf("there is no transport %.40q; known are: %s", name, strings.Join(known, ", ")),
		FixHint: "Pass one of these, or let the user add its adapter with `servicectl plugin add PATH`.",
	}
}

package realdevice

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/plugins/internal/bluez"
	pluginv1 "github.com/service-dev/service/proto/plugin/v1"
)

// openRadio opens the radio when it is first needed, and again after it has failed.
func (a *adapter) openRadio(ctx context.Context) (*bluez.Radio, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.radio == nil {
		r, err := bluez.Open(ctx, a.options)
		if err != nil {
			return nil, err
		}
		a.radio = r
	}
	return a.radio, nil
}

// dropRadio closes a radio that no longer works, so that the next attempt opens a new one.
func (a *adapter) dropRadio(r *bluez.Radio, err error) {
	if !errors.Is(err, bluez.ErrClosed) && problem.CodeOf(err) != problem.CodeNoBluetooth {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.radio == r {
		a.radio = nil
		r.Close()
	}
}

// targetOf returns the Bluetooth target for a link of a driver.
func targetOf(address string, spec driver.LinkSpec) bluez.Target {
	return bluez.Target{Address: address, Service: spec.Service, Write: spec.Write, Notify: spec.Notify, Pair: spec.Bonded}
}

// codeOf returns the code of an error for a driver.
func codeOf(err error) string { return cmp.Or(problem.CodeOf(err), problem.CodeTimeout) }

// address matches a Bluetooth address, including the brackets after a name.
var address = regexp.MustCompile(`(?i) ?\((?:[0-9A-F]{2}[:_]){5}[0-9A-F]{2}\)|(?:[0-9A-F]{2}[:_]){5}[0-9A-F]{2}`)

// withoutAddresses removes Bluetooth addresses from text shown to users and agents, because they identify the owner of
// the glasses.
func withoutAddresses(text string) string {
	return address.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasSuffix(found, ")") {
			return ""
		}
		return "the device"
	})
}

// problemOf converts an error to a Problem for the host.
func problemOf(err error) *pluginv1.Problem {
	p := &pluginv1.Problem{Code: codeOf(err), Message: withoutAddresses(err.Error()), Retryable: true}
	if e := problem.From(err); e != nil {
		p.FixHint = e.FixHint
	}
	return p
}

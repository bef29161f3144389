package bluez

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/godbus/dbus/v5"
)

// Scan calls found for each matching device in range, and again whenever its name or signal changes, until ctx ends;
// then it returns nil. It calls found from its own goroutine, never two at a time.
func (r *Radio) Scan(ctx context.Context, filter Filter, found func(Found)) error {
	err := r.discover(ctx, func(d sighting) bool {
		if filter.matches(d.Found) {
			found(d.Found)
		}
		return false
	})
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return nil
	}
	return err
}

// sighting is a device in range and its object.
type sighting struct {
	Found
	path dbus.ObjectPath
}

// discover calls visit for devices in range until it returns true or ctx ends.
func (r *Radio) discover(ctx context.Context, visit func(sighting) bool) error {
	adapter, _, err := r.adapter(ctx)
	if err != nil {
		return err
	}
	s := &scan{adapter: adapter, devices: map[dbus.ObjectPath]properties{}, news: make(event, 1)}
	w := &watch{path: adapter, changed: s.changed, gone: s.gone}
	defer r.unwatch(ctx, w)
	if err := r.watch(ctx, w, changesBelow(adapter), existenceOf(adapter), existenceOf(adapter+"/")); err != nil {
		return err
	}
	if err := r.startDiscovery(ctx, adapter); err != nil {
		return err
	}
	defer r.stopDiscovery(ctx, adapter)
	_, all, err := r.adapter(ctx) // what was there before the watch began
	for path, o := range all {
		if p, ok := o[deviceInterface]; ok && w.covers(path) {
			s.known(path, p)
		}
	}
	for err == nil {
		var found []sighting
		if found, err = s.take(ctx); slices.ContainsFunc(found, visit) {
			return nil
		}
	}
	return err
}

// startDiscovery starts BlueZ's discovery unless another scan of this radio has.
func (r *Radio) startDiscovery(ctx context.Context, adapter dbus.ObjectPath) error {
	const doing = "scan for Bluetooth devices"
	ctx, cancel := context.WithTimeout(ctx, r.limits.Write)
	defer cancel()
	if err := r.discovery.acquire(ctx); err != nil {
		return r.failure(err, doing)
	}
	defer r.discovery.release()
	if r.discovering == 0 {
		// Not the services: glasses need not advertise them.
		filter := properties{"Transport": dbus.MakeVariant("le")}
		err := r.call(ctx, adapter, adapterInterface+".SetDiscoveryFilter", filter).Err
		if err == nil {
			err = r.call(ctx, adapter, adapterInterface+".StartDiscovery").Err
		}
		if err != nil && name(err) != "org.bluez.Error.InProgress" {
			return r.failure(err, doing)
		}
	}
	r.discovering++
	return nil
}

func (r *Radio) stopDiscovery(ctx context.Context, adapter dbus.ObjectPath) {
	_ = r.discovery.acquire(context.Background()) // held for the time of two calls, which is bounded
	defer r.discovery.release()
	r.discovering--
	if r.discovering == 0 {
		r.undo(ctx, adapter, adapterInterface+".StopDiscovery")
	}
}

// scan collects what is known of devices. Its memory is bounded by the number of devices, however often they change.
type scan struct {
	adapter dbus.ObjectPath
	news    event // set if there is something to take

	mu      sync.Mutex
	devices map[dbus.ObjectPath]properties
	fresh   []dbus.ObjectPath // those that changed, once each
	err     error
}

// known adds what BlueZ knew of a device when it was asked. Changes are newer.
func (s *scan) known(path dbus.ObjectPath, p properties) {
	s.mu.Lock()
	defer s.mu.Unlock()
	values := maps.Clone(p)
	maps.Copy(values, s.devices[path])
	s.update(change{path: path, values: values})
}

func (s *scan) changed(c change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.path == s.adapter && c.iface == adapterInterface:
		switch {
		case c.became("Powered", false):
			s.fail(problem(RadioOff, "Bluetooth was switched off during the scan", nil))
		case c.removed:
			s.fail(problem(NoBluetooth, "the Bluetooth adapter was removed during the scan", nil))
		}
	case c.iface != deviceInterface:
	case c.removed:
		delete(s.devices, c.path)
	default:
		s.update(c)
	}
}

func (s *scan) update(c change) {
	p := s.devices[c.path]
	if p == nil {
		if len(s.devices) == maxDevices {
			return
		}
		p = properties{}
		s.devices[c.path] = p
	}
	for name, v := range c.values {
		switch name {
		case "Address", "Name", "RSSI", "Connected", "UUIDs": // of what a stranger sends, keep only what is used
			p[name] = v
		}
	}
	for _, name := range c.invalid {
		delete(p, name)
	}
	for _, path := range s.fresh {
		if path == c.path {
			return
		}
	}
	s.fresh = append(s.fresh, c.path)
	s.news.set()
}

func (s *scan) gone(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(problem(NoBluetooth, reason, nil))
}

func (s *scan) fail(err error) {
	if s.err == nil {
		s.err = err
		s.news.set()
	}
}

// take waits for changes and returns the devices in range that changed since the last call.
func (s *scan) take(ctx context.Context) (found []sighting, err error) {
	select {
	case <-s.news:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range s.fresh {
		p, ok := s.devices[path]
		if !ok {
			continue
		}
		rssi, inRange := p["RSSI"].Value().(int16)
		d := sighting{path: path, Found: Found{
			Address: strings.ToUpper(value[string](p, "Address")), Name: clean(value[string](p, "Name")),
			RSSI: int(rssi), Connected: value[bool](p, "Connected"),
		}}
		for _, uuid := range value[[]string](p, "UUIDs") {
			d.Services = append(d.Services, strings.ToLower(uuid))
		}
		if d.Address != "" && (inRange || d.Connected) {
			found = append(found, d)
		}
	}
	s.fresh = s.fresh[:0]
	return found, s.err
}

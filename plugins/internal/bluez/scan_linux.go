package bluez

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/godbus/dbus/v5"

	"github.com/service-dev/service/internal/problem"
)

// Scan calls found for each matching device in range, and again whenever the device's name or signal changes. It
// returns nil once ctx ends. It makes the calls one after another, from its own goroutine.
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

// sighting is a device in range and its object, which belongs to the adapter that received it.
type sighting struct {
	Found
	path     dbus.ObjectPath
	paired   bool
	adapters int // number of adapters that are scanning
}

// compare returns a positive number if d is a better choice for a connection than o.
func (d sighting) compare(o sighting) int {
	rank := func(yes bool) int {
		if yes {
			return 1
		}
		return 0
	}
	return cmp.Or(rank(d.Connected)-rank(o.Connected), rank(d.paired)-rank(o.paired), cmp.Compare(d.RSSI, o.RSSI),
		cmp.Compare(o.path, d.path))
}

// discover calls visit for devices in range of any adapter until it returns true or ctx ends. It uses adapters as
// soon as they are switched on, and fails once the last one is switched off.
func (r *Radio) discover(ctx context.Context, visit func(sighting) bool) error {
	s := &scan{devices: map[dbus.ObjectPath]properties{}, powered: map[dbus.ObjectPath]bool{}, news: make(event, 1)}
	w := &watch{path: bluezPath, changed: s.changed, gone: s.gone}
	defer r.unwatch(ctx, w)
	if err := r.watch(ctx, w, changesBelow(bluezPath), existenceOf(bluezPath+"/")); err != nil {
		return err
	}
	_, all, err := r.adapters(ctx) // lists the objects from before the watch began
	if err != nil {
		return err
	}
	s.known(all)
	scanning := map[dbus.ObjectPath]error{} // reason why each switched-on adapter cannot scan, or nil
	defer func() {
		for adapter, failure := range scanning {
			if failure == nil {
				r.stopDiscovery(ctx, adapter)
			}
		}
	}()
	for {
		if err := r.discoverWith(ctx, s, scanning); err != nil {
			return err
		}
		found, err := s.take(ctx)
		if slices.ContainsFunc(found, visit) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// discoverWith starts discovery on adapters that were switched on, and ends it on adapters that were switched off.
// It fails if no adapter is left.
func (r *Radio) discoverWith(ctx context.Context, s *scan, scanning map[dbus.ObjectPath]error) error {
	on, off := s.takeAdapters()
	for _, adapter := range off {
		if failure, ok := scanning[adapter]; ok && failure == nil {
			r.stopDiscovery(ctx, adapter)
		}
		delete(scanning, adapter)
	}
	for _, adapter := range on {
		if _, ok := scanning[adapter]; !ok {
			scanning[adapter] = r.startDiscovery(ctx, adapter)
		}
	}
	var failure error
	for _, adapter := range on {
		if failure = scanning[adapter]; failure == nil {
			return nil
		}
	}
	if _, err := r.usable(ctx); err != nil {
		return err
	}
	return failure // nil if an adapter was switched on in the meantime
}

// startDiscovery starts BlueZ's discovery on an adapter, or joins another scan of this radio.
func (r *Radio) startDiscovery(ctx context.Context, adapter dbus.ObjectPath) error {
	doing := "scan for Bluetooth devices with " + nameOf(adapter)
	ctx, cancel := context.WithTimeout(ctx, r.limits.Write)
	defer cancel()
	if err := r.discovery.acquire(ctx); err != nil {
		return r.failure(err, doing)
	}
	defer r.discovery.release()
	// Do not filter by services, because glasses need not advertise them. Repeat the calls for each scan, because
	// another scan may not have noticed yet that the adapter was switched off and on.
	filter := properties{"Transport": dbus.MakeVariant("le")}
	err := r.call(ctx, adapter, adapterInterface+".SetDiscoveryFilter", filter).Err
	if err == nil {
		err = r.call(ctx, adapter, adapterInterface+".StartDiscovery").Err
	}
	if err != nil && name(err) != "org.bluez.Error.InProgress" {
		return r.failure(err, doing)
	}
	r.discovering[adapter]++
	return nil
}

func (r *Radio) stopDiscovery(ctx context.Context, adapter dbus.ObjectPath) {
	_ = r.discovery.acquire(context.Background()) // held only for two calls with a time limit
	defer r.discovery.release()
	r.discovering[adapter]--
	if r.discovering[adapter] == 0 {
		delete(r.discovering, adapter)
		r.undo(ctx, adapter, adapterInterface+".StopDiscovery")
	}
}

// scan collects the state of adapters and devices. Its memory is bounded by their number, regardless of how often
// they change.
type scan struct {
	news event // set if there are changes to take

	mu      sync.Mutex
	powered map[dbus.ObjectPath]bool // state by adapter
	off     []dbus.ObjectPath        // adapters switched off or removed since the last takeAdapters
	devices map[dbus.ObjectPath]properties
	fresh   []dbus.ObjectPath // devices that changed, once each
	err     error
}

// known adds the objects that BlueZ listed. Changes are newer and take precedence.
func (s *scan) known(all objects) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, o := range all {
		if p, ok := o[adapterInterface]; ok {
			if _, newer := s.powered[path]; !newer {
				s.powered[path] = value[bool](p, "Powered")
			}
		}
		if p, ok := o[deviceInterface]; ok {
			values := maps.Clone(p)
			maps.Copy(values, s.devices[path])
			s.update(change{path: path, values: values})
		}
	}
}

func (s *scan) changed(c change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.iface == adapterInterface:
		on, known := c.values["Powered"].Value().(bool)
		if !known && !c.removed {
			return
		}
		if !on && s.powered[c.path] && !slices.Contains(s.off, c.path) {
			s.off = append(s.off, c.path)
		}
		s.powered[c.path] = on
		s.news.set()
	case c.iface != deviceInterface:
	case c.removed:
		delete(s.devices, c.path)
	default:
		s.update(c)
	}
}

// takeAdapters returns the adapters that are on, and the adapters that were switched off since the last call. An
// adapter may be in both lists.
func (s *scan) takeAdapters() (on, off []dbus.ObjectPath) {
	s.mu.Lock()
	defer s.mu.Unlock()
	off, s.off = s.off, nil
	return s.on(), off
}

// on returns the adapters that are on, ordered by name. The caller must hold mu.
func (s *scan) on() (list []dbus.ObjectPath) {
	for adapter, powered := range s.powered {
		if powered {
			list = append(list, adapter)
		}
	}
	slices.Sort(list)
	return list
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
		case "Address", "Name", "RSSI", "Connected", "Paired", "UUIDs": // keep only used properties of unknown devices
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
	s.fail(failure(problem.CodeNoBluetooth, reason, nil))
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
	on := s.on()
	for _, path := range s.fresh {
		p, ok := s.devices[path]
		if !ok || !slices.Contains(on, adapterOf(path)) {
			continue
		}
		rssi, inRange := p["RSSI"].Value().(int16)
		d := sighting{path: path, paired: value[bool](p, "Paired"), adapters: len(on), Found: Found{
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

package bluez

import (
	"context"
	"strings"

	"github.com/godbus/dbus/v5"
)

// change is a change of one object of BlueZ.
type change struct {
	path    dbus.ObjectPath
	iface   string
	values  properties
	invalid []string // properties that no longer have a value
	removed bool     // the object lost the interface
	reason  string   // reason of a disconnection, received just before Connected changes; older versions do not report it
}

// became reports whether a property changed to want.
func (c change) became(property string, want bool) bool {
	got, ok := c.values[property].Value().(bool)
	return ok && got == want
}

// watch receives the changes of an object and of all objects below it, in order. Its functions are called by the
// goroutine that reads from the bus, while the radio is locked, so they must neither block nor call the radio.
type watch struct {
	path    dbus.ObjectPath
	changed func(change)
	gone    func(reason string) // called when BlueZ or the bus has ended
	conn    *Conn               // the connection that the watch belongs to, or nil

	rules [][]dbus.MatchOption // guarded by the radio
}

func (w *watch) covers(path dbus.ObjectPath) bool {
	return path == w.path || strings.HasPrefix(string(path), string(w.path)+"/")
}

// watch starts a watch, which is in effect before the next call is answered. The rules restrict the signals that the
// bus sends to the watched objects, because other programs use BlueZ as well.
func (r *Radio) watch(ctx context.Context, w *watch, rules ...[]dbus.MatchOption) error {
	r.mu.Lock()
	r.watches[w] = struct{}{}
	r.mu.Unlock()
	return r.listen(ctx, w, rules...)
}

// listen adds rules to a watch.
func (r *Radio) listen(ctx context.Context, w *watch, rules ...[]dbus.MatchOption) error {
	for _, rule := range rules {
		rule = append(rule, dbus.WithMatchSender(service))
		if err := r.bus.AddMatchSignalContext(ctx, rule...); err != nil {
			return r.failure(err, "watch for Bluetooth events")
		}
		r.mu.Lock()
		w.rules = append(w.rules, rule)
		r.mu.Unlock()
	}
	return nil
}

// unwatch ends a watch. Its functions are not called afterwards.
func (r *Radio) unwatch(ctx context.Context, w *watch) {
	r.mu.Lock()
	delete(r.watches, w)
	rules := w.rules
	w.rules = nil
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	for _, rule := range rules {
		_ = r.bus.RemoveMatchSignalContext(ctx, rule...) // fails only if the bus has ended
	}
}

// changesOf returns the rule for PropertiesChanged of one object. The functions below return rules for all objects
// below a path, for the reasons of disconnections, and for added and removed objects.
func changesOf(path dbus.ObjectPath) []dbus.MatchOption {
	return []dbus.MatchOption{dbus.WithMatchInterface(propertiesInterface), dbus.WithMatchObjectPath(path)}
}

func changesBelow(path dbus.ObjectPath) []dbus.MatchOption {
	return []dbus.MatchOption{dbus.WithMatchInterface(propertiesInterface), dbus.WithMatchPathNamespace(path)}
}

func reasonsOf(path dbus.ObjectPath) []dbus.MatchOption {
	return []dbus.MatchOption{dbus.WithMatchInterface(deviceInterface), dbus.WithMatchObjectPath(path)}
}

func existenceOf(path dbus.ObjectPath) []dbus.MatchOption {
	return []dbus.MatchOption{dbus.WithMatchInterface(managerInterface), dbus.WithMatchArgPath(0, string(path))}
}

// DeliverSignal implements dbus.SignalHandler. The handlers of godbus would reorder signals or wait without a limit.
func (r *Radio) DeliverSignal(_, _ string, s *dbus.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.Sender == "org.freedesktop.DBus" {
		var name, from, to string
		if s.Name == "org.freedesktop.DBus.NameOwnerChanged" && dbus.Store(s.Body, &name, &from, &to) == nil &&
			name == service {
			r.owner = to
			if from != "" {
				r.end("the system's Bluetooth service has stopped")
			}
		}
		return
	}
	if s.Sender != r.owner {
		return // any program can send signals to this one
	}
	for _, c := range parse(s) {
		for w := range r.watches {
			if w.covers(c.path) {
				w.changed(c)
			}
		}
	}
}

// Terminate implements dbus.Terminator.
func (r *Radio) Terminate() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end("the connection to the system's D-Bus has ended")
}

// end notifies all watches that no further changes follow. The caller must hold the radio's lock.
func (r *Radio) end(reason string) {
	for w := range r.watches {
		w.gone(reason)
	}
}

// parse returns the changes in a signal, or none for an unknown signal.
func parse(s *dbus.Signal) []change {
	switch s.Name {
	case propertiesInterface + ".PropertiesChanged":
		c := change{path: s.Path}
		if dbus.Store(s.Body, &c.iface, &c.values, &c.invalid) == nil {
			return []change{c}
		}
	case deviceInterface + ".Disconnected":
		c := change{path: s.Path, iface: deviceInterface}
		var message string
		if dbus.Store(s.Body, &c.reason, &message) == nil {
			return []change{c}
		}
	case managerInterface + ".InterfacesAdded":
		var added map[string]properties
		if path, ok := first(s, &added); ok {
			return each(path, added, false)
		}
	case managerInterface + ".InterfacesRemoved":
		var names []string
		if path, ok := first(s, &names); ok {
			removed := map[string]properties{}
			for _, iface := range names {
				removed[iface] = nil
			}
			return each(path, removed, true)
		}
	}
	return nil
}

// first parses a signal that consists of a path and one other value.
func first(s *dbus.Signal, other any) (path dbus.ObjectPath, ok bool) {
	ok = dbus.Store(s.Body, &path, other) == nil
	return path, ok
}

// each returns a change for each interface of an object.
func each(path dbus.ObjectPath, interfaces map[string]properties, removed bool) (all []change) {
	for iface, values := range interfaces {
		all = append(all, change{path: path, iface: iface, values: values, removed: removed})
	}
	return all
}

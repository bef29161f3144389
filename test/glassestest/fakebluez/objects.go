package fakebluez

import (
	"maps"
	"slices"

	"github.com/godbus/dbus/v5"
)

const (
	adapterInterface        = "org.bluez.Adapter1"
	deviceInterface         = "org.bluez.Device1"
	serviceInterface        = "org.bluez.GattService1"
	characteristicInterface = "org.bluez.GattCharacteristic1"
	descriptorInterface     = "org.bluez.GattDescriptor1"
)

type (
	properties = map[string]dbus.Variant
	object     = map[string]properties // by interface
)

// props returns properties from alternating names and values.
func props(pairs ...any) properties {
	p := properties{}
	for i := 0; i < len(pairs); i += 2 {
		p[pairs[i].(string)] = dbus.MakeVariant(pairs[i+1])
	}
	return p
}

// objects returns all objects of the service.
func (r *Radio) objects() map[dbus.ObjectPath]object {
	all := map[dbus.ObjectPath]object{"/org/bluez": {"org.bluez.AgentManager1": {}}}
	for _, a := range r.adapters {
		if !a.absent {
			all[a.path] = a.object()
		}
	}
	for d := range r.devices() {
		if d.known {
			all[d.path] = d.object()
			maps.Copy(all, d.tree)
		}
	}
	return all
}

// properties answers a call of org.freedesktop.DBus.Properties.
func (r *Radio) properties(c *call) {
	var iface, name string
	all, ok := r.objects()[c.path]
	if !ok || len(c.args) == 0 {
		c.unknown()
		return
	}
	iface, _ = c.args[0].(string)
	if len(c.args) > 1 {
		name, _ = c.args[1].(string)
	}
	p, ok := all[iface]
	v, has := p[name]
	switch {
	case !ok:
		c.failAs("org.freedesktop.DBus.Error.InvalidArgs", "No such interface "+iface)
	case c.member == "GetAll":
		c.reply(p)
	case c.member == "Get" && has:
		c.reply(v)
	case c.member == "Set" && iface == adapterInterface && name == "Powered" && len(c.args) == 3:
		r.calls["Set Powered"]++
		v, _ := c.args[2].(dbus.Variant)
		on, _ := v.Value().(bool)
		for _, a := range r.adapters {
			if a.path == c.path {
				a.power(on)
			}
		}
		c.reply()
	case c.member == "Set" && iface == deviceInterface && name == "Trusted" && len(c.args) == 3:
		for d := range r.devices() {
			if d.known && d.path == c.path {
				d.trusted = true // clients only ever set it to true
				r.changed(d.path, deviceInterface, props("Trusted", true))
			}
		}
		c.reply()
	case c.member == "Set":
		r.calls["Set "+name]++
		c.failAs("org.freedesktop.DBus.Error.PropertyReadOnly", "Property "+name+" is not writable")
	default:
		c.failAs("org.freedesktop.DBus.Error.InvalidArgs", "No such property "+name)
	}
}

// emit sends a signal while org.bluez is on the bus.
func (r *Radio) emit(path dbus.ObjectPath, name string, values ...any) {
	if r.conn != nil {
		_ = r.conn.Emit(path, name, values...) // fails only if the bus has stopped, which the loop detects
	}
}

// changed sends the new values of properties, and the names of properties that no longer have a value.
func (r *Radio) changed(path dbus.ObjectPath, iface string, p properties, invalidated ...string) {
	if invalidated == nil {
		invalidated = []string{}
	}
	r.emit(path, "org.freedesktop.DBus.Properties.PropertiesChanged", iface, p, invalidated)
}

func (r *Radio) added(path dbus.ObjectPath, o object) {
	r.emit("/", "org.freedesktop.DBus.ObjectManager.InterfacesAdded", path, o)
}

func (r *Radio) removed(path dbus.ObjectPath, interfaces ...string) {
	r.emit("/", "org.freedesktop.DBus.ObjectManager.InterfacesRemoved", path, interfaces)
}

// sorted returns the paths of an object tree, parents first.
func sorted(tree map[dbus.ObjectPath]object) []dbus.ObjectPath { return slices.Sorted(maps.Keys(tree)) }

package fakebluez

import (
	"errors"
	"fmt"
	"slices"

	"github.com/godbus/dbus/v5"

	"github.com/service-dev/service/test/glassestest/peripheral"
)

// maxValue is the maximum length of a value, as in the ATT protocol.
const maxValue = 512

// clientConfiguration is the descriptor that switches notifications.
const clientConfiguration = "00002902-0000-1000-8000-00805f9b34fb"

// characteristic is a GATT characteristic and the clients that subscribed to it.
type characteristic struct {
	path    dbus.ObjectPath
	uuid    string
	flags   []string
	clients []string
}

// services returns the services that a discovery finds.
func (d *device) services() []peripheral.Service {
	if d.faults.StaleServices && !d.refreshed {
		return []peripheral.Service{{UUID: "00001800-0000-1000-8000-00805f9b34fb"}}
	}
	return d.p.Services()
}

// resolve publishes the services of a connected device.
func (d *device) resolve() {
	d.removeTree()
	d.tree, d.characteristics = map[dbus.ObjectPath]object{}, map[dbus.ObjectPath]*characteristic{}
	handle := 1
	child := func(parent dbus.ObjectPath, kind string) dbus.ObjectPath {
		path := parent + dbus.ObjectPath(fmt.Sprintf("/%s%04x", kind, handle))
		handle++
		return path
	}
	for _, s := range d.services() {
		service := child(d.path, "service")
		d.tree[service] = object{serviceInterface: props("UUID", s.UUID, "Device", d.path, "Primary", true,
			"Includes", []dbus.ObjectPath{})}
		for _, c := range s.Characteristics {
			ch := &characteristic{path: child(service, "char"), uuid: c.UUID, flags: c.Flags}
			handle++ // the handle of the value
			d.characteristics[ch.path] = ch
			p := props("UUID", c.UUID, "Service", service, "Value", []byte{}, "Flags", c.Flags)
			if !d.r.opts.WithoutMTU {
				p["MTU"] = dbus.MakeVariant(uint16(d.r.opts.MTU))
			}
			if slices.Contains(c.Flags, "notify") {
				p["Notifying"] = dbus.MakeVariant(false)
				d.tree[child(ch.path, "desc")] = object{descriptorInterface: props("UUID", clientConfiguration,
					"Characteristic", ch.path, "Value", []byte{})}
			}
			d.tree[ch.path] = object{characteristicInterface: p}
		}
	}
	for _, path := range sorted(d.tree) {
		d.r.added(path, d.tree[path])
	}
	d.resolved = true
	d.r.changed(d.path, deviceInterface, props("UUIDs", d.uuids(), "ServicesResolved", true))
}

// removeTree removes the services, and answers the writes that waited for that.
func (d *device) removeTree() {
	paths := sorted(d.tree)
	slices.Reverse(paths)
	for _, path := range paths {
		for iface := range d.tree[path] {
			d.r.removed(path, "org.freedesktop.DBus.Properties", iface)
		}
	}
	d.tree, d.characteristics = nil, nil
	for _, c := range d.writes {
		c.notConnected()
	}
	d.writes = nil
}

// handleCharacteristic answers a call of org.bluez.GattCharacteristic1.
func (d *device) handleCharacteristic(c *call, ch *characteristic) {
	if !d.connected {
		c.notConnected()
		return
	}
	switch c.member {
	case "WriteValue":
		d.write(c, ch)
	case "ReadValue":
		value, err := d.p.Read(d.r.now(), ch.uuid)
		if err != nil {
			c.gattError(err)
			return
		}
		c.reply(value)
		d.value(ch, value)
	case "StartNotify":
		d.subscribe(c, ch)
	case "StopNotify":
		if !slices.Contains(ch.clients, c.client) {
			c.fail("Failed", "No notify session started")
			return
		}
		d.unsubscribe(ch, c.client)
		c.reply()
	default:
		c.unknown()
	}
}

func (d *device) write(c *call, ch *characteristic) {
	value, ok := c.args[0].([]byte)
	options, _ := c.args[len(c.args)-1].(properties)
	kind, _ := options["type"].Value().(string)
	if kind == "" && slices.Contains(ch.flags, "write") {
		kind = "request"
	}
	d.r.calls["WriteValue "+kind]++
	switch {
	case !ok || len(value) > maxValue:
		c.fail("InvalidArguments", "Invalid arguments in method call")
	case d.faults.HangWrites:
		d.writes = append(d.writes, c)
	case d.faults.BusyWrites != 0:
		d.faults.BusyWrites--
		c.inProgress()
	case kind == "request":
		if err := d.p.Write(d.r.now(), ch.uuid, value, true); err != nil {
			c.gattError(err)
			return
		}
		c.reply()
	default: // a command: its outcome is not known
		_ = d.p.Write(d.r.now(), ch.uuid, value, false)
		c.reply()
	}
}

func (d *device) subscribe(c *call, ch *characteristic) {
	if !slices.Contains(ch.flags, "notify") {
		c.fail("NotSupported", "Operation is not supported")
		return
	}
	if len(ch.clients) == 0 {
		err := d.p.Subscribe(d.r.now(), ch.uuid, true)
		if errors.Is(err, peripheral.ErrAuthentication) && d.r.opts.PairOnDemand && d.p.Pair(d.r.now()) == nil {
			d.bonded()
			err = d.p.Subscribe(d.r.now(), ch.uuid, true)
		}
		if err != nil {
			c.gattError(err)
			return
		}
		d.notifying(ch, true)
	}
	if !slices.Contains(ch.clients, c.client) {
		ch.clients = append(ch.clients, c.client)
	}
	c.reply()
}

func (d *device) unsubscribe(ch *characteristic, client string) {
	i := slices.Index(ch.clients, client)
	if i < 0 {
		return
	}
	if ch.clients = slices.Delete(ch.clients, i, i+1); len(ch.clients) == 0 && d.connected {
		_ = d.p.Subscribe(d.r.now(), ch.uuid, false) // cannot fail, because subscribing succeeded
		d.notifying(ch, false)
	}
}

func (d *device) notifying(ch *characteristic, on bool) {
	d.tree[ch.path][characteristicInterface]["Notifying"] = dbus.MakeVariant(on)
	d.r.changed(ch.path, characteristicInterface, props("Notifying", on))
}

func (d *device) value(ch *characteristic, value []byte) {
	d.tree[ch.path][characteristicInterface]["Value"] = dbus.MakeVariant(value)
	d.r.changed(ch.path, characteristicInterface, props("Value", value))
}

// pump forwards the output of the peripheral.
func (d *device) pump() {
	for _, out := range d.p.Take() {
		switch {
		case out.Dropped:
			d.disconnected(byRemote)
		case d.connected:
			d.disturb(out)
		}
	}
}

// disturb sends a notification with the faults of a disturbed radio.
func (d *device) disturb(out peripheral.Out) {
	d.notified++
	each := func(n int) bool { return n > 0 && d.notified%n == 0 }
	if each(d.faults.LoseEach) {
		return
	}
	if d.held == nil && each(d.faults.SwapEach) {
		d.held = &out
		return
	}
	d.notify(out)
	if each(d.faults.RepeatEach) {
		d.notify(out)
	}
	if held := d.held; held != nil {
		d.held = nil
		d.notify(*held)
	}
}

func (d *device) notify(out peripheral.Out) {
	for _, ch := range d.characteristics {
		if ch.uuid == out.Characteristic && len(ch.clients) > 0 {
			d.value(ch, out.Value)
		}
	}
}

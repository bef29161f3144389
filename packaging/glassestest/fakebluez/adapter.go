package fakebluez

import (
	"maps"
	"slices"

	"github.com/godbus/dbus/v5"
)

// Times in ms of a discovery. Real devices advertise each 20 ms to 10 s.
const (
	firstAdvertisement = 20
	advertisementEach  = 100
)

// filter is what a client asked SetDiscoveryFilter for.
type filter struct {
	active bool // the client has started a discovery
	uuids  []string
}

func (r *Radio) adapterObject() object {
	return object{
		"org.freedesktop.DBus.Properties": {},
		adapterInterface: props("Address", "00:1A:7D:DA:71:13", "AddressType", "public", "Name", "emulated",
			"Alias", "emulated", "Class", uint32(0), "Powered", r.powered, "Discoverable", false,
			"DiscoverableTimeout", uint32(180), "Pairable", true, "PairableTimeout", uint32(0), "Discovering", r.discovering(),
			"UUIDs", []string{"00001800-0000-1000-8000-00805f9b34fb", "00001801-0000-1000-8000-00805f9b34fb"},
			"Modalias", "usb:v1D6Bp0246d0542", "Roles", []string{"central", "peripheral"}),
	}
}

// manager answers a call of org.bluez.AgentManager1.
func (r *Radio) manager(c *call) {
	switch c.member {
	case "RegisterAgent":
		path, _ := c.args[0].(dbus.ObjectPath)
		if _, ok := r.agents[c.client]; ok {
			c.fail("AlreadyExists", "Already Exists")
			return
		}
		r.agents[c.client] = path
		c.reply()
	case "UnregisterAgent":
		if _, ok := r.agents[c.client]; !ok {
			c.fail("DoesNotExist", "Does Not Exist")
			return
		}
		delete(r.agents, c.client)
		c.reply()
	case "RequestDefaultAgent":
		c.reply()
	default:
		c.unknown()
	}
}

// adapter answers a call of org.bluez.Adapter1.
func (r *Radio) adapter(c *call) {
	switch c.member {
	case "SetDiscoveryFilter":
		options, _ := c.args[0].(properties)
		f := r.scans[c.client]
		f.uuids, _ = options["UUIDs"].Value().([]string)
		r.scans[c.client] = f
		c.reply()
	case "GetDiscoveryFilters":
		c.reply([]string{"UUIDs", "RSSI", "Pathloss", "Transport", "DuplicateData", "Discoverable", "Pattern"})
	case "StartDiscovery":
		r.startScan(c)
	case "StopDiscovery":
		switch {
		case !r.powered:
			c.notReady()
		case !r.scans[c.client].active:
			c.fail("Failed", "No discovery started")
		default:
			r.stopScan(c.client)
			c.reply()
		}
	case "RemoveDevice":
		path, _ := c.args[0].(dbus.ObjectPath)
		for _, d := range r.devices {
			if d.known && d.path == path {
				d.remove()
				c.reply()
				return
			}
		}
		c.fail("DoesNotExist", "Does Not Exist")
	default:
		c.unknown()
	}
}

func (c *call) notReady() { c.fail("NotReady", "Resource Not Ready") }

func (c *call) inProgress() { c.fail("InProgress", "Operation already in progress") }

func (r *Radio) discovering() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(r.scans)), func(f filter) bool { return f.active })
}

func (r *Radio) startScan(c *call) {
	f := r.scans[c.client]
	switch {
	case !r.powered:
		c.notReady()
		return
	case f.active:
		c.inProgress()
		return
	}
	first := !r.discovering()
	f.active = true
	r.scans[c.client] = f
	c.reply()
	if first {
		r.changed(Adapter, adapterInterface, props("Discovering", true))
	}
	if !r.advertising {
		r.advertising = true
		r.after(firstAdvertisement, r.advertise)
	}
}

// advertise lets clients that scan see the devices in range, again and again.
func (r *Radio) advertise() {
	r.advertising = r.discovering()
	if !r.advertising {
		return
	}
	for _, d := range r.devices {
		if adv, ok := d.advertisement(); ok && r.wanted(adv.Services) {
			d.seen(adv)
		}
	}
	r.after(advertisementEach, r.advertise)
}

// wanted reports whether a client scans for a device with these services.
func (r *Radio) wanted(services []string) bool {
	for _, f := range r.scans {
		if f.active && (len(f.uuids) == 0 ||
			slices.ContainsFunc(f.uuids, func(u string) bool { return slices.Contains(services, u) })) {
			return true
		}
	}
	return false
}

// stopScan ends a client's discovery. When the last one ends, devices have no signal strength any more.
func (r *Radio) stopScan(client string) {
	was := r.scans[client].active
	delete(r.scans, client)
	if !was || r.discovering() {
		return
	}
	for _, d := range r.devices {
		d.unseen()
	}
	r.changed(Adapter, adapterInterface, props("Discovering", false))
}

// power switches the adapter on or off.
func (r *Radio) power(on bool) {
	if r.powered == on {
		return
	}
	if !on {
		for _, d := range r.devices {
			d.cancel()
			d.p.Disconnect(r.now())
			d.disconnected(byLocal)
		}
		for client := range r.scans {
			r.stopScan(client)
		}
	}
	r.powered = on
	r.changed(Adapter, adapterInterface, props("Powered", on))
}

// forgetAll ends all connections and discoveries without a word of each, as a crash does.
func (r *Radio) forgetAll() {
	clear(r.scans)
	for _, d := range r.devices {
		d.p.Disconnect(r.now())
		d.p.Take()
		d.reset()
	}
}

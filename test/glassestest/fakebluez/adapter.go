package fakebluez

import (
	"fmt"
	"maps"
	"slices"

	"github.com/godbus/dbus/v5"
)

// Times of a discovery in ms. Real devices advertise every 20 ms to 10 s.
const (
	firstAdvertisement = 20
	advertisementEach  = 100
)

// filter is a client's filter from SetDiscoveryFilter.
type filter struct {
	active bool // the client has started a discovery
	uuids  []string
}

// adapter is one adapter and its state of the devices in its range.
type adapter struct {
	r       *Radio
	path    dbus.ObjectPath
	address string
	gain    int
	powered bool
	absent  bool
	devices []*device
	// advertising is set while a step in which devices advertise is scheduled.
	advertising bool
	scans       map[string]filter // by the unique name of the client
}

func newAdapter(r *Radio, n int, o AdapterOptions) *adapter {
	a := &adapter{
		r: r, path: dbus.ObjectPath(fmt.Sprintf("/org/bluez/hci%d", n)), address: fmt.Sprintf("00:1A:7D:DA:71:%02X", 0x13+n),
		gain: o.Gain, powered: !o.PoweredOff, absent: o.Missing,
	}
	for _, p := range o.Peripherals {
		a.devices = append(a.devices, &device{r: r, a: a, p: p})
	}
	return a
}

// plug plugs the adapter in or out.
func (a *adapter) plug(present bool) {
	if a.absent != present {
		return
	}
	if a.absent = !present; present {
		a.r.added(a.path, a.object())
		return
	}
	for _, d := range a.devices {
		d.remove()
	}
	clear(a.scans)
	a.r.removed(a.path, adapterInterface)
}

func (a *adapter) object() object {
	return object{
		"org.freedesktop.DBus.Properties": {},
		adapterInterface: props("Address", a.address, "AddressType", "public", "Name", "emulated",
			"Alias", "emulated", "Class", uint32(0), "Powered", a.powered, "Discoverable", false,
			"DiscoverableTimeout", uint32(180), "Pairable", true, "PairableTimeout", uint32(0), "Discovering", a.discovering(),
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

// handle answers a call of org.bluez.Adapter1.
func (a *adapter) handle(c *call) {
	switch c.member {
	case "SetDiscoveryFilter":
		options, _ := c.args[0].(properties)
		f := a.scans[c.client]
		f.uuids, _ = options["UUIDs"].Value().([]string)
		a.scans[c.client] = f
		c.reply()
	case "GetDiscoveryFilters":
		c.reply([]string{"UUIDs", "RSSI", "Pathloss", "Transport", "DuplicateData", "Discoverable", "Pattern"})
	case "StartDiscovery":
		a.startScan(c)
	case "StopDiscovery":
		switch {
		case !a.powered:
			c.notReady()
		case !a.scans[c.client].active:
			c.fail("Failed", "No discovery started")
		default:
			a.stopScan(c.client)
			c.reply()
		}
	case "RemoveDevice":
		path, _ := c.args[0].(dbus.ObjectPath)
		for _, d := range a.devices {
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

func (c *call) notConnected() { c.fail("Failed", "Not connected") }

func (c *call) inProgress() { c.fail("InProgress", "Operation already in progress") }

func (a *adapter) discovering() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(a.scans)), func(f filter) bool { return f.active })
}

func (a *adapter) startScan(c *call) {
	f := a.scans[c.client]
	switch {
	case !a.powered:
		c.notReady()
		return
	case f.active:
		c.inProgress()
		return
	}
	first := !a.discovering()
	f.active = true
	a.scans[c.client] = f
	c.reply()
	if first {
		a.r.changed(a.path, adapterInterface, props("Discovering", true))
	}
	if !a.advertising {
		a.advertising = true
		a.r.after(firstAdvertisement, a.advertise)
	}
}

// advertise repeatedly reports the devices in range to the clients that scan.
func (a *adapter) advertise() {
	a.advertising = a.discovering()
	if !a.advertising {
		return
	}
	for _, d := range a.devices {
		if adv, ok := d.advertisement(); ok && a.wanted(adv.Services) {
			d.seen(adv)
		}
	}
	a.r.after(advertisementEach, a.advertise)
}

// wanted reports whether a client is scanning for a device with these services.
func (a *adapter) wanted(services []string) bool {
	for _, f := range a.scans {
		if f.active && (len(f.uuids) == 0 ||
			slices.ContainsFunc(f.uuids, func(u string) bool { return slices.Contains(services, u) })) {
			return true
		}
	}
	return false
}

// stopScan ends a client's discovery. When the last one ends, devices no longer have a signal strength.
func (a *adapter) stopScan(client string) {
	was := a.scans[client].active
	delete(a.scans, client)
	if !was || a.discovering() {
		return
	}
	for _, d := range a.devices {
		d.unseen()
	}
	a.r.changed(a.path, adapterInterface, props("Discovering", false))
}

// power switches the adapter on or off.
func (a *adapter) power(on bool) {
	if a.powered == on {
		return
	}
	if !on {
		for _, d := range a.devices {
			d.cancel()
			d.disconnect(byLocal)
		}
		for client := range a.scans {
			a.stopScan(client)
		}
	}
	a.powered = on
	a.r.changed(a.path, adapterInterface, props("Powered", on))
}

// forgetAll ends all connections and discoveries without signals, as a crash does.
func (r *Radio) forgetAll() {
	for _, a := range r.adapters {
		clear(a.scans)
	}
	for d := range r.devices() {
		d.p.Disconnect(r.now())
		d.p.Take()
		d.reset()
	}
}

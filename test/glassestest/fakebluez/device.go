package fakebluez

import (
	"errors"
	"slices"
	"strings"

	"github.com/godbus/dbus/v5"

	"github.com/service-dev/service/test/glassestest/peripheral"
)

// Times in ms.
const (
	resolveAfter = 20     // from a connection until its services are resolved
	connectLimit = 25_000 // for a device that does not answer
	// From the end of a connection until its services are removed. By then, clients have got the errors of their last
	// writes: if the services disappear first, Chromium stops answering the page.
	removeAfter = 1_000
)

// device is a peripheral and the adapter's state of it.
type device struct {
	r      *Radio
	a      *adapter
	p      peripheral.Peripheral
	faults Faults
	rename string // replaces the name unless empty

	known     bool // whether the device has an object
	path      dbus.ObjectPath
	adv       peripheral.Advertisement // the latest advertisement
	rssi      bool                     // whether it was seen during the current discovery
	paired    bool
	trusted   bool
	refreshed bool // whether RemoveDevice was called, which ends StaleServices

	connecting      *call // an unanswered Connect
	connected       bool
	resolved        bool
	connection      int // counts connections, so that steps of an earlier connection do not run
	tree            map[dbus.ObjectPath]object
	characteristics map[dbus.ObjectPath]*characteristic
	notified        int // counts notifications
	held            *peripheral.Out
	writes          []*call // not answered yet
}

func (d *device) advertisement() (peripheral.Advertisement, bool) {
	adv, ok := d.p.Advertisement()
	if d.rename != "" {
		adv.Name = d.rename
	}
	adv.RSSI += d.a.gain
	return adv, ok
}

// seen makes a device known, or reports its changes.
func (d *device) seen(adv peripheral.Advertisement) {
	renamed := d.adv.Name != adv.Name
	d.adv, d.rssi = adv, true
	if !d.known {
		d.known = true
		d.path = d.a.path + dbus.ObjectPath("/dev_"+strings.ReplaceAll(adv.Address, ":", "_"))
		d.r.added(d.path, d.object())
		return
	}
	p := props("RSSI", int16(adv.RSSI))
	if renamed {
		p["Name"], p["Alias"] = dbus.MakeVariant(adv.Name), dbus.MakeVariant(adv.Name)
	}
	d.r.changed(d.path, deviceInterface, p)
}

// unseen removes the signal strength and, later, the device.
func (d *device) unseen() {
	if !d.rssi {
		return
	}
	d.rssi = false
	d.r.changed(d.path, deviceInterface, properties{}, "RSSI")
	d.r.after(d.r.opts.Forget.Milliseconds(), func() {
		if d.known && !d.rssi && !d.connected && !d.paired && d.connecting == nil {
			d.remove()
		}
	})
}

func (d *device) object() object {
	p := props("Address", d.adv.Address, "AddressType", "random", "Name", d.adv.Name, "Alias", d.adv.Name,
		"Paired", d.paired, "Bonded", d.paired, "Trusted", d.trusted, "Blocked", false, "LegacyPairing", false,
		"Connected", d.connected, "ServicesResolved", d.resolved, "UUIDs", d.uuids(), "Adapter", d.a.path)
	if d.rssi {
		p["RSSI"] = dbus.MakeVariant(int16(d.adv.RSSI))
	}
	return object{"org.freedesktop.DBus.Properties": {}, deviceInterface: p}
}

func (d *device) uuids() []string {
	list := append([]string{}, d.adv.Services...)
	if d.resolved {
		list = list[:0]
		for _, s := range d.services() {
			list = append(list, s.UUID)
		}
	}
	return list
}

// handle answers a call of org.bluez.Device1.
func (d *device) handle(c *call) {
	switch c.member {
	case "Connect":
		d.connect(c)
	case "Disconnect":
		d.cancel()
		c.reply() // before the signals, as BlueZ does
		d.disconnect(byLocal)
	case "Pair":
		d.pair(c)
	case "CancelPairing":
		c.fail("DoesNotExist", "Does Not Exist")
	default:
		c.unknown()
	}
}

func (d *device) connect(c *call) {
	switch {
	case !d.a.powered:
		c.notReady()
	case d.connected:
		c.reply()
	case d.connecting != nil:
		c.inProgress()
	case d.faults.AbortConnects != 0:
		d.faults.AbortConnects--
		// The controller did connect, so clients see the connection begin and end.
		d.r.changed(d.path, deviceInterface, props("Connected", true))
		c.fail("Failed", abortByLocal)
		d.r.changed(d.path, deviceInterface, props("Connected", false))
	default:
		d.connecting = c
		d.r.after(connectLimit, func() {
			if d.connecting == c {
				d.cancel()
			}
		})
		d.attempt(c)
	}
}

const abortByLocal = "le-connection-abort-by-local"

// cancel ends an unanswered Connect.
func (d *device) cancel() {
	if d.connecting != nil {
		d.connecting.fail("Failed", abortByLocal)
		d.connecting = nil
	}
}

// attempt connects as soon as the device advertises.
func (d *device) attempt(c *call) {
	if d.connecting != c || d.faults.HangConnect {
		return
	}
	if _, ok := d.p.Advertisement(); !ok {
		d.r.after(advertisementEach, func() { d.attempt(c) })
		return
	}
	if err := d.p.Connect(d.r.now(), d.r.opts.MTU); err != nil {
		d.cancel()
		return
	}
	d.connecting = nil
	d.connected = true
	d.connection++
	connection := d.connection
	d.r.changed(d.path, deviceInterface, props("Connected", true))
	c.reply()
	if d.faults.NeverResolve {
		return
	}
	d.r.after(resolveAfter, func() {
		if d.connected && d.connection == connection {
			d.resolve()
		}
	})
}

// Reasons for the end of a connection in the signal Disconnected, which newer versions of BlueZ send.
const (
	byTimeout = "Timeout"
	byLocal   = "Local"
	byRemote  = "Remote"
)

// disconnect ends the connection of this adapter, if there is one.
func (d *device) disconnect(reason string) {
	if d.connected {
		d.p.Disconnect(d.r.now())
		d.disconnected(reason)
	}
}

// isConnectedElsewhere reports whether another adapter is connected to the peripheral.
func (d *device) isConnectedElsewhere() bool {
	return slices.ContainsFunc(d.r.devicesOf(d.p), func(o *device) bool { return o != d && o.connected })
}

// disconnected reports the end of a connection.
func (d *device) disconnected(reason string) {
	if !d.connected {
		return
	}
	d.connected = false
	if d.resolved {
		d.resolved = false
		d.r.changed(d.path, deviceInterface, props("ServicesResolved", false))
	}
	d.held = nil
	connection := d.connection
	d.r.after(removeAfter, func() {
		if d.connection == connection {
			d.removeTree()
		}
	})
	if d.r.opts.WithReasons {
		d.r.emit(d.path, deviceInterface+".Disconnected", "org.bluez.Reason."+reason, "Connection ended")
	}
	d.r.changed(d.path, deviceInterface, props("Connected", false))
}

// remove removes a device and its bond.
func (d *device) remove() {
	d.cancel()
	d.disconnect(byLocal)
	d.removeTree()
	if d.known {
		d.r.removed(d.path, "org.freedesktop.DBus.Properties", deviceInterface)
	}
	d.reset()
	d.refreshed = true
}

// reset clears the adapter's state of a device.
func (d *device) reset() {
	d.known, d.rssi, d.paired, d.trusted, d.connected, d.resolved = false, false, false, false, false, false
	d.connecting, d.tree, d.characteristics, d.held, d.writes = nil, nil, nil, nil, nil
}

// pair answers Pair. If the client has an agent, it calls the agent first.
func (d *device) pair(c *call) {
	switch {
	case !d.a.powered:
		c.notReady()
		return
	case d.paired:
		c.fail("AlreadyExists", "Already Exists")
		return
	case !d.connected:
		c.fail("ConnectionAttemptFailed", "Page Timeout")
		return
	}
	agent, ok := d.r.agents[c.client]
	if !ok {
		d.bond(c, true)
		return
	}
	serial := d.r.askAgent(c.client, agent, "RequestAuthorization", d.path)
	d.r.replies[serial] = func(ok bool) { d.bond(c, ok) }
}

func (d *device) bond(c *call, allowed bool) {
	refused := !allowed || d.faults.RejectPairing || d.p.Pair(d.r.now()) != nil
	d.pump() // a device that is bound to another host may end the connection instead
	switch {
	case !allowed:
		c.fail("AuthenticationRejected", "Authentication Rejected")
	case !d.connected:
		c.fail("AuthenticationCanceled", "Authentication Canceled")
	case refused:
		c.fail("AuthenticationFailed", "Authentication Failed")
	default:
		d.bonded()
		c.reply()
	}
}

func (d *device) bonded() {
	d.paired = true
	d.r.changed(d.path, deviceInterface, props("Paired", true, "Bonded", true))
}

// askAgent calls a method of a client's agent and returns the serial of the call.
func (r *Radio) askAgent(client string, path dbus.ObjectPath, method string, args ...any) uint32 {
	msg := &dbus.Message{Type: dbus.TypeMethodCall, Body: args, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldDestination: dbus.MakeVariant(client), dbus.FieldPath: dbus.MakeVariant(path),
		dbus.FieldInterface: dbus.MakeVariant("org.bluez.Agent1"), dbus.FieldMember: dbus.MakeVariant(method),
		dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(args...)),
	}}
	r.conn.Send(msg, nil)
	return msg.Serial()
}

// gattError answers with the error that a peripheral returned.
func (c *call) gattError(err error) {
	switch {
	case errors.Is(err, peripheral.ErrAuthentication):
		c.fail("NotPermitted", "Not paired")
	case errors.Is(err, peripheral.ErrNotPermitted):
		c.fail("NotPermitted", c.member+" not permitted")
	case errors.Is(err, peripheral.ErrNotConnected):
		c.notConnected()
	case errors.Is(err, peripheral.ErrTooLong):
		c.fail("InvalidValueLength", "Invalid value length")
	default:
		c.fail("Failed", "Operation failed with ATT error: 0x0e")
	}
}

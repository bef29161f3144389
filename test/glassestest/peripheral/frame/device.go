package frame

import (
	"github.com/service-dev/service/test/glassestest/peripheral"
)

// First bytes of a write (firmware: bluetooth.c and luaport.c; halo: PROTOCOL.md 3.1.2).
const (
	byteData      = 0x01
	byteReboot    = 0x02
	byteBreak     = 0x03
	byteReset     = 0x04
	byteRemove    = 0x05
	byteExit      = 0x06
	byteRemoveAll = 0x07
)

// Next implements peripheral.Peripheral.
func (d *Device) Next() (int64, bool) {
	at, ok := d.Link.Next()
	if d.wake >= 0 && (!ok || d.wake < at) {
		return d.wake, true
	}
	return at, ok
}

// Tick implements peripheral.Peripheral.
func (d *Device) Tick(now int64) {
	for {
		at, ok := d.Next()
		if !ok || at > now {
			break
		}
		d.Link.Tick(at)
		if d.wake >= 0 && d.wake <= at {
			d.run("tick", "")
		}
	}
	d.Link.Tick(now)
}

// Connect implements peripheral.Peripheral.
func (d *Device) Connect(now int64, mtu int) error {
	d.Tick(now)
	if err := d.Link.Connect(now, min(mtu, d.MaxMTU())); err != nil {
		return err
	}
	open := d.Now() < d.windowEnds
	refused := d.options.Halo && (d.bonded && open || !d.bonded && d.bondedElse && !open)
	if refused {
		d.Drop(0) // halo: PAIRING.md 3.2
	}
	return nil
}

func (d *Device) up() { d.set("state.connected, state.payload = true, %d", d.Payload()) }

func (d *Device) down() {
	if d.lua != nil {
		d.set("state.connected = false")
	}
}

// Disconnect implements peripheral.Peripheral.
func (d *Device) Disconnect(now int64) {
	d.Tick(now)
	d.Link.Disconnect(now)
}

// Pair implements peripheral.Peripheral. A Frame has one bond: it disconnects another client that pairs. A Halo can
// store five bonds.
func (d *Device) Pair(now int64) error {
	d.Tick(now)
	switch {
	case !d.Connected():
		return peripheral.ErrNotConnected
	case d.bonded:
		return nil
	case d.bondedElse && !d.options.Halo:
		d.Drop(0)
		return peripheral.ErrPairing
	}
	d.bonded, d.windowEnds = true, 0
	return nil
}

// Forget removes the bond with the client.
func (d *Device) Forget() { d.bonded = false }

// Subscribe implements peripheral.Peripheral.
func (d *Device) Subscribe(now int64, characteristic string, on bool) error {
	d.Tick(now)
	if err := d.Check(characteristic, "notify"); err != nil {
		return err
	}
	if !d.bonded {
		return peripheral.ErrAuthentication
	}
	return d.Link.Subscribe(now, characteristic, on)
}

// Read implements peripheral.Peripheral.
func (d *Device) Read(now int64, characteristic string) ([]byte, error) {
	d.Tick(now)
	if err := d.Check(characteristic, "read"); err != nil {
		return nil, err
	}
	if characteristic == PowerUUID {
		return []byte{d.power()}, nil
	}
	return []byte{byte(d.battery)}, nil
}

// Write implements peripheral.Peripheral.
func (d *Device) Write(now int64, characteristic string, value []byte, withResponse bool) error {
	d.Tick(now)
	if err := d.CheckWrite(characteristic, withResponse); err != nil {
		return err
	}
	err := d.receive(characteristic, value)
	if withResponse {
		return err
	}
	return nil
}

func (d *Device) receive(characteristic string, value []byte) error {
	switch {
	case len(value) > d.Payload():
		d.Add(d.Now(), "%d bytes do not fit in an MTU of %d", len(value), d.Payload()+3)
		return peripheral.ErrTooLong
	case !d.bonded:
		return peripheral.ErrAuthentication
	}
	d.received++
	if d.options.Drop > 0 && d.random.Float64() < d.options.Drop {
		d.Drop(d.options.AwayMs)
		return nil
	}
	switch {
	case characteristic == UpdateUUID:
		d.AddGrave(d.Now(), "a write to the service that updates the firmware")
	case characteristic == AudioInUUID:
		// The speaker is not emulated.
	case len(value) == 0:
		d.Add(d.Now(), "empty write")
	default:
		return d.command(value)
	}
	return nil
}

func (d *Device) command(value []byte) error {
	halo := d.options.Halo
	switch value[0] {
	case byteData:
		if halo && d.queued+len(value) > dataQueue {
			return ErrResources
		}
		d.run("data", string(value[1:]))
	case byteBreak:
		d.run("break", "")
	case byteReset:
		if halo {
			d.run("reset", "")
			break
		}
		d.run("repl", string(value)) // like a line, it waits until no program runs
	case byteReboot, byteRemove, byteExit, byteRemoveAll:
		d.AddGrave(d.Now(), "%02X reboots a Halo, ends its Lua or removes its files", value[0])
	default:
		d.run("repl", string(value))
	}
	return nil
}

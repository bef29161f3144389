package bluez

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/service-dev/service/internal/problem"
)

// Conn is a connection to one service of a device. Close must be called even if the connection was lost.
type Conn struct {
	r             *Radio
	to            Target
	device        string // name of the device for messages
	path          dbus.ObjectPath
	adapter       dbus.ObjectPath
	write, notify dbus.ObjectPath
	watch         *watch
	reason        string // reported by BlueZ for the latest disconnection; guarded by the radio

	notifications chan []byte
	done          chan struct{}
	resolved      event // set once the services are found
	writing       lock

	mu      sync.Mutex
	up      bool // whether BlueZ has reported that the device is connected
	mtu     int
	dropped int
	err     error // set before done is closed
}

// Notifications returns the values that the device sends, in order. It is closed when the connection ends.
func (c *Conn) Notifications() <-chan []byte { return c.notifications }

// Done returns a channel that is closed when the connection has ended. Err then returns the reason.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns nil while the connection is open, then an Error with the code Lost, or ErrClosed.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// MTU returns the size of a packet. A value may be 3 bytes shorter, at most 512. MTU returns 23 if BlueZ does not
// report it.
func (c *Conn) MTU() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mtu
}

// Dropped returns the number of notifications that were dropped because they were not received in time.
func (c *Conn) Dropped() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dropped
}

func newConn(r *Radio, d sighting, to Target) *Conn {
	device, adapter := d.Address, adapterOf(d.path)
	if d.Name != "" {
		device = fmt.Sprintf("%q (%s)", d.Name, d.Address)
	}
	c := &Conn{
		r: r, to: to, device: device, path: d.path, adapter: adapter, mtu: minMTU,
		notifications: make(chan []byte, maxNotifications), done: make(chan struct{}),
		resolved: make(event, 1), writing: make(lock, 1),
	}
	// The adapter's changes cover the device and its characteristics.
	c.watch = &watch{path: adapter, changed: c.changed, conn: c, gone: c.lost}
	return c
}

// changed handles changes of the adapter and of all objects below it.
func (c *Conn) changed(n change) {
	switch {
	case n.path == c.adapter && n.iface == adapterInterface:
		switch {
		case n.removed:
			c.lost("the Bluetooth adapter " + nameOf(c.adapter) + " was removed")
		case n.became("Powered", false):
			c.lost("the Bluetooth adapter " + nameOf(c.adapter) + " was switched off")
		}
	case n.path == c.path && n.iface == deviceInterface:
		switch {
		case n.removed:
			c.lost("it was removed from this computer's Bluetooth devices")
		case n.reason != "":
			c.reason = n.reason
		case n.became("Connected", false):
			c.lost(cmp.Or(reasons[c.reason], "the device ended it or is out of range"))
		case n.became("ServicesResolved", true):
			c.resolved.set()
		}
	case n.path == c.notify && n.iface == characteristicInterface:
		if v, ok := n.values["Value"].Value().([]byte); ok {
			c.deliver(v)
		}
		c.setMTU(n.values)
	}
}

// reasons explains the reasons that BlueZ reports for the end of a connection. Older versions report none.
var reasons = map[string]string{
	"org.bluez.Reason.Timeout":        "the device is out of range or switched off",
	"org.bluez.Reason.Remote":         "the device ended it",
	"org.bluez.Reason.Local":          "this computer ended it",
	"org.bluez.Reason.Authentication": "the device refused the stored bond",
	"org.bluez.Reason.Suspend":        "this computer went to sleep",
}

func (c *Conn) deliver(value []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	select {
	case c.notifications <- value:
	default:
		c.dropped++
	}
}

func (c *Conn) setMTU(p properties) {
	if mtu, ok := p["MTU"].Value().(uint16); ok && mtu >= minMTU {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.mtu = int(mtu)
	}
}

// lost ends a connection that was open.
func (c *Conn) lost(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.up {
		c.end(failure(problem.CodeLost, fmt.Sprintf("the connection to %s was lost: %s", c.device, reason), nil))
	}
}

// end ends the connection. The caller must hold mu.
func (c *Conn) end(err error) {
	if c.err == nil {
		c.err = err
		close(c.done)
		close(c.notifications)
	}
}

// Close disconnects the device and waits up to 2 seconds until BlueZ has done so.
func (c *Conn) Close() {
	c.mu.Lock()
	before := c.err
	c.end(ErrClosed)
	c.mu.Unlock()
	c.r.unwatch(context.Background(), c.watch)
	if before == nil {
		c.r.undo(context.Background(), c.path, deviceInterface+".Disconnect")
	}
}

// Write writes one value at a time. If withResponse is set, it returns after the device has received the value;
// otherwise it returns after BlueZ has queued the value, which may not have been sent yet. It returns ErrTooLong for
// a value that does not fit in a packet.
func (c *Conn) Write(ctx context.Context, value []byte, withResponse bool) error {
	if most := min(c.MTU()-3, maxValue); len(value) > most {
		return fmt.Errorf("write %d bytes to %s, of at most %d: %w", len(value), c.device, most, ErrTooLong)
	}
	ctx, cancel := context.WithTimeout(ctx, c.r.limits.Write)
	defer cancel()
	if err := c.writing.acquire(ctx); err != nil {
		return c.failure(err, "write to")
	}
	defer c.writing.release()
	kind := "command"
	if withResponse {
		kind = "request"
	}
	options := properties{"type": dbus.MakeVariant(kind)}
	return c.persist(ctx, func() error {
		return c.call(ctx, c.write, characteristicInterface+".WriteValue", value, options)
	}, "write to")
}

// persist repeats a call while BlueZ is busy with another operation.
func (c *Conn) persist(ctx context.Context, call func() error, doing string) error {
	wait := 10 * time.Millisecond
	for {
		err := call()
		if name(err) != "org.bluez.Error.InProgress" || wait > 100*time.Millisecond {
			return c.failure(err, doing)
		}
		select {
		case <-time.After(wait):
			wait *= 2
		case <-ctx.Done():
			return c.failure(ctx.Err(), doing)
		case <-c.done:
			return c.Err()
		}
	}
}

// call calls a method of BlueZ. It returns when BlueZ answers, ctx ends or the connection ends.
func (c *Conn) call(ctx context.Context, path dbus.ObjectPath, method string, args ...any) error {
	if err := c.Err(); err != nil {
		return err
	}
	call := c.r.bus.Object(service, path).GoWithContext(ctx, method, 0, make(chan *dbus.Call, 1), args...)
	select {
	case <-call.Done:
		return call.Err
	case <-c.done:
		return c.Err()
	}
}

// failure converts a D-Bus error of a call about the device to an error for callers. It returns nil for nil.
func (c *Conn) failure(err error, doing string) error {
	if err == nil {
		return nil
	}
	if lost := c.Err(); lost != nil {
		return lost
	}
	return c.r.failure(err, doing+" "+c.device)
}

// Connect connects to a device, finds the service, and subscribes to its notifications. The device must be in range
// or already connected. On failure it returns an Error with the code NotInRange, BusyElsewhere, NotPaired,
// ServicesMissing or Timeout, or with a code of Open's errors.
func (r *Radio) Connect(ctx context.Context, to Target) (*Conn, error) {
	to.Address = strings.ToUpper(to.Address)
	c, err := r.connect(ctx, to)
	if err == nil {
		return c, nil
	}
	if problem.CodeOf(err) != problem.CodeServicesMissing || !r.forget(ctx, c) {
		return nil, err
	}
	// BlueZ may remember the services of an earlier firmware. Forgetting the device does no harm if there is no bond.
	if c, err = r.connect(ctx, to); err != nil {
		return nil, err
	}
	return c, nil
}

// forget removes a device that is not paired, and reports whether it removed the device.
func (r *Radio) forget(ctx context.Context, c *Conn) bool {
	ctx, cancel := context.WithTimeout(ctx, r.limits.Write)
	defer cancel()
	var paired bool
	err := r.call(ctx, c.path, propertiesInterface+".Get", deviceInterface, "Paired").Store(&paired)
	return err == nil && !paired && r.call(ctx, c.adapter, adapterInterface+".RemoveDevice", c.path).Err == nil
}

// connect makes one attempt. If it fails with ServicesMissing, it also returns the closed connection.
func (r *Radio) connect(ctx context.Context, to Target) (*Conn, error) {
	c, err := r.find(ctx, to)
	if err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{c.open, c.link, c.resolve, c.pair, c.locate, c.subscribe} {
		if err = step(ctx); err != nil {
			c.Close()
			return c, err
		}
	}
	return c, nil
}

// find waits until the device advertises, because connecting would fail earlier. If several adapters receive it, find
// chooses the one that is connected to the device, has a bond with it, or has the best signal.
func (r *Radio) find(ctx context.Context, to Target) (*Conn, error) {
	limited, cancel := context.WithTimeout(ctx, r.limits.Find)
	defer cancel()
	by := map[dbus.ObjectPath]sighting{} // the latest sighting by each adapter
	err := r.discover(limited, func(d sighting) bool {
		if d.Address != to.Address {
			return false
		}
		if len(by) == 0 {
			time.AfterFunc(r.limits.Others, cancel)
		}
		by[adapterOf(d.path)] = d
		return d.Connected || len(by) >= d.adapters
	})
	if len(by) > 0 && ctx.Err() == nil {
		return newConn(r, slices.MaxFunc(slices.Collect(maps.Values(by)), sighting.compare), to), nil
	}
	if limited.Err() != nil && ctx.Err() == nil {
		return nil, failure(problem.CodeNotInRange, to.Address+" is not in range"+r.Searched(ctx), err)
	}
	return nil, r.failure(err, "find "+to.Address)
}

// matches reports whether an object has a UUID, ignoring case.
func matches(p properties, uuid string) bool {
	return strings.EqualFold(value[string](p, "UUID"), uuid)
}

// children returns the sorted paths of the objects directly below a path that have an interface.
func children(all objects, parent dbus.ObjectPath, iface string) []dbus.ObjectPath {
	var paths []dbus.ObjectPath
	for path, o := range all {
		rest, ok := strings.CutPrefix(string(path), string(parent)+"/")
		if ok && !strings.Contains(rest, "/") && o[iface] != nil {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

package fakebluez

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/godbus/dbus/v5"
)

// step is a function that runs at a given time.
type step struct {
	at int64
	do func()
}

// run runs the radio and its peripherals until ctx ends.
func (r *Radio) run(ctx context.Context) {
	defer close(r.ended)
	defer r.leave()
	for {
		timer := time.NewTimer(r.wait())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case f := <-r.ask:
			f()
		case msg, ok := <-r.messages:
			if !ok { // the bus has stopped
				r.conn, r.messages = nil, nil
				break
			}
			r.receive(msg)
		case <-timer.C:
		}
		timer.Stop()
		r.tick()
	}
}

// wait returns the time until the next step of the radio or a peripheral.
func (r *Radio) wait() time.Duration {
	next := r.now() + time.Hour.Milliseconds()
	if len(r.steps) > 0 {
		next = min(next, r.steps[0].at)
	}
	for d := range r.devices() {
		if at, ok := d.p.Next(); ok {
			next = min(next, at)
		}
	}
	return time.Until(r.start.Add(time.Duration(next) * time.Millisecond))
}

// tick runs the due steps and forwards the output of the peripherals.
func (r *Radio) tick() {
	for len(r.steps) > 0 && r.steps[0].at <= r.now() {
		s := r.steps[0]
		r.steps = slices.Delete(r.steps, 0, 1)
		s.do()
	}
	for d := range r.devices() {
		d.p.Tick(r.now())
		if d.connected || !d.isConnectedElsewhere() {
			d.pump()
		}
	}
}

// after runs do in the loop after a delay in ms.
func (r *Radio) after(ms int64, do func()) {
	r.steps = append(r.steps, step{at: r.now() + ms, do: do})
	slices.SortStableFunc(r.steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
}

// call is a client's method call. It is answered once, by reply or fail.
type call struct {
	r             *Radio
	conn          *dbus.Conn
	client        string
	path          dbus.ObjectPath
	iface, member string
	args          []any
	serial        uint32
	noReply       bool
}

func header[T any](msg *dbus.Message, field dbus.HeaderField) T {
	v, _ := msg.Headers[field].Value().(T)
	return v
}

// receive handles one message from the bus.
func (r *Radio) receive(msg *dbus.Message) {
	switch msg.Type {
	case dbus.TypeMethodCall:
		r.handle(&call{
			r: r, conn: r.conn, client: header[string](msg, dbus.FieldSender),
			path: header[dbus.ObjectPath](msg, dbus.FieldPath), iface: header[string](msg, dbus.FieldInterface),
			member: header[string](msg, dbus.FieldMember), args: msg.Body, serial: msg.Serial(),
			noReply: msg.Flags&dbus.FlagNoReplyExpected != 0,
		})
	case dbus.TypeMethodReply, dbus.TypeError:
		serial := header[uint32](msg, dbus.FieldReplySerial)
		if f := r.replies[serial]; f != nil {
			delete(r.replies, serial)
			f(msg.Type == dbus.TypeMethodReply)
		}
	case dbus.TypeSignal:
		var name, from, to string
		if header[string](msg, dbus.FieldMember) == "NameOwnerChanged" &&
			dbus.Store(msg.Body, &name, &from, &to) == nil && to == "" {
			r.gone(name)
		}
	}
}

// gone removes the state of a client that has disconnected.
func (r *Radio) gone(client string) {
	delete(r.agents, client)
	for _, a := range r.adapters {
		a.stopScan(client)
	}
	for d := range r.devices() {
		for _, c := range d.characteristics {
			d.unsubscribe(c, client)
		}
	}
}

// handle answers a call.
func (r *Radio) handle(c *call) {
	r.calls[c.member]++
	if c.iface == "org.freedesktop.DBus.Properties" {
		r.properties(c)
		return
	}
	if c.path == "/" && c.member == "GetManagedObjects" {
		c.reply(r.objects())
		return
	}
	if c.path == "/org/bluez" {
		r.manager(c)
		return
	}
	for _, a := range r.adapters {
		if c.path == a.path && !a.absent {
			a.handle(c)
			return
		}
	}
	for d := range r.devices() {
		if d.known && d.path == c.path {
			d.handle(c)
			return
		}
		if ch := d.characteristics[c.path]; ch != nil {
			d.handleCharacteristic(c, ch)
			return
		}
	}
	c.unknown()
}

func (c *call) reply(values ...any) {
	msg := &dbus.Message{Type: dbus.TypeMethodReply, Body: values}
	if len(values) > 0 {
		msg.Headers = map[dbus.HeaderField]dbus.Variant{
			dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(values...)),
		}
	}
	c.send(msg)
}

// fail answers with an org.bluez error, e.g. Failed.
func (c *call) fail(name, text string) { c.failAs("org.bluez.Error."+name, text) }

func (c *call) failAs(name, text string) {
	c.send(&dbus.Message{Type: dbus.TypeError, Body: []any{text}, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldErrorName: dbus.MakeVariant(name), dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(text)),
	}})
}

func (c *call) unknown() {
	name := "org.freedesktop.DBus.Error.UnknownObject"
	if _, ok := c.r.objects()[c.path]; ok {
		name = "org.freedesktop.DBus.Error.UnknownMethod"
	}
	c.failAs(name, "Method \""+c.member+"\" with interface \""+c.iface+"\" on "+string(c.path)+" doesn't exist")
}

func (c *call) send(msg *dbus.Message) {
	if c.noReply {
		return
	}
	if msg.Headers == nil {
		msg.Headers = map[dbus.HeaderField]dbus.Variant{}
	}
	msg.Headers[dbus.FieldDestination] = dbus.MakeVariant(c.client)
	msg.Headers[dbus.FieldReplySerial] = dbus.MakeVariant(c.serial)
	c.conn.Send(msg, nil)
}

package bluez

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/service-dev/service/internal/problem"
)

// maxAborts is the number of attempts to connect that BlueZ may abort, because interference aborts some of them.
const maxAborts = 3

// open starts to watch the device.
func (c *Conn) open(ctx context.Context) error {
	return c.r.watch(ctx, c.watch, changesOf(c.adapter), changesOf(c.path), reasonsOf(c.path), existenceOf(c.path),
		existenceOf(c.adapter))
}

// link connects to the device.
func (c *Conn) link(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.r.limits.Connect)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := c.r.call(ctx, c.path, deviceInterface+".Connect").Err
		if err == nil {
			break
		}
		if !aborted(err) || attempt == maxAborts {
			return c.linkFailure(ctx, err)
		}
	}
	c.mu.Lock()
	c.up = true
	c.mu.Unlock()
	// The connection may have ended before the watch for its end began.
	p, err := c.state(ctx)
	if err != nil {
		return err
	}
	if !value[bool](p, "Connected") {
		c.lost("the device ended it at once")
		return c.rejected()
	}
	if value[bool](p, "ServicesResolved") {
		c.resolved.set()
	}
	return nil
}

// linkFailure returns the reason why the device cannot be connected. The cause may be the radio rather than
// the device.
func (c *Conn) linkFailure(ctx context.Context, err error) error {
	list, radio := c.r.usable(ctx)
	i := slices.IndexFunc(list, func(a adapter) bool { return a.path == c.adapter })
	switch {
	case ctx.Err() != nil:
	case radio != nil:
		return radio
	case i < 0: // other adapters are left
		return failure(problem.CodeLost, "the Bluetooth adapter "+nameOf(c.adapter)+" was removed", err)
	case list[i].state != isOn:
		return failure(problem.CodeLost, "the Bluetooth adapter "+nameOf(c.adapter)+" was switched off", err)
	}
	return c.failure(err, "connect to")
}

// state returns the properties of the device.
func (c *Conn) state(ctx context.Context) (properties, error) {
	var p properties
	err := c.r.call(ctx, c.path, propertiesInterface+".GetAll", deviceInterface).Store(&p)
	return p, c.failure(err, "read the state of")
}

// rejected returns the error for a connection that ended before it could be used, which means that another host is
// using the device.
func (c *Conn) rejected() error {
	return failure(problem.CodeBusyElsewhere, c.device+" ended the connection before it could be used", c.Err())
}

// resolve waits until BlueZ has found the services.
func (c *Conn) resolve(ctx context.Context) error {
	limit := time.NewTimer(c.r.limits.Resolve)
	defer limit.Stop()
	select {
	case <-c.resolved:
		return nil
	case <-c.done:
		return c.rejected()
	case <-limit.C:
		return failure(problem.CodeServicesMissing, "the services of "+c.device+" were not found in time", nil)
	case <-ctx.Done():
		return c.failure(ctx.Err(), "find the services of")
	}
}

// locate finds the service, its characteristics and the MTU.
func (c *Conn) locate(ctx context.Context) error {
	_, all, err := c.r.adapters(ctx)
	if err != nil {
		return err
	}
	for _, service := range children(all, c.path, serviceInterface) {
		if !matches(all[service][serviceInterface], c.to.Service) {
			continue
		}
		for _, path := range children(all, service, characteristicInterface) {
			p := all[path][characteristicInterface]
			if matches(p, c.to.Write) {
				c.write = path
				c.setMTU(p)
			}
			if matches(p, c.to.Notify) {
				c.notifyOn(path)
			}
		}
		if c.write != "" && c.notify != "" {
			return nil
		}
	}
	select {
	case <-c.done:
		return c.rejected()
	default:
		return failure(problem.CodeServicesMissing, fmt.Sprintf("%s does not offer the service %s", c.device, c.to.Service),
			nil)
	}
}

// notifyOn sets the characteristic whose notifications are delivered.
func (c *Conn) notifyOn(path dbus.ObjectPath) {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.notify = path
}

// subscribe subscribes to notifications. It starts watching for the signals first, so that none is missed.
func (c *Conn) subscribe(ctx context.Context) error {
	if err := c.r.listen(ctx, c.watch, changesOf(c.notify)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.r.limits.Write)
	defer cancel()
	return c.persist(ctx, func() error {
		return c.call(ctx, c.notify, characteristicInterface+".StartNotify")
	}, "receive from")
}

// pair creates a bond if the target requests one and there is none.
func (c *Conn) pair(ctx context.Context) error {
	if !c.to.Pair {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.r.limits.Connect)
	defer cancel()
	p, err := c.state(ctx)
	if err != nil || value[bool](p, "Paired") {
		return err
	}
	if err := c.r.pairing.acquire(ctx); err != nil {
		return c.failure(err, "pair with")
	}
	defer c.r.pairing.release()
	leave, err := c.r.registerAgent(ctx, c.path)
	if err != nil {
		return err
	}
	defer leave()
	// Do not use c.call, because this call's own error is more specific than the end of the connection.
	err = c.r.call(ctx, c.path, deviceInterface+".Pair").Err
	switch {
	case err == nil || name(err) == "org.bluez.Error.AlreadyExists":
		return nil
	case name(err) == "org.bluez.Error.AuthenticationCanceled", name(err) == "org.bluez.Error.ConnectionAttemptFailed":
		return failure(problem.CodeBusyElsewhere, c.device+" refused to pair, as if it were bound to another host", err)
	}
	return c.r.failure(err, "pair with "+c.device)
}

// aborted reports whether BlueZ aborted an attempt to connect immediately.
func aborted(err error) bool {
	return name(err) == "org.bluez.Error.Failed" && strings.Contains(text(err), "abort-by-local")
}

// name returns the name of a D-Bus error, or "".
func name(err error) string {
	var e dbus.Error
	if errors.As(err, &e) {
		return e.Name
	}
	return ""
}

// text returns the message of a D-Bus error, or "".
func text(err error) string {
	var e dbus.Error
	if errors.As(err, &e) && len(e.Body) > 0 {
		s, _ := e.Body[0].(string)
		return clean(s)
	}
	return ""
}

package bluez

import (
	"context"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	service                 = "org.bluez"
	adapterInterface        = "org.bluez.Adapter1"
	deviceInterface         = "org.bluez.Device1"
	serviceInterface        = "org.bluez.GattService1"
	characteristicInterface = "org.bluez.GattCharacteristic1"
	propertiesInterface     = "org.freedesktop.DBus.Properties"
	managerInterface        = "org.freedesktop.DBus.ObjectManager"
)

// undoLimit is the maximum duration of a call that undoes something after its context may have ended.
const undoLimit = 2 * time.Second

type (
	properties = map[string]dbus.Variant
	objects    = map[dbus.ObjectPath]map[string]properties
)

// Radio is a connection to BlueZ. Its methods are safe for concurrent use.
type Radio struct {
	bus     *dbus.Conn
	limits  Options
	hangUp  context.CancelFunc
	pairing lock // held while an agent is registered

	discovery   lock                    // held while discovering changes
	discovering map[dbus.ObjectPath]int // scans per adapter; they share BlueZ's single discovery for this connection

	mu      sync.Mutex
	owner   string // BlueZ's unique bus name, or "" while it is not running
	watches map[*watch]struct{}
}

// Open connects to BlueZ. It fails with CodeNoBluetooth, CodeRadioOff or CodeNoPermission; Later calls return the
// same codes if the state changes. ctx limits only Open itself.
func Open(ctx context.Context, opts Options) (*Radio, error) {
	lifetime, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	r := &Radio{
		limits: opts.withDefaults(), hangUp: hangUp, watches: map[*watch]struct{}{},
		pairing: make(lock, 1), discovery: make(lock, 1), discovering: map[dbus.ObjectPath]int{},
	}
	defer context.AfterFunc(ctx, hangUp)()
	dial := []dbus.ConnOption{dbus.WithContext(lifetime), dbus.WithSignalHandler(r)}
	var err error
	if opts.Address == "" {
		r.bus, err = dbus.ConnectSystemBus(dial...)
	} else {
		r.bus, err = dbus.Connect(opts.Address, dial...)
	}
	if err != nil {
		hangUp()
		return nil, busError(ctx, err)
	}
	if err = r.follow(ctx); err == nil {
		_, err = r.usable(ctx)
	}
	if err == nil {
		err = r.identify(ctx)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Close ends all connections to devices and the connection to BlueZ.
func (r *Radio) Close() {
	r.mu.Lock()
	var conns []*Conn
	for w := range r.watches {
		if w.conn != nil {
			conns = append(conns, w.conn)
		}
	}
	r.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
	r.hangUp()
	_ = r.bus.Close() // an error is irrelevant, because the bus is no longer needed
}

// follow starts to watch which program owns BlueZ's name.
func (r *Radio) follow(ctx context.Context) error {
	err := r.bus.AddMatchSignalContext(ctx, dbus.WithMatchSender("org.freedesktop.DBus"),
		dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, service))
	if err != nil {
		return r.failure(err, "connect to the Bluetooth service")
	}
	return nil
}

// identify looks up the owner of BlueZ's name, unless follow has already reported it.
func (r *Radio) identify(ctx context.Context) error {
	var owner string
	err := r.bus.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.GetNameOwner", 0, service).Store(&owner)
	if err != nil {
		return r.failure(err, "find the Bluetooth service")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owner == "" {
		r.owner = owner
	}
	return nil
}

// call calls a method of BlueZ. It returns when BlueZ answers or ctx ends.
func (r *Radio) call(ctx context.Context, path dbus.ObjectPath, method string, args ...any) *dbus.Call {
	return r.bus.Object(service, path).CallWithContext(ctx, method, 0, args...)
}

// undo calls a method even if ctx has ended. It ignores failures, because callers could not handle them.
func (r *Radio) undo(ctx context.Context, path dbus.ObjectPath, method string, args ...any) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	_ = r.call(ctx, path, method, args...).Err
}

// value returns a property, or the zero value if it is missing or of another type.
func value[T any](p properties, name string) T {
	v, _ := p[name].Value().(T)
	return v
}

// lock is a mutex whose wait can be ended by a context. The channel has capacity 1.
type lock chan struct{}

func (l lock) acquire(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l lock) release() { <-l }

// event wakes one receiver, now or when it next waits. The channel has capacity 1.
type event chan struct{}

func (e event) set() {
	select {
	case e <- struct{}{}:
	default:
	}
}

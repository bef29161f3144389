package bluez

import (
	"context"

	"github.com/godbus/dbus/v5"
)

const (
	agentPath      dbus.ObjectPath = "/dev/service/agent"
	agentInterface                 = "org.bluez.Agent1"
	bluezPath      dbus.ObjectPath = "/org/bluez"
)

// registerAgent makes this program answer BlueZ's requests about one device until leave is called.
func (r *Radio) registerAgent(ctx context.Context, device dbus.ObjectPath) (leave func(), err error) {
	if err := r.bus.Export(agent{device}, agentPath, agentInterface); err != nil {
		return nil, r.failure(err, "offer a pairing agent")
	}
	unexport := func() { _ = r.bus.Export(nil, agentPath, agentInterface) } // fails only for an invalid path
	err = r.call(ctx, bluezPath, "org.bluez.AgentManager1.RegisterAgent", agentPath, "NoInputNoOutput").Err
	if err != nil {
		unexport()
		return nil, r.failure(err, "register a pairing agent")
	}
	return func() {
		r.undo(ctx, bluezPath, "org.bluez.AgentManager1.UnregisterAgent", agentPath)
		unexport()
	}, nil
}

// agent allows pairing only with the device that the user wants to pair. BlueZ calls its methods. The methods that it
// does not implement require a keyboard or a display, and calls to them return an error.
type agent struct{ device dbus.ObjectPath }

// RequestAuthorization allows just-works pairing.
func (a agent) RequestAuthorization(device dbus.ObjectPath) *dbus.Error {
	if device != a.device {
		return dbus.NewError("org.bluez.Error.Rejected", []any{"another device is being paired"})
	}
	return nil
}

// Cancel is called when BlueZ cancels a request.
func (agent) Cancel() *dbus.Error { return nil }

// Release is called when BlueZ releases the agent.
func (agent) Release() *dbus.Error { return nil }

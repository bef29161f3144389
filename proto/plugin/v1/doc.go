// Package pluginv1 is the contract between the daemon and its adapters. It contains the code generated from
// backend.proto and transport.proto, and the handshake that both sides use. It is independent of the daemon and of
// every adapter.
package pluginv1

// Handshake of hashicorp/go-plugin. The cookie is not a secret. It makes an adapter that is started by hand exit
// instead of waiting forever.
const (
	CookieKey   = "SERVICE_PLUGIN_COOKIE"
	CookieValue = "spawned-by-serviced"

	// ListenersKey is the variable with the number of listeners that the embedded backend's adapter inherits. They
	// listen on the loopback addresses and are the file descriptors from FirstListener on.
	ListenersKey  = "SERVICE_PLUGIN_LISTENERS"
	FirstListener = 3

	// ProtocolVersion is increased whenever an adapter built before a change could misinterpret the daemon, or vice
	// versa. It is the version of both contracts. A change of Backend alone, which only shipped adapters serve, must
	// not stop the transport adapters that users built. New calls therefore get new names, which older adapters do not
	// implement.
	ProtocolVersion = 1

	// BackendPlugin is the name under which an adapter serves the Backend service.
	BackendPlugin = "backend"

	// TransportPlugin is the name under which an adapter serves the Transport service.
	TransportPlugin = "transport"
)

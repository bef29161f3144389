// Package pluginv1 is the contract between the daemon and its adapters: the generated code of backend.proto and
// transport.proto, and the handshake both sides use. It knows neither the daemon nor any adapter.
package pluginv1

// The handshake of hashicorp/go-plugin. The cookie is not a secret: it keeps a person who starts an adapter by hand
// from waiting for something that never comes.
const (
	CookieKey   = "SERVICE_PLUGIN_COOKIE"
	CookieValue = "spawned-by-serviced"

	// ProtocolVersion is raised when an adapter built before the change could misread the daemon, or the reverse.
	ProtocolVersion = 1

	// BackendPlugin is the name under which an adapter serves the Backend service.
	BackendPlugin = "backend"

	// TransportPlugin is the name under which an adapter serves the Transport service.
	TransportPlugin = "transport"
)

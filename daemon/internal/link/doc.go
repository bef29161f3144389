// Package link is the client side of the device-code flow (RFC 8628): it requests codes, polls them, saves the link and
// remembers outcomes. Polling belongs to the daemon, not to a call: it continues after a client times out, callers with
// the same code share one poller, and only cancelling a login stops its polling. The package is independent of adapters
// and tools, and its only texts for users are errors.
package link

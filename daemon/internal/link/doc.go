// Package link is the client side of the device-code flow (RFC 8628): it requests codes, polls them, saves the link and
// remembers outcomes. Polling is independent of the call that started it: it continues after a client times out, and
// callers with the same code share one poller. Only cancelling a login stops its polling. The package is independent of
// adapters and tools, and its only texts for users are errors.
package link

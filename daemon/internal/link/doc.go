// Package link is the client side of the device-code flow (RFC 8628): it requests codes, polls them, saves the link
// and remembers outcomes. The daemon polls, not a call: polling continues after a client times out, two callers with
// one code share one poller, and only cancelling a login stops its polling. The package knows no adapters and no
// tools, and no texts for people except its errors.
package link

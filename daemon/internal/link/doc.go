// Package link is the daemon's side of the device-code flow (RFC 8628): it asks for codes, polls
// them, saves the link and remembers outcomes. Polling belongs to the daemon and not to a call: it survives a client
// that times out, two callers on one code share one poller, and only a login that is cancelled takes its polling with
// it. The package knows no adapter, no tool and no words for people beyond its errors.
package link

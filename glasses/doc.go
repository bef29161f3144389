// Package glasses defines the open wire protocol between an app and its glasses: frames, their payloads, the rows of
// the event log, and the device models. PROTOCOL.md in this directory documents it for authors of clients.
//
// The package does no I/O and uses no clock. It is independent of how frames are relayed and where rows are stored.
package glasses

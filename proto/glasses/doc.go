// Package glasses is the open wire protocol between an app and its glasses: frames, their payloads, the event log's
// row and the device models. PROTOCOL.md beside this file tells it to people who write their own client.
//
// It is pure: no I/O, no clock, and nothing of who relays the frames or where rows are kept.
package glasses

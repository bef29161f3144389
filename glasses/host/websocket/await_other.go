//go:build !linux

package websocket

// idlePoller is empty, because on this system a goroutine waits for each connection.
var idlePoller poller

type poller struct{}

func (poller) add(*Conn, func()) bool { return false }

func (poller) wake(*Conn) {}

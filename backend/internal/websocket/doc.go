// Package websocket is the server's side of WebSocket connections (RFC 6455), for tens of thousands that are idle most
// of the time. An idle connection holds no buffers and, on Linux, no goroutine (see Await). Buffers for reading and
// writing come from a pool while there is something to read or write.
//
// A server neither masks nor fragments what it sends, and no extension or subprotocol is negotiated.
//
// The package knows nothing about the frames that the messages contain, nor about who may connect.
package websocket

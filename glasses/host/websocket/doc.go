// Package websocket is the server side of WebSocket connections (RFC 6455), for tens of thousands of connections that
// are idle most of the time. An idle connection holds no buffers and, on Linux, no goroutine (see Await). Buffers for
// reading and writing come from a pool while there is something to read or write.
//
// The server neither masks nor fragments its frames, and negotiates no extension or subprotocol.
//
// The package does not interpret messages and does not decide who may connect.
package websocket

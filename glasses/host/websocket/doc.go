// Package websocket is the server side of WebSocket connections (RFC 6455). It is designed for tens of thousands of
// connections that are idle most of the time. An idle connection has no buffers and, on Linux, no goroutine (see
// Await). Buffers for reading and writing come from a pool and are held only while there is data.
//
// The server neither masks nor fragments its frames, and negotiates no extension or subprotocol.
//
// The package does not interpret messages and does not decide who may connect.
package websocket

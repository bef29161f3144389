// Command simulator is the Go program of the simulator page, compiled to WebAssembly: the same device and renderer that
// simulate the glasses locally. The page owns the WebSocket, clock, camera, microphone and speech; this program makes
// every decision of the glasses. It has no access to the network, the page's elements or the event log: it receives and
// sends frames.
package main

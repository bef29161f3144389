// Command simulator is the Go program of the simulator page: the device and renderer that also simulate the glasses
// locally, compiled to WebAssembly. The page owns the WebSocket, clock, camera, microphone and speech; this program
// makes every decision of the glasses. It knows nothing about the network, the page's elements or the event log: it
// receives and sends frames.
package main

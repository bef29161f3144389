// Command simulator is the part of the simulator page that is Go: the same device and the same renderer that play the
// glasses locally, compiled to WebAssembly. The page owns the socket, the clock, camera, microphone and speech; this
// program owns every decision of the glasses.
//
// It must not know the network, the page's elements or the session's log: it takes frames and gives frames.
package main

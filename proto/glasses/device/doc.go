// Package device is a simulated pair of glasses as a state machine: commands and control frames go in, results, events
// and media come out, and what happens by itself happens when its time has come. The local simulator runs it natively
// and the simulator page as WebAssembly, so both answer alike by construction.
//
// It is pure: the host tells the time, carries the frames and does what an Ask says (take a picture, speak, listen). It
// must not know who the host is, and the same calls always give the same output, byte by byte.
package device

// Package device simulates a pair of glasses as a state machine. It receives commands and control frames, and sends
// results, events and media. Timers run when the host advances the clock. The local simulator runs the package natively
// and the simulator page runs it as WebAssembly, so both behave the same.
//
// The package is deterministic to the byte and does no I/O. The host supplies the time, transports the frames and
// carries out each Ask (take a picture, speak, listen). The package is independent of the host.
package device

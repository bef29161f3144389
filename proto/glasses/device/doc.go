// Package device simulates a pair of glasses as a state machine: commands and control frames are its input; results,
// events and media its output. Timers run when the host advances the clock. The local simulator runs it natively and
// the simulator page as WebAssembly, so both behave the same.
//
// It is deterministic to the byte and does no I/O: the host supplies the time, transports the frames and carries out
// each Ask (take a picture, speak, listen). The package does not know who the host is.
package device

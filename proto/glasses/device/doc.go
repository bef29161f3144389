// Package device simulates a pair of glasses as a state machine: commands and control frames are its input; results,
// events and media its output. Timers run when the host advances the clock. The local simulator runs it natively and
// the simulator page as WebAssembly, so both behave the same.
//
// It is pure and deterministic to the byte: the host supplies the time, carries the frames and carries out each Ask
// (take a picture, speak, listen). It does not know who the host is.
package device

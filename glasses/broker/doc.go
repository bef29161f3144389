// Package broker holds the state of a session between its apps and its glasses. All hosts that connect the two share
// it: the daemon's local sessions and the backend's relay.
//
// The broker decides and the host acts. Package host contains what both hosts have in common. Every method handles one
// input at a given time and returns outputs that the host carries out in order: answer the sender, send to the apps or
// the glasses, append a row to the event log. The package does no I/O and has no goroutine, clock or lock. A host calls
// a Broker while holding the lock that also orders its sending and logging, so that live frames follow a replay without
// gaps.
//
// The package covers the admission of frames (size, form, direction, text or binary), the detection of repeated IDs,
// commands with their results and deadlines, refusals and their codes, the rows of the log, the stream counters, and
// the bounded queue of frames that a peer has not received. A host refuses a frame that is not admitted with an error
// frame (ErrorFrame) and does not log it.
package broker

// Package broker holds the state of a session between its apps and its glasses. All hosts that connect the two share
// it: the daemon's local sessions, the backend's relay, and later hosts for real glasses.
//
// The broker decides and the host acts. Every method handles one input at a given time, and returns outputs that the
// host carries out in order: answer the sender, send to the apps or the glasses, append a row to the event log. The
// package does no I/O and has no goroutine, clock or lock. A host calls a Broker under the lock that also orders its
// sending and logging, so that a replay followed by live frames is exact.
//
// The package covers the admission of frames (size, form, direction, text or binary), the detection of repeated ids,
// commands with their results and deadlines, refusals and their codes, the rows of the log, the stream counters, and
// the bounded queue of frames that a peer has not received.
//
// The hosts differ in these points, which they handle themselves:
//
//   - Rates. The daemon slows down one connection, the relay a whole session across its connections.
//   - Control frames. The relay hands their results over without the session's lock, which a slow store may hold.
//   - The log. The daemon's assigns a row its seq immediately (see Broker.Logged); the relay's store does so later and
//     recognizes repeats itself.
//   - Unsolicited frames of glasses. The daemon renames events after their rows and treats an error frame as a result;
//     the relay keeps the names, refuses error frames, and validates link and device events.
//   - Backpressure. The relay delays the glasses while a stream piles up for an app; the daemon only drops frames.
//   - State of the glasses. The daemon keeps a snapshot from which glasses restart, the relay the last display and
//     the state. Both keep the standing state (Command.Standing) and decide when to send it.
package broker

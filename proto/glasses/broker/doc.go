// Package broker is the state of a session between its apps and its glasses, shared by every host that connects the
// two: the daemon's local sessions, the backend's relay, and whatever connects real glasses next.
//
// It decides; the host acts. Every method takes what happened and the time, and returns the outputs that the host
// carries out in their order: answer the sender, send to the apps or the glasses, append a row to the event log. There
// is no I/O, no goroutine, no clock and no lock. A host calls a Broker under the lock that also orders what it sends
// and logs, which is what makes a replay followed by live frames exact.
//
// Shared are the admission of frames (size, form, direction, text or binary), the recognition of repeated ids, commands
// with their results and deadlines, refusals and their codes, the rows of the log, the counters of streams, and the
// bounded queue of what a peer has not received.
//
// The hosts differ in, and therefore keep to themselves:
//
//   - Rates. The daemon slows down one connection, the relay a whole session across its connections.
//   - Control frames. The relay hands their results over without the session's lock, which a slow store may hold.
//   - The log. The daemon's assigns a row its seq at once (see Broker.Logged); the relay's store does so later and
//     recognizes repeats itself.
//   - What glasses say on their own. The daemon renames events after their rows and treats an error frame as a result;
//     the relay keeps the names, refuses error frames, and validates link and device events.
//   - Backpressure. The relay delays the glasses while a stream piles up for an app; the daemon only drops frames.
//   - What is known of the glasses. The daemon keeps a snapshot from which glasses restart, the relay the last display
//     and the state. Both keep what stands (Command.Standing) and decide when to send it.
package broker

// Package host is what every host of sessions has around glasses/broker: the daemon's local sessions and the backend's
// relay.
//
// A Session carries out the broker's decisions. It greets apps and replays what they missed, restores standing
// settings, counts streams, and renews gateway tokens. A Peer is the connection of an app or a simulator page. It reads
// the hello, queues frames within bounds, writes them in order, and ends with a close code that tells the other side
// whether to come back.
//
// An idle peer has no buffer and, on Linux, no goroutine. They exist only while there is work: a reader that ends when
// no more data arrives, a writer that ends when the queue is empty, and pooled buffers.
//
// The package does not know who may attach. The hosts differ in three points:
//
//   - The log (Host.Append, Host.Acknowledge). The daemon's file assigns a row its seq immediately, so the broker can
//     acknowledge repeats (broker.Broker.Logged). The relay's database assigns it when a batch commits and finds
//     repeats itself, because several servers may write the rows of one session.
//   - IDs of events (Host.EventID). The daemon names an event of the glasses after its row, because glasses that
//     restart would repeat their IDs, and runs in virtual time must be reproducible. The relay's pages choose unique
//     IDs, and send a frame again with the same ID after they reconnect.
//   - The state of the glasses (Host.Append). The daemon keeps a snapshot from which new glasses continue. A page of
//     the relay continues by itself, so the relay keeps only what a new page or app must know: the last display and
//     the state.
package host

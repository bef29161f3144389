// Package host is the part that all hosts of sessions share in addition to glasses/broker. The hosts are the daemon's
// local sessions and the backend's relay.
//
// A Session carries out the broker's decisions. It greets apps and replays what they missed, restores standing
// settings, counts streams, and renews gateway tokens. A Peer is the connection of an app or a simulator page. It reads
// the hello, queues frames within bounds, writes them in order, and ends with a close code that tells the other side
// whether to reconnect.
//
// An idle peer has no buffer and, on Linux, no goroutine. There is a reader only while data arrives, a writer only
// while frames are queued, and buffers come from a pool.
//
// The package does not decide who may attach. The hosts differ in three points:
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

// Package host is what every host of sessions has around glasses/broker: the daemon's local sessions and the backend's
// relay. A Peer is the connection of an app or a simulator page. It reads the hello, queues frames within bounds, writes
// them in order, and ends with a close code that tells the other side whether to come back.
//
// An idle peer has no buffer and, on Linux, no goroutine. They exist only while there is work: a reader that ends when
// no more data arrives, a writer that ends when the queue is empty, and pooled buffers.
//
// The package does not know what a frame means, who may attach, or where a session's log is.
package host

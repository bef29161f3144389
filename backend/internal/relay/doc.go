// Package relay passes live frames between the apps and the glasses (simulator pages) of a session, and records every
// frame as a row in the session's event log. glasses/broker decides what happens to a frame, and this package carries
// out its decisions.
//
// An admitted frame is published to the other side and added to one bounded queue. A single writer commits everything
// in the queue in one transaction, acknowledges the senders and publishes the rows to the pages. A full queue blocks
// the readers, so a slow store slows the senders down but no frame is lost. A peer that does not drain its own queue is
// disconnected; it attaches again with its cursor and misses nothing.
//
// A session's lock orders publishing, queueing and attaching, so that live frames follow a replay without gaps or
// duplicates.
//
// Streams (pictures, sound, motion) bypass all of this: they are relayed without the lock, in pooled memory, dropped
// for a peer that is behind, counted, and never logged. Control frames are sent to the page that acts as the glasses,
// which is the newest page, and the page's result is returned to the caller.
//
// An idle connection has no buffer and, on Linux, no goroutine. Both exist only while there is work: a reader that ends
// when no more data arrives, a writer that ends when its queue is empty, and pooled buffers. One maintenance goroutine
// serves all sessions.
//
// The package contains no account, cookie or SQL code: Sessions and the caller of ServePage decide who may attach.
package relay

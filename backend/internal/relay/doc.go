// Package relay passes live frames between the apps and the glasses (simulator pages) of a session, and records every
// frame as a row of the session's event log. proto/glasses/broker decides what happens to a frame; this package hosts
// it.
//
// An admitted frame is published on the bus to the other side and put into one bounded queue. One writer commits
// everything in the queue in one transaction, acknowledges the senders and publishes the rows to the pages. A full
// queue stops the readers, so a slow store slows the senders down and loses nothing. A peer that does not drain its own
// queue is disconnected; it attaches again with its cursor and misses nothing.
//
// A session's lock orders publishing, queueing and attaching, so that a replay continues with live frames without a gap
// or a repetition.
//
// Streams (pictures, sound, motion) bypass all that: they are relayed without the lock in pooled memory, dropped for a
// peer that is behind, counted, and never logged. Control frames are sent to the page that acts as the glasses, which
// is the newest one; its result is returned to the caller.
//
// An idle connection keeps a small read buffer and one goroutine. Everything else exists only while there is work: a
// writer that ends when its queue is empty, buffers from pools, and one maintenance goroutine for all sessions.
//
// The package knows neither accounts, cookies nor SQL: Sessions and the caller of ServePage decide who may attach.
package relay

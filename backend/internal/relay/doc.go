// Package relay carries live frames between the apps and the glasses (simulator pages) of a session, and records every
// frame as a row of the session's event log. What happens to a frame is decided by proto/glasses/broker; this package
// hosts it.
//
// An admitted frame is published on the bus to the other side and put into one bounded queue. One writer commits
// everything that waits in one transaction, acknowledges the senders and publishes the rows to the pages. A full queue
// stops the readers, so a slow store slows the senders down and loses nothing. A peer that does not drain its own queue
// is cut off; it attaches again with its cursor and misses nothing.
//
// A session's lock orders publishing, queueing and attaching, which makes a replay followed by live frames exact.
//
// Streams (pictures, sound, motion) bypass all that: they are relayed without the lock in pooled memory, dropped for a
// peer that is behind, counted, and never logged. Control frames go to the page that plays the glasses, the newest one;
// its result goes to the caller.
//
// An idle connection keeps a small read buffer and one goroutine. Everything else exists only while there is work: a
// writer that ends when its queue is empty, buffers from pools, and one maintenance goroutine for all sessions.
//
// The package knows neither accounts, cookies nor SQL: Sessions and the caller of ServePage decide who may attach.
package relay

// Package relay carries live frames between the apps and the glasses (simulator pages) of a session, and sees to it
// that every frame becomes a row of the session's event log.
//
// How a frame travels: it is parsed, checked against the ids seen before, published on the bus to the other side, and
// put into one bounded queue. One writer commits everything that waits in one transaction, acknowledges the senders and
// publishes the rows to the pages. A full queue stops the readers, so that a slow store slows the senders down and loses
// nothing. A peer that does not drain its own queue is cut off: it attaches again with its cursor and misses nothing.
//
// A room's lock orders publishing, queueing and attaching; that is what makes a replay followed by live frames exact.
//
// Streams (pictures, sound, motion) go past all that: they are relayed without the lock in memory that is lent and
// shared, dropped for a peer that is behind, counted, and never logged. Control frames go to the page that plays the
// glasses, the newest one; its result goes to who asked.
//
// A silent connection keeps a small read buffer and one goroutine. Everything else is taken when there is something to
// do: a writer that ends with its queue, buffers from pools, and one housekeeping goroutine that beats and pings for all.
//
// The package must not know accounts, cookies or SQL: who may attach is decided by Sessions and by the page's caller.
package relay

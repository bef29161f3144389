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
// The package must not know accounts, cookies or SQL: who may attach is decided by Sessions and by the page's caller.
package relay

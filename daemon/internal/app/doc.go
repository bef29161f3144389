// Package app is the daemon's composition root and supervisor: it secures the state directory, acquires the lock,
// creates the components, opens the two sockets, and shuts everything down in order. Only this package imports all the
// others, and no package imports it. Decisions that belong to a component stay in that component.
package app

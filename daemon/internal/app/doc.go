// Package app is the daemon's composition root and supervisor: it secures the state directory, acquires the lock,
// creates the components, opens the two sockets, and shuts everything down in order. It is the only package that
// imports all others. Decisions that belong to a component are made in that component.
package app

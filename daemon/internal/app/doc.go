// Package app is the daemon's composition root and supervisor: it secures the state directory, takes the lock,
// creates the components, opens the two sockets, and shuts everything down in order. It is the only package that
// imports all others, and none imports it. It contains no decisions that belong to a component.
package app

// Package app is the daemon's composition root and its supervision: it makes the state directory safe, takes the lock,
// puts the parts together, opens the two sockets, and takes everything down again in order. It is the only package that
// imports all the others, and none imports it; what any part does is not decided here.
package app

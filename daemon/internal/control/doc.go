// Package control is the person's door: it serves control.sock, looks at who connects, and translates between the
// control contract and the daemon's own words. Every decision is made behind the interfaces it declares; it must not
// know how an account is linked, a tool works or an adapter runs.
package control

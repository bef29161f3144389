// Package control serves control.sock to servicectl. It checks who connects, and translates between the control
// contract and the daemon's types. All decisions are made behind the interfaces that it declares; it must not know how
// an account is linked, a tool works or an adapter runs.
package control

// Package control serves control.sock to servicectl. It checks who connects, and translates between the control
// contract and the daemon's types. The components behind its interfaces make all decisions; the package must not depend
// on how an account is linked, a tool works or an adapter runs.
package control

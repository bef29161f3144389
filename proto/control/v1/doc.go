// Package controlv1 is the contract between the command line and the daemon: the code generated from control.proto. It
// is independent of both implementations.
package controlv1

// Package controlv1 is the contract between the person's CLI and the daemon: the generated code of control.proto. It
// knows nothing of how either side works.
package controlv1

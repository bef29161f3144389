//go:build !linux && !darwin && !freebsd

package control

import "os"

// peerUID trusts the directory: on Windows the socket file inherits the access list of the user's profile, which no
// other user may pass.
func peerUID(uintptr) (int, error) { return os.Getuid(), nil }

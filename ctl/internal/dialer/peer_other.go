//go:build unix && !linux && !darwin

package dialer

// peerUID is not supported on this system.
func peerUID(int) (uid int, ok bool) { return 0, false }

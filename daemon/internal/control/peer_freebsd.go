package control

// peerPID returns 0, because this system does not report the peer's process.
func peerPID(uintptr) int { return 0 }

package control

// peerPID always returns 0: this system does not report the process.
func peerPID(uintptr) int { return 0 }

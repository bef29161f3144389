package control

// peerPID is not told here.
func peerPID(uintptr) int { return 0 }

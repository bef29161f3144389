package dialer

// StarterVerb is the first argument of a starter. This system has no starter.
const StarterVerb = "start-daemon"

// starterBeside returns "" because this system has no starter: the daemon is a child of its client.
func starterBeside(string) string { return "" }

// StartDetached is never called on this system.
func StartDetached(string) int { return 1 }

// IsStarter always returns false on this system.
func IsStarter([]string) (program string, ok bool) { return "", false }

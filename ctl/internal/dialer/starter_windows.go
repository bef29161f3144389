package dialer

// StarterVerb is the first argument of a starter. There is none on this system.
const StarterVerb = "start-daemon"

// starterBeside returns "": there is no starter for this system, so the daemon is a child of its client.
func starterBeside(string) string { return "" }

// StartDetached is not called here.
func StartDetached(string) int { return 1 }

// IsStarter is never true here.
func IsStarter([]string) (program string, ok bool) { return "", false }

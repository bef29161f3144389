package reach

// StarterVerb is the first argument of a starter, of which there is none here.
const StarterVerb = "start-daemon"

// starterBeside is none: a starter is not written for this system, and the daemon stays a child of who started it.
func starterBeside(string) string { return "" }

// StartDetached is not called here.
func StartDetached(string) int { return 1 }

// IsStarter is never true here.
func IsStarter([]string) (program string, ok bool) { return "", false }

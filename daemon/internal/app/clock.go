//go:build !soak || !unix

package app

import "time"

// systemClock is the daemon's clock unless Options sets another.
func systemClock() time.Time { return time.Now() }

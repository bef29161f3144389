//go:build !soak || !unix

package app

import "time"

// systemClock is the daemon's clock where Options name none.
func systemClock() time.Time { return time.Now() }

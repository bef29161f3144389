//go:build !linux

package session

import "time"

// strays is empty on other systems. On Windows, an app ends together with all its descendants. On other systems, a
// program cannot find processes by their environment.
type strays struct{}

func newStrays(string, int) *strays   { return nil }
func (*strays) ask()                  {}
func (*strays) killAfter(_ time.Time) {}

//go:build !linux

package cli

import "os/exec"

// dieWithParent has no counterpart here; the demo ends its child on every signal that it hears of.
func dieWithParent(*exec.Cmd) {}

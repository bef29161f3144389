//go:build !linux

package procgroup

import "os/exec"

// EndWithParent does nothing on this system; a command ends its child on every signal it receives.
func EndWithParent(*exec.Cmd) {}

//go:build unix && !linux && !darwin

package cli

import "github.com/service-dev/service/ctl/internal/dialer"

// holds returns false because this system does not report which process holds a lock.
func holds(dialer.Daemon, int) bool { return false }

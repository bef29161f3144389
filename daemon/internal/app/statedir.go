package app

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/internal/fileowner"
	"github.com/service-dev/service/internal/rendezvous"
)

// prepareDirs creates the daemon's directories. It refuses directories that statefile.EnsureDir does not trust, and
// directories that other users could replace because they control a parent directory.
func prepareDirs(p rendezvous.Paths) error {
	dirs := []string{p.Dir, p.Run, filepath.Join(p.Dir, rendezvous.LogDir)}
	for _, dir := range []string{p.Sockets, p.Adapters()} {
		if dir == p.Run {
			continue
		}
		if parent := filepath.Dir(dir); parent != p.Run && parent != p.Sockets {
			dirs = append(dirs, parent)
		}
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		if err := statefile.EnsureDir(dir); err != nil {
			return err
		}
		var found *fileowner.Error
		if errors.As(fileowner.CheckAncestors(dir), &found) {
			return fmt.Errorf("directory %s: %w; run %s", dir, found, found.Fix)
		}
	}
	return nil
}

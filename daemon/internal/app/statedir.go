package app

import (
	"path/filepath"

	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/proto/rendezvous"
)

// prepareDirs creates the directories of a daemon and refuses those that statefile.EnsureDir does not trust.
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
	}
	return nil
}

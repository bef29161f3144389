package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/service-dev/service/proto/rendezvous"
)

// prepare makes the directories of a daemon and refuses those it cannot trust (design D1, D7).
func prepare(p rendezvous.Paths) error {
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
		if err := secure(dir); err != nil {
			return err
		}
	}
	return nil
}

// secure makes dir if it is missing, takes away what others may do there, and refuses one that others could have
// changed already: a symbolic link, another owner, writable by group or world.
func secure(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("making the directory: %w", err)
		}
		info, err = os.Lstat(dir)
	}
	if err != nil {
		return fmt.Errorf("reading the directory: %w", err)
	}
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		return fmt.Errorf("directory %s is a symbolic link: set SERVICE_CONFIG_DIR to the directory itself", dir)
	case !mode.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case runtime.GOOS == "windows":
		return nil // access is governed by the profile's own list
	case !mine(info):
		return fmt.Errorf("directory %s belongs to another user: use one of your own", dir)
	case mode.Perm()&0o022 != 0:
		return fmt.Errorf("directory %s can be written by other users (mode %04o): run chmod 700 on it", dir, mode.Perm())
	case mode.Perm()&0o077 != 0:
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("tightening the directory: %w", err)
		}
	}
	return nil
}

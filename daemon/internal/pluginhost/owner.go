package pluginhost

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// checkOwners refuses an adapter that somebody besides this user and root could replace: by its file, by the manifest
// that vouches for it, or by a directory on the way to them. The checksum alone is no help against who can write both.
func checkOwners(dir, path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	manifest := filepath.Join(dir, Manifest)
	if real, err := filepath.EvalSymlinks(manifest); err == nil {
		manifest = real
	} else if !errors.Is(err, fs.ErrNotExist) { // its absence has a refusal of its own
		return fmt.Errorf("reading %s: %w", manifest, err)
	}
	for _, file := range []string{real, manifest} {
		info, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		if err := onlyOurs(file, info); err != nil {
			return err
		}
		if err := checkDirectories(filepath.Dir(file)); err != nil {
			return err
		}
	}
	// dir may be a link, which whoever can write beside it could turn elsewhere.
	abs, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("reading %s: %w", dir, err)
	}
	return checkDirectories(abs)
}

// checkDirectories goes from dir to the root.
func checkDirectories(dir string) error {
	for first := true; ; first = false {
		info, err := os.Stat(dir)
		if err != nil {
			return fmt.Errorf("reading %s: %w", dir, err)
		}
		// In a directory that has the sticky bit, as /tmp, others cannot replace what is not theirs.
		if sticky := info.Mode()&fs.ModeSticky != 0; first || !sticky {
			if err := onlyOurs(dir, info); err != nil {
				return err
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir || !ancestorsCount {
			return nil
		}
		dir = parent
	}
}

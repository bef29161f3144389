package pluginhost

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// checkOwners refuses an adapter that anybody except this user and root could replace: through its file, the manifest,
// or a directory above them. The checksum alone does not protect against a user who can write both.
func checkOwners(dir, path string) error {
	for _, file := range []string{path, filepath.Join(dir, Manifest)} {
		real, err := filepath.EvalSymlinks(file)
		if errors.Is(err, fs.ErrNotExist) { // reported by verify
			real, err = file, nil
		}
		if err == nil {
			err = checkFileOwners(real)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// dir may be a symbolic link, which anybody who can write to its directory could redirect.
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	return checkDirectories(abs)
}

// checkFileOwners checks one file without symbolic links in its path, and the directories above it.
func checkFileOwners(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := checkAccess(path, info); err != nil {
		return err
	}
	return checkDirectories(filepath.Dir(path))
}

// checkDirectories checks dir and, if they matter on this system, the directories above it.
func checkDirectories(dir string) error {
	for first := true; ; first = false {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		// In a directory with the sticky bit, such as /tmp, users cannot replace files of others.
		if sticky := info.Mode()&fs.ModeSticky != 0; first || !sticky {
			if err := checkAccess(dir, info); err != nil {
				return err
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir || !ancestorsMatter {
			return nil
		}
		dir = parent
	}
}

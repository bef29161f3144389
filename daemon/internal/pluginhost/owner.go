package pluginhost

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/service-dev/service/internal/fileowner"
)

// checkOwners refuses an adapter that anyone except this user and root could replace: through its file, the manifest,
// or a parent directory of either. The checksum alone does not protect against a user who can write both.
func checkOwners(dir, path string) error {
	for _, file := range []string{path, filepath.Join(dir, Manifest)} {
		real, err := filepath.EvalSymlinks(file)
		if errors.Is(err, fs.ErrNotExist) { // verify reports this
			real, err = file, nil
		}
		if err == nil {
			err = checkFileOwners(real)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// dir may be a symbolic link, and anyone who can write to its parent directory could redirect it.
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	return refuseOwner(fileowner.CheckDirectories(abs))
}

// checkFileOwners checks a file whose path contains no symbolic links, and the directories above it.
func checkFileOwners(path string) error { return refuseOwner(fileowner.CheckFile(path)) }

// refuseOwner converts a finding of fileowner to a refusal whose fix hint is the suggested command.
func refuseOwner(err error) error {
	var found *fileowner.Error
	if errors.As(err, &found) {
		return refuseWith(runHint(found.Fix), "%s", found.Reason)
	}
	return err
}

package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/service-dev/service/internal/fileowner"
)

// EnsureDir creates dir with mode 0700 if it does not exist, and removes other users' permission to read it. It refuses
// a directory that other users could have changed: a symbolic link, a directory of another owner, or a directory to
// which the group or all users can write.
func EnsureDir(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		var refused *fileowner.Error
		if err := fileowner.CheckNew(dir); errors.As(err, &refused) {
			return fmt.Errorf("%w. %s", refused, refused.Fix)
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("create directory %s: %w", dir, cause(err))
		}
		info, err = os.Lstat(dir)
	}
	if err != nil {
		return fmt.Errorf("read directory %s: %w", dir, cause(err))
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("directory %s: %w; pass the path of the directory itself", dir, ErrSymlink)
	case !info.IsDir():
		return fmt.Errorf("directory %s is a file", dir)
	case !mine(info):
		return fmt.Errorf("directory %s belongs to another user; use one that you own, or run %s",
			dir, fileowner.ChownHint(dir))
	case shared(info)&0o022 != 0:
		return fmt.Errorf("other users can write to directory %s (mode %04o); run chmod 700 on it", dir,
			info.Mode().Perm())
	case shared(info) != 0:
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("change the mode of directory %s: %w", dir, cause(err))
		}
	}
	return nil
}

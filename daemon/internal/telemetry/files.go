package telemetry

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/service-dev/service/daemon/internal/statefile"
)

// lockedDir is the directory of the log and the spool. Its lock is for all processes that change files there: the
// daemon, and an agent's in-process mode in a sandbox.
type lockedDir struct {
	dir  string
	lock *statefile.Lock
}

func newLockedDir(dir string) *lockedDir {
	return &lockedDir{dir: dir, lock: statefile.NewLock(filepath.Join(dir, lockName))}
}

// withLock runs act while holding the lock. It returns an error if the path is not a directory, for example because it
// is a symbolic link.
func (a *lockedDir) withLock(act func() error) error {
	if err := makeDir(a.dir); err != nil {
		return err
	}
	return a.lock.Do(act)
}

// makeDir creates a missing directory and refuses a symbolic link. It does not create the state directory above it,
// which may have been deleted on purpose.
func makeDir(dir string) error {
	err := checkDir(dir) // check first, because the directory exists for nearly every event
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return checkDir(dir)
}

// checkDir refuses anything except a directory. Files behind a symbolic link do not belong to this program.
func checkDir(dir string) error {
	info, err := os.Lstat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s must be a directory", dir)
	}
	return err
}

// appendLine appends a line to a file. It first terminates an incomplete line, and removes a line that could not be
// written completely. A full disk thus loses one event, but not the next one.
func appendLine(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if last := [1]byte{}; size > 0 {
		if _, err := f.ReadAt(last[:], size-1); err == nil && last[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	if _, err := f.Write(line); err != nil {
		return errors.Join(err, f.Truncate(size))
	}
	return nil
}

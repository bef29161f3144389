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

// area is the directory of the log and the spool, with the lock of all processes that change files there: the daemon,
// and the in-process mode of an agent in a sandbox.
type area struct {
	dir  string
	lock *statefile.Lock
}

func newArea(dir string) *area {
	return &area{dir: dir, lock: statefile.NewLock(filepath.Join(dir, lockName))}
}

// alone runs act under the lock; nothing is done where the directory is not our own.
func (a *area) alone(act func() error) error {
	if err := makeDir(a.dir); err != nil {
		return err
	}
	return a.lock.Do(act)
}

// makeDir makes a directory that is missing, and refuses one that leads elsewhere. It never makes the state directory
// above, which may have been deleted on purpose.
func makeDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return realDir(dir)
}

// realDir refuses what is no directory, e.g. a link to one: the files behind it are not ours to delete.
func realDir(dir string) error {
	info, err := os.Lstat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory of its own", dir)
	}
	return err
}

// appendTo adds a line to a file. A torn line that is there already is ended first, and what could not be written whole
// is taken back, so that a full disk costs one event and not its neighbours.
func appendTo(path string, line []byte) error {
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

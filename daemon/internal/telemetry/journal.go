package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/service-dev/service/daemon/internal/statefile"
)

// Names of the local log, Dir/FileName, and of its older generation, which has the suffix oldSuffix.
const (
	Dir       = "telemetry"
	FileName  = "events.jsonl"
	oldSuffix = ".old"
	maxLog    = 2 << 20 // bytes, after which the file becomes the older generation
)

// journal is the local log of all events, including events that must not be uploaded.
type journal struct {
	*lockedDir
	path string
}

func newJournal(a *lockedDir) *journal {
	return &journal{lockedDir: a, path: filepath.Join(a.dir, FileName)}
}

// add appends a line. While another process holds the lock, the log grows without rotation.
func (j *journal) add(line []byte) error {
	err := j.withLock(func() error {
		if err := j.rotate(); err != nil {
			return err
		}
		return appendLine(j.path, line)
	})
	if errors.Is(err, statefile.ErrLocked) {
		return appendLine(j.path, line)
	}
	return err
}

// rotate renames a full log.
func (j *journal) rotate() error {
	info, err := os.Lstat(j.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s must be a regular file", j.path)
	case info.Size() > maxLog:
		return os.Rename(j.path, j.path+oldSuffix)
	}
	return nil
}

// clear deletes the log and its older generation, and returns the number of deleted events.
func (j *journal) clear() (events int64, err error) {
	err = j.withLock(func() error {
		var all error
		for _, path := range []string{j.path, j.path + oldSuffix} {
			data, err := statefile.Read(path, 2*maxLog)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if _, err := statefile.Remove(path); err != nil {
				all = errors.Join(all, err)
				continue
			}
			events += int64(bytes.Count(data, []byte("\n")))
		}
		return all
	})
	return events, err
}

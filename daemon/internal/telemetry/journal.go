package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/service-dev/service/daemon/internal/statefile"
)

// The local log: Dir/FileName, and one older generation beside it with oldSuffix.
const (
	Dir       = "telemetry"
	FileName  = "events.jsonl"
	oldSuffix = ".old"
	maxLog    = 2 << 20 // bytes, then the file becomes the older generation
)

// journal is the local log: every event, whether it may be uploaded or not.
type journal struct {
	path string
	mu   sync.Mutex
}

func newJournal(dir string) *journal { return &journal{path: filepath.Join(dir, FileName)} }

func (j *journal) add(line []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if info, err := os.Lstat(j.path); err == nil {
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a file", j.path)
		}
		if info.Size() > maxLog {
			if err := os.Rename(j.path, j.path+oldSuffix); err != nil {
				return err
			}
		}
	}
	return appendTo(j.path, line)
}

// clear deletes the log with its older generation and tells how many events it held.
func (j *journal) clear() (events int64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, path := range []string{j.path, j.path + oldSuffix} {
		data, readErr := statefile.Read(path, 2*maxLog)
		if errors.Is(readErr, fs.ErrNotExist) {
			continue
		}
		if _, removeErr := statefile.Remove(path); removeErr != nil {
			err = errors.Join(err, removeErr)
			continue
		}
		events += int64(bytes.Count(data, []byte("\n")))
	}
	return events, err
}

// appendTo adds a line to a file of our directory, which it makes; it never makes the state directory, which may have
// been deleted on purpose (design D5).
func appendTo(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeDirs(filepath.Dir(path)); err != nil {
			return err
		}
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}

// makeDirs makes dir and, for the spool, its parent.
func makeDirs(dir string) error {
	if filepath.Base(dir) == spoolDir {
		if err := makeDirs(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

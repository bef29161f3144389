package statefile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// ErrSymlink refuses a state file that is a symbolic link: whoever made it could point our writes elsewhere.
var ErrSymlink = errors.New("is a symbolic link")

// ErrTooLarge refuses a file that is larger than its reader expects.
var ErrTooLarge = errors.New("is larger than expected")

// ErrNotRegular refuses a directory, a pipe, a socket or a device in the place of a file.
var ErrNotRegular = errors.New("it is not a file")

// tempMark is in the name of every unfinished file, so that those of a killed writer can be found.
const tempMark = ".tmp-"

// Read reads a file of at most limit bytes. The error is fs.ErrNotExist, ErrSymlink, ErrTooLarge or the system's.
func Read(path string, limit int64) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil, fmt.Errorf("reading %s: it %w", path, ErrSymlink)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("reading %s: %w", path, ErrNotRegular)
	}
	return readAll(path, limit, openPlain)
}

// ReadFollowing is Read for a file that may be a symbolic link, as people's own settings are. Like Read it refuses a pipe
// or a device without opening it for long: such a file might never end, or never begin.
func ReadFollowing(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("reading %s: %w", path, ErrNotRegular)
	}
	return readAll(path, limit, openFollowing)
}

// readAll reads what open opens. What was swapped in since its caller looked is refused, too.
func readAll(path string, limit int64, open func(string) (*os.File, error)) ([]byte, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("reading %s: %w", path, cmp.Or(err, ErrNotRegular))
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("reading %s: it %w", path, ErrTooLarge)
	}
	return data, nil
}

// Write replaces a file in one step, with mode 0600 under any umask: whoever reads, and whatever kills the
// writer, sees the old content or the new one. A symbolic link in its place is refused.
func Write(path string, data []byte) error {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("writing %s: it %w", path, ErrSymlink)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+tempMark+"*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	err = errors.Join(fill(temp, data), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		os.Remove(temp.Name())
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return syncDir(filepath.Dir(path))
}

func fill(f *os.File, data []byte) error {
	if err := f.Chmod(0o600); err != nil && runtime.GOOS != "windows" {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Sync()
}

// Remove deletes a file durably; was is false when there was none.
func Remove(path string) (was bool, err error) {
	err = os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, syncDir(filepath.Dir(path))
}

// syncDir makes a rename or a removal durable. Windows has no such call: its rename is durable by itself.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Sweep deletes what killed writers left in dir: unfinished files older than a minute, so that a living writer's stays.
func Sweep(dir string, now time.Time) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") || !strings.Contains(e.Name(), tempMark) {
			continue
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > time.Minute {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
	return nil
}

// ReadPrivate is Read for a file that holds a secret: where other users have permissions on it, these are taken away
// first, and before is the mode that the file had; it is 0 otherwise.
func ReadPrivate(path string, limit int64) (data []byte, before fs.FileMode, err error) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().IsRegular() && shared(info) != 0 {
		if err := tighten(path, info); err != nil {
			return nil, 0, fmt.Errorf("reading %s: other users have access to it (mode %04o): %w", path, info.Mode().Perm(), cause(err))
		}
		before = info.Mode().Perm()
	}
	data, err = Read(path, limit)
	return data, before, err
}

// tighten sets mode 0600 on the very file that was looked at, and on no other that took its place.
func tighten(path string, seen fs.FileInfo) error {
	f, err := openPlain(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(info, seen) {
		return errors.New("it was replaced meanwhile")
	}
	return f.Chmod(0o600)
}

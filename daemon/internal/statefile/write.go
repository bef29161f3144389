package statefile

import (
	"bytes"
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

// ErrSymlink is returned for a state file that is a symbolic link, which could redirect writes.
var ErrSymlink = errors.New("is a symbolic link")

// ErrTooLarge is returned for a file that is larger than its reader's limit.
var ErrTooLarge = errors.New("is larger than expected")

// ErrNotRegular is returned for a path that is a directory, pipe, socket or device.
var ErrNotRegular = errors.New("not a regular file")

// tempMark is part of the name of every temporary file, so that files of killed writers can be found.
const tempMark = ".tmp-"

// Read reads a file of at most limit bytes. On failure it returns fs.ErrNotExist, ErrSymlink, ErrTooLarge or a system
// error.
func Read(path string, limit int64) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil, fmt.Errorf("read %s: it %w", path, ErrSymlink)
	}
	return readAll(path, info, limit, openPlain)
}

// ReadFollowing is like Read, but follows symbolic links, because users often link their settings. Like Read, it
// refuses a pipe or device without blocking.
func ReadFollowing(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return readAll(path, info, limit, openFollowing)
}

// readAll reads the file that open opens. It refuses a file that is not regular or that has replaced seen.
func readAll(path string, seen fs.FileInfo, limit int64, open func(string) (*os.File, error)) ([]byte, error) {
	if !seen.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: %w", path, ErrNotRegular)
	}
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: %w", path, cmp.Or(err, ErrNotRegular))
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("read %s: it %w", path, ErrTooLarge)
	}
	return data, nil
}

// errChanged is returned if another program changed a file between reading and replacing it.
var errChanged = errors.New("was changed in the meantime")

// Write replaces a file atomically, with mode 0600 regardless of the umask. Readers see either the old or the new
// content, even after a crash. It refuses a symbolic link at path.
func Write(path string, data []byte) error {
	return write(path, data, func() error { return nil })
}

// Replace is like Write, but for a file that this program did not create. It returns errChanged if the file's content
// is no longer before. It refuses a file of another user and a file that its owner made read-only.
func Replace(path string, before, data []byte) error {
	return write(path, data, func() error {
		info, err := os.Lstat(path)
		switch {
		case err != nil:
			return cause(err)
		case info.Mode().Perm()&0o200 == 0:
			return fmt.Errorf("it is read-only (mode %04o)", info.Mode().Perm())
		case !mine(info):
			return errors.New("it belongs to another user")
		}
		now, err := Read(path, int64(len(before)))
		if err != nil || !bytes.Equal(now, before) {
			return fmt.Errorf("it %w", errChanged)
		}
		return nil
	})
}

// write replaces a file if ready returns nil. ready is called immediately before the replacement.
func write(path string, data []byte, ready func() error) error {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("write %s: it %w", path, ErrSymlink)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+tempMark+"*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	err = errors.Join(fill(temp, data), temp.Close())
	if err == nil {
		err = ready()
	}
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		os.Remove(temp.Name())
		return fmt.Errorf("write %s: %w", path, err)
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

// Remove deletes a file durably. was reports whether the file existed.
func Remove(path string) (was bool, err error) {
	if err = os.Remove(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	return true, syncDir(filepath.Dir(path))
}

// syncDir makes a rename or a removal in dir durable. It is not needed on Windows.
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

// Sweep deletes the temporary files of killed writers in dir. It keeps files less than a minute old, because they may
// be in use.
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

// ReadPrivate is like Read, but for a file that contains a secret. It first removes other users' permissions. before is
// the file's previous mode if others had permissions, and 0 otherwise.
func ReadPrivate(path string, limit int64) (data []byte, before fs.FileMode, err error) {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().IsRegular() && shared(info) != 0 {
		if err := tighten(path, info); err != nil {
			return nil, 0, fmt.Errorf("read %s: other users have access to it (mode %04o): %w", path, info.Mode().Perm(),
				cause(err))
		}
		before = info.Mode().Perm()
	}
	data, err = Read(path, limit)
	return data, before, err
}

// tighten sets mode 0600 on the file that seen describes. It does not change a file that has replaced that file.
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
		return errors.New("it was replaced in the meantime")
	}
	return f.Chmod(0o600)
}

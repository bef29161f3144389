package statefile

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The refusals of a file that is not what it should be.
var (
	ErrSymlink    = errors.New("it is a symbolic link")
	ErrNotRegular = errors.New("it is not a regular file")
	ErrTooLarge   = errors.New("it is too large")
)

// tempMark stands in the name of every temporary file: ".<name>.tmp-<random>".
const tempMark = ".tmp-"

// staleTemp is the age from which a temporary file has lost its writer.
const staleTemp = time.Minute

// Read returns the whole file, at most limit bytes. It follows no symbolic link and does not wait on a pipe. A missing
// file is fs.ErrNotExist.
func Read(path string, limit int64) ([]byte, error) {
	data, err := read(path, limit)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, cause(err))
	}
	return data, nil
}

func read(path string, limit int64) ([]byte, error) {
	if err := plain(path); err != nil {
		return nil, err
	}
	f, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, ErrNotRegular
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, ErrTooLarge
	}
	return data, nil
}

// Write replaces the file in one step (design D4): at every moment it is the old or the new one, with mode 0600. The
// directory must exist.
func Write(path string, data []byte) error {
	if err := write(path, data, os.Rename); err != nil {
		return fmt.Errorf("writing %s: %w", path, cause(err))
	}
	return nil
}

// Create is Write for a file that must not exist yet; of several at once exactly one succeeds, and the others get
// fs.ErrExist.
func Create(path string, data []byte) error {
	if err := write(path, data, os.Link); err != nil {
		return fmt.Errorf("creating %s: %w", path, cause(err))
	}
	return nil
}

func write(path string, data []byte, place func(temp, path string) error) error {
	if err := plain(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	temp, err := writeTemp(path, data)
	if err != nil {
		return err
	}
	defer os.Remove(temp) // gone already after a rename
	if err := place(temp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func writeTemp(path string, data []byte) (temp string, err error) {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	temp = filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+tempMark+hex.EncodeToString(random[:]))
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(temp)
		}
	}()
	// A umask such as 0777 takes away what the owner needs.
	if err := f.Chmod(0o600); err != nil {
		return "", err
	}
	if _, err := f.Write(data); err != nil {
		return "", err
	}
	if err := f.Sync(); err != nil {
		return "", err
	}
	return temp, f.Close()
}

// Remove deletes the file; was is false when there was none.
func Remove(path string) (was bool, err error) {
	err = os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("deleting %s: %w", path, cause(err))
	}
	return true, syncDir(filepath.Dir(path))
}

// CleanTemps deletes what writers that were killed left in dir. Files younger than a minute may still have a writer.
func CleanTemps(dir string, now time.Time) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading directory %s: %w", dir, cause(err))
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, ".") || !strings.Contains(name, tempMark) || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) >= staleTemp {
			_ = os.Remove(filepath.Join(dir, name))
		}
	}
	return nil
}

// plain refuses what is not a regular file.
func plain(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return ErrSymlink
	case !info.Mode().IsRegular():
		return ErrNotRegular
	}
	return nil
}

// cause strips the operation and the path, which the callers name already.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		return l.Err
	}
	return err
}

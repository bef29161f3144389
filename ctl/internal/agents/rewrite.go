package agents

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/service-dev/service/internal/fileowner"
)

// rewrite replaces a file with the result of edit. It writes a temporary file and renames it, keeps the mode and the
// owner, and follows a symbolic link. It does not create files in another user's directory. If an agent writes the
// file in the meantime, rewrite repeats the edit.
func rewrite(file string, dry bool, edit func([]byte) ([]byte, error)) error {
	for range 5 {
		target, replaced, before, err := open(file)
		if err != nil {
			return err
		}
		after, err := edit(before)
		if err != nil || dry || bytes.Equal(before, after) {
			return err
		}
		done, err := replace(target, replaced, before, after)
		if done || err != nil {
			return err
		}
	}
	return errors.New("another program keeps writing it; close the agent and try again")
}

// open reads the file and resolves symbolic links. It treats a missing file as empty; its info is
// nil.
func open(file string) (target string, info os.FileInfo, data []byte, err error) {
	target, err = filepath.EvalSymlinks(file)
	if errors.Is(err, os.ErrNotExist) {
		if err := refuseDangling(file); err != nil {
			return "", nil, nil, err
		}
		var refused *fileowner.Error
		if err := fileowner.CheckNew(file); errors.As(err, &refused) {
			return "", nil, nil, fmt.Errorf("%w. %s", refused, refused.Fix)
		}
		return file, nil, nil, nil
	}
	if err != nil {
		return "", nil, nil, err
	}
	info, err = os.Stat(target)
	if err != nil {
		return "", nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return "", nil, nil, errors.New("not a regular file")
	}
	data, err = os.ReadFile(target)
	if hint := fileowner.ChownHint(target); errors.Is(err, os.ErrPermission) && hint != "" {
		err = fmt.Errorf("%w; the file belongs to another user: %s makes it yours", err, hint)
	}
	return target, info, data, err
}

// refuseDangling returns an error if the missing file, or a directory above it, is a symbolic link whose target does
// not exist. Only the user can decide whether to create the target or to remove the link.
func refuseDangling(file string) error {
	for path := file; ; path = filepath.Dir(path) {
		if info, err := os.Lstat(path); err == nil || path == filepath.Dir(path) {
			if err == nil && info.Mode()&os.ModeSymlink != 0 {
				target, _ := os.Readlink(path)
				return fmt.Errorf("%s is a link to %s, which does not exist; create the target or remove the link", path, target)
			}
			return nil
		}
	}
}

// replace writes after to target if target still contains before. done reports whether it wrote.
func replace(target string, replaced os.FileInfo, before, after []byte) (done bool, err error) {
	dir := filepath.Dir(target)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	temp, err := os.CreateTemp(dir, ".service-*")
	if err != nil {
		return false, err
	}
	defer os.Remove(temp.Name()) //nolint:errcheck // after a successful rename it no longer exists
	_, err = temp.Write(after)
	mode := os.FileMode(0o600)
	if replaced != nil {
		mode = replaced.Mode().Perm()
		err = errors.Join(err, fileowner.KeepOwner(temp, replaced))
	}
	if err == nil {
		err = temp.Chmod(mode)
	}
	if err == nil {
		err = temp.Sync()
	}
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return false, fmt.Errorf("write temporary file: %w", err)
	}
	now, err := os.ReadFile(target)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	if !bytes.Equal(now, before) {
		return false, nil
	}
	return true, os.Rename(temp.Name(), target)
}

// edit replaces data[start:end] with text.
type edit struct {
	start, end int
	text       string
}

// apply applies edits, which must be in order and must not overlap.
func apply(data []byte, edits []edit) []byte {
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		out.Write(data[at:e.start])
		out.WriteString(e.text)
		at = e.end
	}
	out.Write(data[at:])
	return out.Bytes()
}

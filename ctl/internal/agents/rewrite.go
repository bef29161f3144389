package agents

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// rewrite replaces a file by what edit makes of it: written beside it and renamed, its mode kept, a link followed to
// the file that it names. An agent may write its configuration at the same moment: then the edit is made again.
func rewrite(file string, dry bool, edit func([]byte) ([]byte, error)) error {
	for range 5 {
		target, mode, before, err := open(file)
		if err != nil {
			return err
		}
		after, err := edit(before)
		if err != nil || dry || bytes.Equal(before, after) {
			return err
		}
		done, err := replace(target, mode, before, after)
		if done || err != nil {
			return err
		}
	}
	return errors.New("another program keeps writing it; close the agent and try again")
}

// open reads the file and tells where it really lies. A file that is not there is empty, with mode 0600.
func open(file string) (target string, mode os.FileMode, data []byte, err error) {
	target, err = filepath.EvalSymlinks(file)
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Lstat(file); err == nil {
			return "", 0, nil, errors.New("it is a link to nothing")
		}
		return file, 0o600, nil, nil
	}
	if err != nil {
		return "", 0, nil, err
	}
	info, err := os.Stat(target)
	if err != nil {
		return "", 0, nil, err
	}
	if !info.Mode().IsRegular() {
		return "", 0, nil, errors.New("it is not a regular file")
	}
	data, err = os.ReadFile(target)
	return target, info.Mode().Perm(), data, err
}

// replace writes after unless the file is no longer before; done tells.
func replace(target string, mode os.FileMode, before, after []byte) (done bool, err error) {
	dir := filepath.Dir(target)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	temp, err := os.CreateTemp(dir, ".service-*")
	if err != nil {
		return false, err
	}
	defer os.Remove(temp.Name()) //nolint:errcheck // gone already when all went well
	_, err = temp.Write(after)
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
		return false, fmt.Errorf("writing beside it: %w", err)
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

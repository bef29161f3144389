package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Create writes a new file atomically, with mode 0600. Of several concurrent calls, exactly one succeeds and the others
// return fs.ErrExist.
func Create(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+tempMark+"*")
	if err != nil {
		return fmt.Errorf("create %s: %w", path, cause(err))
	}
	defer os.Remove(temp.Name())
	err = errors.Join(fill(temp, data), temp.Close())
	if err == nil {
		err = os.Link(temp.Name(), path) // unlike a rename, a link never replaces a file
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", path, cause(err))
	}
	return syncDir(filepath.Dir(path))
}

// cause returns err without its operation and path, which the callers add.
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

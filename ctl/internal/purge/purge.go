// Package purge removes the state directory. It removes only files that the service creates, identified by path and
// type, so that it keeps foreign files even in the service's directories. It never follows a symbolic link. It must
// not depend on commands or texts for users.
package purge

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// identity is the file that every state directory has.
const identity = "install.json"

// State is a state directory that may be removed.
type State struct {
	Dir string
	// Has contains the names of the entries that contain files of the service.
	Has map[string]bool
	// Sessions is the number of local sessions.
	Sessions int
	// Others are the paths below Dir that the service did not create. They are kept.
	Others []string
}

// ErrForeign is returned for a directory that is not a state directory of the service.
var ErrForeign = errors.New("not a state directory of the service")

// Inspect examines a state directory without changing it. It returns fs.ErrNotExist if the directory does
// not exist.
func Inspect(dir string) (State, error) {
	s := State{Dir: dir, Has: map[string]bool{}}
	root, own, others, err := look(dir)
	if err != nil {
		return s, err
	}
	root.Close()
	s.Others = others
	for _, file := range own {
		name, _, _ := strings.Cut(file, "/")
		s.Has[name] = true
		if match, _ := path.Match("sessions/*/session.json", file); match {
			s.Sessions++
		}
	}
	if len(own)+len(others) > 0 && !s.Has[identity] {
		return s, fmt.Errorf("%w: %s has no file %s", ErrForeign, dir, identity)
	}
	return s, nil
}

// open opens a directory and fails if it is a symbolic link or the home directory. Links in the directory cannot lead
// out of the returned root.
func open(dir string) (*os.Root, error) {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, fmt.Errorf("%w: %s is a symbolic link", ErrForeign, dir)
	case !info.IsDir():
		return nil, fmt.Errorf("%w: %s is not a directory", ErrForeign, dir)
	}
	if home, err := os.UserHomeDir(); err == nil {
		if of, err := os.Stat(home); err == nil && os.SameFile(info, of) {
			return nil, fmt.Errorf("%w: %s is your home directory", ErrForeign, dir)
		}
	}
	return os.OpenRoot(dir)
}

// look opens a directory and scans it.
func look(dir string) (root *os.Root, own, others []string, err error) {
	if root, err = open(dir); err != nil {
		return nil, nil, nil, err
	}
	if own, others, err = scan(root, "."); err != nil {
		root.Close()
	}
	return root, own, others, err
}

// scan returns the paths below a directory in two lists: paths that the service created, and others. The contents of
// a directory precede it. Neither list contains directories that must be kept because of their contents, or the
// contents of a foreign directory.
func scan(root *os.Root, folder string) (own, others []string, err error) {
	entries, err := fs.ReadDir(root.FS(), folder)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		name := path.Join(folder, e.Name())
		switch {
		case !isOurs(name, e):
			others = append(others, name)
		case !e.IsDir():
			own = append(own, name)
		default:
			files, kept, err := scan(root, name)
			if errors.Is(err, fs.ErrNotExist) { // the entry was deleted in the meantime
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			own, others = append(own, files...), append(others, kept...)
			if len(kept) == 0 {
				own = append(own, name)
			}
		}
	}
	return own, others, nil
}

// Remove deletes what the service created, the identity last, so that an interrupted removal can be repeated. If
// the directory is then empty, it deletes the directory too; otherwise it returns the kept paths.
func (s State) Remove() (kept []string, err error) {
	root, own, kept, err := look(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	hasIdentity := false
	for _, name := range own {
		if name == identity {
			hasIdentity = true
		} else if e := root.Remove(filepath.FromSlash(name)); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	if err == nil && hasIdentity {
		err = root.Remove(identity)
	}
	if err == nil && len(kept) == 0 {
		err = os.Remove(s.Dir)
	}
	return kept, err
}

// Left returns the paths created by the service that the directory still contains. The list is empty if the
// directory does not exist.
func (s State) Left() ([]string, error) {
	root, own, _, err := look(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		root.Close()
	}
	return own, err
}

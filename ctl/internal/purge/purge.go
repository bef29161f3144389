// Package purge removes the state directory. It removes only files that the service creates, so that a directory with
// other files keeps those, and it never follows a symbolic link. It must not depend on commands or texts for people.
package purge

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// names are the service's entries of a state directory; each may also have an ending that begins with .corrupt- or
// .tmp-. TestNamesAreThoseOfTheDocumentation keeps them complete.
var names = []string{
	"adapter.approved", "adapters.json", "auth.json", "backend", "config.yaml", "consent", "fonts", "glasses.json",
	"glasses.uncleared", "install.json", "install.lock", "log", "run", "sessions", "telemetry",
}

// identity is the file that every state directory has.
const identity = "install.json"

// State is a state directory that may be removed.
type State struct {
	Dir string
	// Has holds the service's entries that exist, by name.
	Has map[string]bool
	// Sessions is the number of local sessions.
	Sessions int
	// Others are entries that the service did not create. They are kept.
	Others []string
}

// ErrForeign means that a directory is not a state directory of the service.
var ErrForeign = errors.New("it is not a state directory of the service")

// Inspect looks at a state directory without changing it. If there is none, the error is fs.ErrNotExist.
func Inspect(dir string) (State, error) {
	s := State{Dir: dir, Has: map[string]bool{}}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return s, err
	case info.Mode()&fs.ModeSymlink != 0:
		return s, fmt.Errorf("%w: %s is a symbolic link", ErrForeign, dir)
	case !info.IsDir():
		return s, fmt.Errorf("%w: %s is not a directory", ErrForeign, dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return s, err
	}
	for _, e := range entries {
		if isOurs(e.Name()) {
			s.Has[e.Name()] = true
		} else {
			s.Others = append(s.Others, e.Name())
		}
	}
	if info, err := os.Lstat(filepath.Join(dir, identity)); len(entries) > 0 && (err != nil || !info.Mode().IsRegular()) {
		return s, fmt.Errorf("%w: %s has no file %s", ErrForeign, dir, identity)
	}
	if info, err := os.Lstat(filepath.Join(dir, "sessions")); err == nil && info.IsDir() {
		files, _ := filepath.Glob(filepath.Join(dir, "sessions", "*", "session.json"))
		s.Sessions = len(files)
	}
	return s, nil
}

func isOurs(name string) bool {
	for _, own := range names {
		end, ok := strings.CutPrefix(strings.TrimPrefix(name, "."), own)
		if ok && (end == "" || strings.HasPrefix(end, ".corrupt-") || strings.HasPrefix(end, ".tmp-")) {
			return true
		}
	}
	return strings.HasPrefix(name, ".doctor.tmp-")
}

// Remove deletes the service's entries, the identity last, so that an interrupted removal can be repeated. It deletes
// the directory itself if nothing else is in it.
func (s State) Remove() error {
	root, err := os.OpenRoot(s.Dir) // a link in it cannot lead out of it
	if err != nil {
		return err
	}
	defer root.Close()
	var failed error
	for name := range s.Has {
		if name != identity {
			failed = errors.Join(failed, root.RemoveAll(name))
		}
	}
	if failed != nil {
		return failed
	}
	if err := root.RemoveAll(identity); err != nil {
		return err
	}
	if len(s.Others) > 0 {
		return nil
	}
	return os.Remove(s.Dir)
}

// Package consent stores the user's telemetry decision in the file consent. Other packages handle events and the other
// switches that prevent an upload.
package consent

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/service-dev/service/daemon/internal/statefile"
)

// State is the user's decision on telemetry.
type State string

// Possible contents of the file. Unreadable means that the decision cannot be determined.
const (
	Accepted   State = "accepted"
	Declined   State = "declined"
	Unset      State = "unset"
	Unreadable State = "unreadable"
)

// FileName is the file's name inside the state directory.
const FileName = "consent"

// maxFile is the maximum size of the file, in bytes.
const maxFile = 4 << 10

// Store reads and writes the decision. It caches nothing, so a change by another program takes effect immediately.
type Store struct{ path string }

// New returns the store of a state directory.
func New(dir string) *Store { return &Store{path: filepath.Join(dir, FileName)} }

// Path returns the file's absolute path.
func (s *Store) Path() string { return s.path }

// Get reads the decision. A missing file is Unset. If the file cannot be read or parsed, Get returns Unreadable and an
// error.
func (s *Store) Get() (State, error) {
	data, err := statefile.Read(s.path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Unset, nil
	}
	if err != nil {
		return Unreadable, err
	}
	state, err := parse(data)
	if err != nil {
		return Unreadable, fmt.Errorf("read %s: %w", s.path, err)
	}
	return state, nil
}

// Set stores a decision; Unset removes it.
func (s *Store) Set(state State) error {
	if _, err := parse([]byte(state)); err != nil {
		return fmt.Errorf("write %s: %w", s.path, err)
	}
	return statefile.Write(s.path, []byte(string(state)+"\n"))
}

// parse returns the decision in data, ignoring surrounding white space. An empty file is Unset.
func parse(data []byte) (State, error) {
	switch state := State(strings.TrimSpace(string(data))); state {
	case Accepted, Declined, Unset:
		return state, nil
	case "":
		return Unset, nil
	}
	return "", errors.New(`decision must be "accepted", "declined" or "unset"`)
}

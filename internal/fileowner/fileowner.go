// Package fileowner checks that only this user and root can replace a file, so that it is safe to run the file. A group
// counts as other users unless it contains only this user and root. service-mcp imports this package and must start
// fast, so the package must stay small.
package fileowner

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Error reports that another user could replace a file.
type Error struct {
	Reason string // includes the path and its owner or mode
	Fix    string // the command that corrects the problem; a sentence if CheckNew returned the error
}

func (e *Error) Error() string { return e.Reason }

// CheckFile checks a file whose path contains no symbolic links, and the directories above it.
func CheckFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := checkAccess(path, info, false); err != nil {
		return err
	}
	return CheckDirectories(filepath.Dir(path))
}

// CheckDirectories checks dir and, where ancestorsMatter, the directories above it.
func CheckDirectories(dir string) error {
	for first := true; ; first = false {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		// In a directory with the sticky bit, such as /tmp, users cannot replace other users' files.
		sticky := info.Mode()&fs.ModeSticky != 0
		if err := checkAccess(dir, info, !first && sticky); err != nil {
			return err
		}
		parent := filepath.Dir(dir)
		if parent == dir || !ancestorsMatter {
			return nil
		}
		dir = parent
	}
}

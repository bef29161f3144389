package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/service-dev/service/internal/programpath"
)

// program identifies this process's executable, as found when the process started.
type program struct {
	path string      // where clients find the next daemon; may be a link that an upgrade changes; empty if unknown
	real string      // path with links resolved; its directory contains the adapters
	file fs.FileInfo // nil if the file was not found
}

// currentProgram returns this process's executable. Its path is the one under which it was called or, if that is the
// file itself, its stable path. Call it early, so that a later replacement can be detected.
func currentProgram() program {
	path, err := programpath.Called()
	if err != nil {
		return program{}
	}
	p := programAt(path)
	if p.path != p.real {
		return p
	}
	if path, err = programpath.StableSelf(); err != nil {
		return p
	}
	return programAt(path)
}

func programAt(path string) program {
	p := program{path: path, real: path}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		p.real = real
	}
	p.file, _ = os.Stat(path)
	return p
}

// isReplaced reports whether path now leads to another file, for example after an upgrade. The next daemon runs that
// file. isReplaced returns false for a missing file; see isGone.
func (p program) isReplaced() bool {
	if p.file == nil {
		return false
	}
	now, err := os.Stat(p.path)
	if err != nil {
		return false
	}
	return !os.SameFile(now, p.file) || now.Size() != p.file.Size() || !now.ModTime().Equal(p.file.ModTime())
}

// isElsewhere reports whether path now leads to another directory, for example after another version was installed next
// to this one.
func (p program) isElsewhere() bool {
	real, err := filepath.EvalSymlinks(p.path)
	return err == nil && filepath.Dir(real) != filepath.Dir(p.real)
}

// isGone reports whether the program was removed: path does not exist, so clients cannot start a daemon. It returns
// false if the program was not found at the start.
func (p program) isGone() bool { return p.file != nil && isMissing(p.path) }

// isDeleted reports whether the file of this process was deleted, and its adapters with it. Either the program was
// removed, or an upgrade switched a link to another version and removed this one.
func (p program) isDeleted() bool { return p.file != nil && (isMissing(p.path) || isMissing(p.real)) }

func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/service-dev/service/internal/programpath"
)

// program identifies this process's executable as it was when the process started.
type program struct {
	path string      // where clients find the next daemon; an upgrade may only switch a link there; empty if unknown
	real string      // path with links resolved; its folder has the adapters
	file fs.FileInfo // nil if it could not be found
}

// currentProgram returns this process's executable, under the path under which it was called or, if that is the file
// itself, under its stable path. Call it early, so that a later replacement is noticed.
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

// isReplaced reports whether another file is at the path. That happens after an upgrade; the next daemon runs the new
// file. A missing file does not count; isGone reports it.
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

// isElsewhere reports whether the path leads to another folder now, as after an installation beside this version.
func (p program) isElsewhere() bool {
	real, err := filepath.EvalSymlinks(p.path)
	return err == nil && filepath.Dir(real) != filepath.Dir(p.real)
}

// isGone reports whether the program was removed: nothing is at its path, so clients could not start a daemon. A
// program that could not be found even at the start does not count.
func (p program) isGone() bool { return p.file != nil && isMissing(p.path) }

// isDeleted reports whether the file of this process was deleted, and its adapters with it. The program is gone then,
// or an upgrade switched a link to another version and removed this one.
func (p program) isDeleted() bool { return p.file != nil && (isMissing(p.path) || isMissing(p.real)) }

func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

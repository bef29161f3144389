package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/service-dev/service/proto/programpath"
)

// program identifies this process's executable as it was when the process started.
type program struct {
	path string      // under which it was called, because an upgrade may only switch a link there; empty if unknown
	real string      // path with links resolved; the adapters are beside it
	file fs.FileInfo // nil if it could not be found
}

// currentProgram returns this process's executable. Call it early, so that a later replacement is noticed.
func currentProgram() program {
	path, err := programpath.Called()
	if err != nil {
		return program{}
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

// isGone reports whether the program was deleted: clients could not start a daemon from its path, or its adapters were
// deleted with it. A program that could not be found even at the start does not count.
func (p program) isGone() bool {
	if p.file == nil {
		return false
	}
	_, atPath := os.Stat(p.path)
	_, atReal := os.Stat(p.real)
	return errors.Is(atPath, fs.ErrNotExist) || errors.Is(atReal, fs.ErrNotExist)
}

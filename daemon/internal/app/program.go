package app

import (
	"errors"
	"io/fs"
	"os"
)

// program is the file that this process was started from, as it was then.
type program struct {
	path string // empty when the system does not tell
	file fs.FileInfo
}

// running looks at the own program file. It must be asked early: what replaces the file later is to be noticed.
func running() program {
	path, err := os.Executable()
	if err != nil {
		return program{}
	}
	file, err := os.Stat(path)
	if err != nil {
		return program{path: path}
	}
	return program{path: path, file: file}
}

// replaced tells that another file lies at the path: an upgrade, whose program the next daemon will be. A file that is
// missing is not one; gone tells of it.
func (p program) replaced() bool {
	if p.file == nil {
		return false
	}
	now, err := os.Stat(p.path)
	if err != nil {
		return false
	}
	return !os.SameFile(now, p.file) || now.Size() != p.file.Size() || !now.ModTime().Equal(p.file.ModTime())
}

// gone tells that nothing lies at the path any more: no client could start a daemon from there.
func (p program) gone() bool {
	if p.path == "" {
		return false
	}
	_, err := os.Stat(p.path)
	return errors.Is(err, fs.ErrNotExist)
}

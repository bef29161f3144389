package app

import (
	"errors"
	"io/fs"
	"os"

	"github.com/service-dev/service/proto/programpath"
)

// program identifies this process's executable as it was when the process started. path is the one under which it was
// called, because an upgrade may only switch a link there.
type program struct {
	path string // empty if the system does not report it
	file fs.FileInfo
}

// currentProgram returns this process's executable. Call it early, so that a later replacement is noticed.
func currentProgram() program {
	path, err := programpath.Called()
	if err != nil {
		return program{}
	}
	file, err := os.Stat(path)
	if err != nil {
		return program{path: path}
	}
	return program{path: path, file: file}
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

// isGone reports whether the file was deleted. Clients could then not start a daemon from that path.
func (p program) isGone() bool {
	if p.path == "" {
		return false
	}
	_, err := os.Stat(p.path)
	return errors.Is(err, fs.ErrNotExist)
}

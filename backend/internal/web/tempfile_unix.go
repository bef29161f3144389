//go:build !windows

package web

import (
	"errors"
	"os"
)

// openTempFile opens a file that has no name and that only its owner can read. The file disappears when it is closed
// or the process ends. If dir is not writable, the file is in the system's directory for temporary files.
func openTempFile(dir string) (*os.File, error) {
	file, err := os.CreateTemp(dir, ".export-*")
	if err != nil {
		var other error
		if file, other = os.CreateTemp("", ".export-*"); other != nil {
			return nil, errors.Join(err, other)
		}
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

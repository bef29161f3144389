//go:build !windows

package web

import (
	"errors"
	"os"
)

// openTempFile opens a file that has no name and that only its owner can read. The file disappears when it is closed
// or the process ends.
func openTempFile() (*os.File, error) {
	file, err := os.CreateTemp("", "export-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

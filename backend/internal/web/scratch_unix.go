//go:build !windows

package web

import (
	"errors"
	"os"
)

// scratchFile is a file without a name that only its owner may read: it is gone once it is closed, or its process was
// killed.
func scratchFile() (*os.File, error) {
	file, err := os.CreateTemp("", "export-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

//go:build unix

package adapterfile

import (
	"os"
	"syscall"
)

// openProgram opens a file for reading without blocking on a pipe.
func openProgram(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

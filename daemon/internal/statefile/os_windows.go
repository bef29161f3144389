package statefile

import (
	"io/fs"
	"os"
)

func openPlain(path string) (*os.File, error) { return os.Open(path) }

func openFollowing(path string) (*os.File, error) { return os.Open(path) }

// mine and shared rely on the access lists of the user's profile, because modes have no effect on Windows.
func mine(fs.FileInfo) bool          { return true }
func shared(fs.FileInfo) fs.FileMode { return 0 }

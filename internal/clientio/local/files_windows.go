package local

import "io/fs"

const openNonblock = 0

// isPrivate returns true. File modes have no meaning on Windows, and files in the user's profile are private.
func isPrivate(fs.FileMode) bool { return true }

// isForeign returns false, because the file modes that isPlanted checks have no meaning on Windows.
func isForeign(fs.FileInfo) bool { return false }

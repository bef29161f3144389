package local

import "io/fs"

const openNonblock = 0

// isPrivate returns true: modes have no meaning here, and files below the person's profile are private.
func isPrivate(fs.FileMode) bool { return true }

// isForeign returns false: the modes that isPlanted checks have no meaning here either.
func isForeign(fs.FileInfo) bool { return false }

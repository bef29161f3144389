package local

import "io/fs"

const openNonblock = 0

// isPrivate: a mode says nothing here; files below the person's profile are their own.
func isPrivate(fs.FileMode) bool { return true }

// isForeign returns false: modes, which isPlanted goes by, say nothing here either.
func isForeign(fs.FileInfo) bool { return false }

//go:build !unix

package scaffold

import "io/fs"

// private is not told by modes here: a profile's folders are their owner's.
func private(fs.FileMode) bool { return true }

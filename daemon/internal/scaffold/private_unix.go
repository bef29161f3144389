//go:build unix

package scaffold

import "io/fs"

// private tells whether only the owner may read a file.
func private(mode fs.FileMode) bool { return mode.Perm()&0o077 == 0 }

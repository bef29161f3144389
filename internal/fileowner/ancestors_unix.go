//go:build unix

package fileowner

import (
	"errors"
	"io/fs"
	"os"
)

// CheckAncestors returns an *Error if the owner or mode of a directory above the private directory path would let
// another user replace path or a link in it. It does not check path itself, which may be missing. It accepts
// directories that this process may not read, because opening path will then fail.
//
// It accepts a directory with the sticky bit, because path belongs to this user. Root often works below directories of
// other users, such as the mounted home of a container. For root, it refuses only directories to which every user can
// write.
func CheckAncestors(path string) error { return checkAncestors(path, os.Getuid()) }

func checkAncestors(path string, uid int) error {
	err := walk(path, func(dir, entry string, info fs.FileInfo, _ bool) error {
		if uid == 0 {
			return checkRootHolder(dir)
		}
		if err := checkHolder(dir, uid, true); err != nil {
			return err
		}
		if info == nil || info.Mode()&fs.ModeSymlink == 0 {
			return nil
		}
		return checkOwner(entry, info, uid)
	})
	var found *Error
	if errors.As(err, &found) {
		return found
	}
	return nil
}

func checkRootHolder(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil || info.Mode()&fs.ModeSticky != 0 || info.Mode()&0o002 == 0 {
		return err
	}
	return checkMode(dir, info)
}

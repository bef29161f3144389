//go:build unix

package fileowner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks is the maximum number of links to follow, as in operating systems.
const maxLinks = 40

// CheckLinks refuses an absolute path that another user could redirect to another file through a symbolic link or a
// directory in the path. It trusts the owner of the file, such as the user who installed Homebrew, because that user
// could replace the file anyway. The sticky bit of a directory does not protect a link in it, because the link is
// missing for a moment while an upgrade replaces it.
func CheckLinks(path string) error {
	file, err := os.Stat(path)
	if err != nil {
		return err
	}
	owner := os.Getuid()
	if st, ok := file.Sys().(*syscall.Stat_t); ok {
		owner = int(st.Uid)
	}
	return walk(path, func(dir, entry string, info fs.FileInfo, isLast bool) error {
		if info == nil {
			return &fs.PathError{Op: "lstat", Path: entry, Err: fs.ErrNotExist}
		}
		isLink := info.Mode()&fs.ModeSymlink != 0
		if err := checkHolder(dir, owner, !isLink && !isLast); err != nil || !isLink {
			return err
		}
		return checkOwner(entry, info, owner)
	})
}

// walk calls visit for each entry of an absolute path, with the directory that contains the entry. It follows a link
// after visiting it. It ends at an entry that does not exist, for which info is nil.
func walk(path string, visit func(dir, entry string, info fs.FileInfo, isLast bool) error) error {
	dir, rest := "/", strings.Split(path, "/")
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		next := filepath.Join(dir, name)
		if name == "" || name == "." || name == ".." {
			dir = next // dir contains no link
			continue
		}
		info, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			return visit(dir, next, nil, len(rest) == 0)
		}
		if err != nil {
			return err
		}
		if err := visit(dir, next, info, len(rest) == 0); err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			dir = next
			continue
		}
		target, err := os.Readlink(next)
		if err != nil {
			return err
		}
		if links++; links > maxLinks {
			return fmt.Errorf("%s leads through too many links", path)
		}
		if filepath.IsAbs(target) {
			dir = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return nil
}

// checkHolder checks the directory that contains an entry.
func checkHolder(dir string, owner int, stickyHelps bool) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if err := checkOwner(dir, info, owner); err != nil {
		return err
	}
	if stickyHelps && info.Mode()&fs.ModeSticky != 0 {
		return nil
	}
	return checkMode(dir, info)
}

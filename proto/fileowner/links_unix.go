//go:build unix

package fileowner

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks bounds the links that are followed, as systems do.
const maxLinks = 40

// CheckLinks refuses an absolute path that somebody else could make lead to another file: through one of the symbolic
// links in it, or a directory on the way. The owner of the file may, who can replace that anyway, such as the user who
// installed Homebrew. The sticky bit of a directory does not protect a link in it, which is absent for a moment while
// an upgrade replaces it.
func CheckLinks(path string) error {
	file, err := os.Stat(path)
	if err != nil {
		return err
	}
	owner := os.Getuid()
	if st, ok := file.Sys().(*syscall.Stat_t); ok {
		owner = int(st.Uid)
	}
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
		if err != nil {
			return err
		}
		isLink := info.Mode()&fs.ModeSymlink != 0
		if err := checkHolder(dir, owner, !isLink && len(rest) > 0); err != nil {
			return err
		}
		if !isLink {
			dir = next
			continue
		}
		if err := checkOwner(next, info, owner); err != nil {
			return err
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

// checkHolder checks the directory of an entry.
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

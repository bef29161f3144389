//go:build unix

package fileowner

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// CheckNew refuses to create a path in another user's directory. Only root could do so: under `sudo -E` a program has
// that user's HOME, and files created there by root would be unusable for the user. CheckNew accepts a directory of a
// user who is unknown on this machine, because containers mount such directories. It returns an *Error on failure.
func CheckNew(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	for dir := filepath.Clean(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil && dir != filepath.Dir(dir) {
			continue
		}
		st, ok := sysOf(info)
		if err != nil || !ok || st.Uid == 0 || isUnmapped(st.Uid) || !isKnown("/etc/passwd", st.Uid) {
			return nil
		}
		return &Error{fmt.Sprintf("this program runs as root and would create %s in %s, which belongs to user %d", path, dir,
			st.Uid), "Run it without sudo, or with sudo -H, which sets HOME to root's own directory."}
	}
}

// isKnown reports whether uid is a user who may log in, or who started this program through sudo.
func isKnown(passwd string, uid uint32) bool {
	number := strconv.FormatUint(uint64(uid), 10)
	if os.Getenv("SUDO_UID") == number {
		return true
	}
	f, err := os.Open(passwd)
	if err != nil {
		return false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Split(lines.Text(), ":"); len(fields) > 2 && fields[2] == number {
			return true
		}
	}
	return false
}

// KeepOwner gives a file the owner and group of the file that it replaces. Only root can change the owner. Other users
// keep the group if they can.
func KeepOwner(f *os.File, replaced fs.FileInfo) error {
	st, ok := sysOf(replaced)
	if !ok {
		return nil
	}
	if os.Geteuid() == 0 {
		return f.Chown(int(st.Uid), int(st.Gid))
	}
	_ = f.Chown(-1, int(st.Gid))
	return nil
}

// ChownHint returns the command that makes this user the owner of path, or "" if the user already owns it.
func ChownHint(path string) string {
	info, err := os.Lstat(path)
	st, ok := sysOf(info)
	if err != nil || !ok || int(st.Uid) == os.Getuid() {
		return ""
	}
	command := "sudo chown "
	if info.IsDir() {
		command += "-R "
	}
	return command + strconv.Itoa(os.Getuid()) + " " + shellQuote(path)
}

func sysOf(info fs.FileInfo) (*syscall.Stat_t, bool) {
	if info == nil {
		return nil, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return st, ok
}

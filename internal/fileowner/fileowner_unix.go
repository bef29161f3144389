//go:build unix

package fileowner

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// ancestorsMatter is true, because any user who can write to a directory can replace the files below it.
const ancestorsMatter = true

// checkAccess refuses a path that belongs to another user or, unless onlyOwner is set, to which other users may write.
// Where each user has a private group, a checkout is group-writable by default.
func checkAccess(path string, info fs.FileInfo, onlyOwner bool) error {
	if err := checkOwner(path, info, os.Getuid()); err != nil || onlyOwner {
		return err
	}
	return checkMode(path, info)
}

// checkOwner refuses a path that belongs neither to this user, nor to root, nor to the user with the number also.
func checkOwner(path string, info fs.FileInfo, also int) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("the owner of %s is unknown", path)
	}
	if uid := os.Getuid(); st.Uid != 0 && int(st.Uid) != uid && int(st.Uid) != also && !isUnmapped(st.Uid) {
		mode := info.Mode().Perm()
		return &Error{fmt.Sprintf("%s (mode %04o) belongs to user %d, who could replace it", path, mode, st.Uid),
			"sudo chown " + strconv.Itoa(uid) + " " + shellQuote(path)}
	}
	return nil
}

// checkMode refuses a path to which other users may write.
func checkMode(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode().Perm()
	switch {
	case !ok:
		return fmt.Errorf("the owner of %s is unknown", path)
	case mode&0o002 != 0:
		return &Error{fmt.Sprintf("%s (mode %04o) can be written by every user", path, mode), "chmod o-w " + shellQuote(path)}
	case mode&0o020 != 0 && !isPrivateGroup(int(st.Gid), os.Getuid()):
		return &Error{fmt.Sprintf("%s (mode %04o) can be written by group %d, which has other members", path, mode, st.Gid),
			"chmod g-w " + shellQuote(path)}
	}
	return nil
}

// isUnmapped reports whether uid represents all users outside the user namespace. In a sandboxed process, system
// directories appear to belong to it.
func isUnmapped(uid uint32) bool {
	overflow, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil || strings.TrimSpace(string(overflow)) != strconv.FormatUint(uint64(uid), 10) {
		return false
	}
	ids, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false
	}
	f := strings.Fields(string(ids))
	return len(f) != 3 || f[2] != "4294967295"
}

// adminGroup is macOS's group of administrators, who may become root anyway. /etc/group does not list its members.
const adminGroup = 80

// isPrivateGroup reports whether a group contains only this user and root. If accounts are stored elsewhere and
// /etc/group does not list the group, a group with the user's number is assumed to be private.
func isPrivateGroup(gid, uid int) bool {
	if gid == 0 {
		return true
	}
	if runtime.GOOS == "darwin" {
		return gid == adminGroup
	}
	return isPrivateGroupIn("/etc/passwd", "/etc/group", gid, uid)
}

func isPrivateGroupIn(passwd, group string, gid, uid int) bool {
	members, known := []string(nil), false
	for _, f := range readTable(group) {
		if len(f) >= 4 && f[2] == strconv.Itoa(gid) {
			known = true
			members = append(members, strings.FieldsFunc(f[3], func(r rune) bool { return r == ',' })...)
		}
	}
	if !known {
		return gid == uid
	}
	ours := []string{"root"}
	for _, f := range readTable(passwd) {
		if len(f) < 4 {
			continue
		}
		switch id, err := strconv.Atoi(f[2]); {
		case err == nil && (id == uid || id == 0):
			ours = append(ours, f[0])
		case f[3] == strconv.Itoa(gid): // the primary group of another user
			return false
		}
	}
	return !slices.ContainsFunc(members, func(name string) bool { return !slices.Contains(ours, name) })
}

// readTable reads the lines of passwd(5) or group(5), or none if the file cannot be read.
func readTable(path string) (lines [][]string) {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		lines = append(lines, strings.Split(strings.TrimSpace(s.Text()), ":"))
	}
	return lines
}

// shellQuote quotes a word of a shell command that the user will paste.
func shellQuote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("/._-+:@%,=", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

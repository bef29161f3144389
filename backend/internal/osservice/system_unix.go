//go:build unix

package osservice

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

func isRoot() bool { return os.Geteuid() == 0 }

// description returns the content of the file at path.
func description(path, _ string) (string, error) { return readFile(path) }

func programData() string { return "" }

// own makes the service's user the owner of a file.
func own(path string, u *user.User, mode os.FileMode) error {
	c, err := credential(u)
	if err == nil {
		err = os.Lchown(path, int(c.Uid), int(c.Gid))
	}
	if err == nil {
		err = os.Chmod(path, mode)
	}
	return err
}

// runAs makes a command run as the user with all of the user's groups, as service managers do.
func runAs(cmd *exec.Cmd, u *user.User) error {
	c, err := credential(u)
	if err != nil {
		return err
	}
	groups, err := u.GroupIds()
	for _, group := range groups {
		gid, bad := strconv.ParseUint(group, 10, 32)
		c.Groups, err = append(c.Groups, uint32(gid)), errors.Join(err, bad)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c}
	return err
}

func credential(u *user.User) (*syscall.Credential, error) {
	uid, badUID := strconv.ParseUint(u.Uid, 10, 32)
	gid, badGID := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(badUID, badGID)
}

// finish does nothing, because the user already owns every file.
func finish(spec, []string) error { return nil }

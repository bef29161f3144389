//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// asServer makes cmd run as user postgres if this process is root.
func asServer(cmd *exec.Cmd) error {
	server, err := serverUser()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: server}
	return err
}

func chown(dir string) error {
	server, err := serverUser()
	if server == nil {
		return err
	}
	return os.Chown(dir, int(server.Uid), int(server.Gid))
}

// serverUser returns user postgres if this process is root, otherwise nil.
func serverUser() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("running as root, but user postgres does not exist: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

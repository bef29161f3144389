package osservice

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc/mgr"
)

func isRoot() bool { return windows.GetCurrentProcessToken().IsElevated() }

// description returns the description of the Windows service with this name.
func description(_, name string) (string, error) {
	h, err := windows.OpenSCManager(nil, nil, windows.SC_MANAGER_CONNECT)
	if err != nil {
		return "", err
	}
	defer windows.CloseServiceHandle(h)
	wide, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return "", err
	}
	s, err := windows.OpenService(h, wide, windows.SERVICE_QUERY_CONFIG)
	if errors.Is(err, windows.ERROR_SERVICE_DOES_NOT_EXIST) {
		return "", fs.ErrNotExist
	}
	if err != nil {
		return "", err
	}
	found := &mgr.Service{Name: name, Handle: s}
	defer found.Close()
	c, err := found.Config()
	return c.Description, err
}

func programData() string {
	if dir := os.Getenv("ProgramData"); dir != "" {
		return dir
	}
	return `C:\ProgramData`
}

// own does nothing: finish sets the permissions once Windows has created the service's account.
func own(string, *user.User, os.FileMode) error { return nil }

func runAs(*exec.Cmd, *user.User) error { return nil }

// finish restricts the data directory and the created files to the service, the system and administrators.
func finish(s spec, created []string) error {
	for _, path := range append(created, s.Data) {
		rights := "M"
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			rights = "(OI)(CI)M"
		}
		args := []string{path, "/inheritance:r", "/grant:r", s.User + ":" + rights}
		for _, sid := range []string{"*S-1-5-18", "*S-1-5-32-544"} { // SIDs of the system and of administrators
			args = append(args, "/grant:r", sid+":"+rights[:len(rights)-1]+"F")
		}
		icacls := filepath.Join(os.Getenv("SystemRoot"), "System32", "icacls.exe")
		if out, err := exec.Command(icacls, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("restrict %s: %w: %s", path, err, out)
		}
	}
	return nil
}

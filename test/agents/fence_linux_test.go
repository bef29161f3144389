//go:build agents

package agents

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fenced is the environment variable that is set when the test binary runs in its own network namespace.
const fenced = "SERVICE_AGENTS_FENCED"

// fence runs the tests in a network namespace that has only loopback, so that no agent can reach the internet. If the
// system does not allow that, fence prints a note, and the tests rely on the agents' own settings.
func fence() (done bool, code int) {
	if os.Getenv(fenced) != "" {
		if err := raiseLoopback(); err != nil {
			fmt.Fprintln(os.Stderr, "raise the loopback interface:", err)
			return true, 1
		}
		return false, 0
	}
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), fenced+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		fmt.Println("NOT FENCED: cannot create a network namespace:", err)
		return false, 0
	}
	if err := cmd.Wait(); err != nil {
		return true, 1
	}
	return true, 0
}

// raiseLoopback activates lo, which is down in a new namespace.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS,
		uintptr(unsafe.Pointer(request))); errno != 0 {
		return errno
	}
	return nil
}

package dialer

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/service-dev/service/internal/problem"
)

// listenAs listens on a Unix socket as another user.
func listenAs(t *testing.T, path string, uid int) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // without unlocking: the thread keeps the other user id and ends with the goroutine
		user := uintptr(uid)
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, user, user, user); errno != 0 {
			done <- errno
			return
		}
		done <- syscall.Listen(fd, 1)
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestDial_RefusesSocketOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: listening as another user needs root")
	}
	path := filepath.Join(t.TempDir(), "mcp.sock")
	listenAs(t, path, 4242)
	conn, err := dial(path)
	p := problem.From(err)
	if p == nil || p.Code != "unsafe_directory" || !strings.Contains(p.Message, path) ||
		!strings.Contains(p.Message, "uid 4242") || p.FixHint == "" {
		t.Errorf("got %v, %v; want unsafe_directory", conn, err)
	}
}

func TestDial_AcceptsSocketOfRootAndOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.sock")
	listen(t, path)
	conn, err := dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := checkPeer(int(conn.(*os.File).Fd()), path, 1000); os.Getuid() == 0 && err != nil {
		t.Errorf("a service manager that listens as root: %v", err)
	}
}

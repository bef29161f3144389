package main

import (
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"time"
)

func TestPollable_PipesAndSockets(t *testing.T) {
	for name, create := range map[string]func(*[2]int) error{
		"pipe":   func(fds *[2]int) error { return syscall.Pipe(fds[:]) },
		"socket": socketPair,
	} {
		t.Run(name, func(t *testing.T) {
			var fds [2]int
			if err := create(&fds); err != nil {
				t.Fatal(err)
			}
			in, agent := os.NewFile(uintptr(fds[0]), "in"), os.NewFile(uintptr(fds[1]), "agent")
			out, err := os.Create(t.TempDir() + "/out")
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			got := pollable(in, out)
			defer got.Close()
			if got == in {
				t.Fatal("it is read with blocking calls")
			}
			if _, err := io.WriteString(agent, "line\n"); err != nil {
				t.Fatal(err)
			}
			if err := agent.Close(); err != nil {
				t.Fatal(err)
			}
			if err := got.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil { // fails without the poller
				t.Fatal(err)
			}
			if data, err := io.ReadAll(got); string(data) != "line\n" || err != nil {
				t.Errorf("%q, %v", data, err)
			}
		})
	}
}

// Writing to a descriptor with O_NONBLOCK fails when the reader is slow.
func TestPollable_LeavesWhatOthersMayUse(t *testing.T) {
	var fds [2]int
	if err := socketPair(&fds); err != nil {
		t.Fatal(err)
	}
	both := os.NewFile(uintptr(fds[0]), "both")
	defer both.Close()
	defer syscall.Close(fds[1])
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for name, files := range map[string][2]*os.File{
		"a socket that is also the output": {both, both}, "a file": {file, both}, "a device": {null, both},
	} {
		if got := pollable(files[0], files[1]); got != files[0] {
			t.Errorf("%s is read with the poller", name)
		}
	}
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fds[0]), syscall.F_GETFL, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	if flags&syscall.O_NONBLOCK != 0 {
		t.Error("writing to the socket no longer waits for its reader")
	}
	if err := both.SetReadDeadline(time.Time{}); !errors.Is(err, os.ErrNoDeadline) {
		t.Errorf("%v, want a file without the poller", err)
	}
}

func socketPair(fds *[2]int) (err error) {
	*fds, err = syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	return err
}

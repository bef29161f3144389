package main

import (
	"io"
	"os"
	"syscall"
	"testing"
)

// streams create what an agent may connect to standard input.
var streams = map[string]func() ([2]int, error){
	"pipe":   func() (fds [2]int, err error) { err = syscall.Pipe(fds[:]); return fds, err },
	"socket": func() ([2]int, error) { return syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0) },
}

// open returns the two ends of a stream, with blocking reads.
func open(t *testing.T, name string) (in, agent *os.File) {
	t.Helper()
	fds, err := streams[name]()
	if err != nil {
		t.Fatal(err)
	}
	in, agent = os.NewFile(uintptr(fds[0]), "in"), os.NewFile(uintptr(fds[1]), "agent")
	t.Cleanup(func() { _ = in.Close(); _ = agent.Close() })
	return in, agent
}

// readsAll checks that a message and the end of the stream are read.
func readsAll(t *testing.T, in, agent *os.File) {
	t.Helper()
	read := make(chan string, 1)
	go func() {
		data, err := io.ReadAll(in)
		if err != nil {
			t.Error(err)
		}
		read <- string(data)
	}()
	if _, err := io.WriteString(agent, "line\n"); err != nil {
		t.Fatal(err)
	}
	if err := agent.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-read; got != "line\n" {
		t.Errorf("%q", got)
	}
}

func TestPollable_PipesAndSockets(t *testing.T) {
	for name := range streams {
		t.Run(name, func(t *testing.T) {
			in, agent := open(t, name)
			got := pollable(in, os.Stderr)
			defer got.Close()
			if !polled(got) {
				t.Fatal("it is read with blocking calls")
			}
			readsAll(t, got, agent)
		})
	}
}

// The process before this one may have had the same standard input.
func TestPollable_AlreadyNonblocking(t *testing.T) {
	for name := range streams {
		t.Run(name, func(t *testing.T) {
			first, agent := open(t, name)
			defer pollable(first).Close()
			fd, err := syscall.Dup(int(first.Fd()))
			if err != nil {
				t.Fatal(err)
			}
			in := os.NewFile(uintptr(fd), "in") // as package os does for descriptor 0
			defer in.Close()
			got := pollable(in)
			if got != in || !polled(got) {
				t.Errorf("%s is not read with its poller", name)
			}
			readsAll(t, got, agent)
		})
	}
}

// Writing to a descriptor with O_NONBLOCK fails when the reader is slow.
func TestPollable_LeavesWhatOthersMayUse(t *testing.T) {
	both, _ := open(t, "socket")
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
	for name, files := range map[string][]*os.File{
		"a socket that is also stdout": {both, both, file}, "a socket that is also stderr": {both, file, both},
		"a file": {file, both, both}, "a device": {null, both, both},
	} {
		if got := pollable(files[0], files[1:]...); got != files[0] {
			t.Errorf("%s is read with the poller", name)
		}
	}
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, both.Fd(), syscall.F_GETFL, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	if flags&syscall.O_NONBLOCK != 0 {
		t.Error("writing to the socket no longer waits for its reader")
	}
}

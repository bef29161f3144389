package main

import (
	"io"
	"os"
	"syscall"
	"testing"
)

// streams create the kinds of streams that an agent may connect to standard input.
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
		t.Errorf("read %q, want the line", got)
	}
}

func isNonblocking(t *testing.T, f *os.File) bool {
	t.Helper()
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var flags uintptr
	var errno syscall.Errno
	err = raw.Control(func(fd uintptr) { flags, _, errno = syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_GETFL, 0) })
	if err != nil || errno != 0 {
		t.Fatal(err, errno)
	}
	return flags&syscall.O_NONBLOCK != 0
}

func TestPollable_PipesAndSockets(t *testing.T) {
	for name := range streams {
		t.Run(name, func(t *testing.T) {
			in, agent := open(t, name)
			got, restore := pollable(in, os.Stderr)
			defer got.Close()
			if !usesPoller(got) {
				t.Fatal("it is read with blocking calls")
			}
			readsAll(t, got, agent)
			if !isNonblocking(t, in) {
				t.Error("the poller is used without O_NONBLOCK")
			}
			if restore(); isNonblocking(t, in) {
				t.Error("whoever reads it next would not wait for data")
			}
		})
	}
}

// The previous process may have had the same standard input.
func TestPollable_AlreadyNonblocking(t *testing.T) {
	for name := range streams {
		t.Run(name, func(t *testing.T) {
			first, agent := open(t, name)
			polled, _ := pollable(first)
			defer polled.Close()
			fd, err := syscall.Dup(int(first.Fd()))
			if err != nil {
				t.Fatal(err)
			}
			in := os.NewFile(uintptr(fd), "in") // as package os does for descriptor 0
			defer in.Close()
			got, _ := pollable(in)
			if got != in || !usesPoller(got) {
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
		if got, _ := pollable(files[0], files[1:]...); got != files[0] {
			t.Errorf("%s is read with the poller", name)
		}
	}
	if isNonblocking(t, both) {
		t.Error("writing to the socket no longer waits for its reader")
	}
}

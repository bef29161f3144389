package dialer

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/service-dev/service/test/reaper"
)

// TestMain also makes this test binary act as the parent, as the child that watches it, or as a process that starts a
// daemon.
func TestMain(m *testing.M) {
	if program, ok := IsStarter(os.Args); ok {
		os.Exit(StartDetached(program))
	}
	switch os.Getenv("REACH_TEST_ROLE") {
	case "parent":
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "REACH_TEST_ROLE=child")
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			os.Exit(1)
		}
		_, _ = io.Copy(io.Discard, os.Stdin) // until the test closes stdin
		os.Exit(0)
	case "child":
		parent := os.Getppid()
		os.Stdout.WriteString("watching\n")
		AwaitParent(parent)
		os.Stdout.WriteString("gone\n")
		os.Exit(0)
	}
	os.Exit(reaper.Run(m.Run))
}

func TestAwaitParent(t *testing.T) {
	if runtime.GOOS == "windows" && testing.Short() {
		t.Skip("starts two processes")
	}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), "REACH_TEST_ROLE=parent")
	stdin, err := parent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	parent.Stdout = write
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	lines := make(chan string, 2)
	go func() {
		for in := bufio.NewScanner(stdout); in.Scan(); {
			lines <- in.Text()
		}
	}()
	next := func(want string, limit time.Duration) {
		t.Helper()
		select {
		case got := <-lines:
			if got != want {
				t.Fatalf("got line %q, want %q", got, want)
			}
		case <-time.After(limit):
			t.Fatalf("no line within %s, want %q", limit, want)
		}
	}
	next("watching", 20*time.Second)
	select {
	case got := <-lines:
		t.Fatalf("got %q while the parent was still running", got)
	case <-time.After(100 * time.Millisecond):
	}
	_ = stdin.Close()
	_ = parent.Wait()
	next("gone", 20*time.Second)
}

package reaper

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// role is the environment variable that makes this binary act as the test binary under observation.
const role = "SERVICE_TEST_REAPER_ROLE"

func TestMain(m *testing.M) {
	if how := os.Getenv(role); how != "" {
		os.Exit(Run(func() int { return endLike(how) }))
	}
	os.Exit(m.Run())
}

// endLike starts children of every kind, reports that they run, and ends in the given way.
func endLike(how string) int {
	dir := os.Getenv("TMPDIR")
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		panic(err)
	}
	for _, c := range []*exec.Cmd{
		{Env: os.Environ()},             // inherits the environment
		{Env: []string{"HOME=" + home}}, // has the directory only in its own environment
		{Env: []string{}, Dir: home},    // has the directory as its working directory
		{Env: os.Environ(), SysProcAttr: &syscall.SysProcAttr{Setsid: true}}, // outside the process group, like a daemon
	} {
		c.Path, c.Args = "/bin/sh", []string{"sh", "-c", `trap "" TERM; echo ready; while :; do sleep 60 & wait; done`}
		c.Stderr = os.Stderr
		out, err := c.StdoutPipe()
		if err != nil {
			panic(err)
		}
		if err := c.Start(); err != nil {
			panic(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			panic(fmt.Sprint(line, err))
		}
	}
	fmt.Println(dir)
	switch how {
	case "panic":
		panic("as a test does")
	case "killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "interrupted":
		_ = syscall.Kill(0, syscall.SIGINT) // to the whole process group, like Ctrl-C
		select {}
	}
	return 0
}

func TestNothingOutlivesTheBinary(t *testing.T) {
	for _, how := range []string{"returned", "panic", "killed", "interrupted"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), role+"="+how)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			cmd.WaitDelay = limit // surviving children keep its stderr open
			out, err := cmd.Output()
			if (err == nil) != (how == "returned") {
				t.Errorf("the test binary ended with error %v, want one unless it returned", err)
			}
			dir := strings.TrimSpace(string(out))
			if !strings.HasPrefix(dir, os.TempDir()) {
				t.Fatalf("the test binary's directory %q is not in the temporary directory", dir)
			}
			deadline := time.Now().Add(limit)
			for {
				left := processesOf(dir, nil)
				_, err := os.Stat(dir)
				if len(left) == 0 && os.IsNotExist(err) {
					return
				}
				if time.Now().After(deadline) {
					end(dir, nil)
					t.Fatalf("processes %v or directory %s (%v) still exist after the test binary ended", left, dir, err)
				}
				time.Sleep(pause)
			}
		})
	}
}

func TestMentions(t *testing.T) {
	for text, want := range map[string]bool{
		"/tmp/r1": true, "/tmp/r1/bin/x": true, "A=1\x00TMPDIR=/tmp/r1\x00B=2": true, "/tmp/r12": false, "/tmp/r12 /tmp/r1/x": true, "": false,
	} {
		if mentions(text, "/tmp/r1") != want {
			t.Errorf("mentions(%q): want %v", text, want)
		}
	}
}

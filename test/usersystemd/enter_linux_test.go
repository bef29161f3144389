package usersystemd

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// A killed run, for example one that exceeded a test's time limit, leaves no control group behind.
func TestEndedRunLeavesNoGroup(t *testing.T) {
	groups := cgroup2()
	if os.Getuid() != 0 || groups == "" {
		missing(t, "root and cgroup2", "run this as root on a machine that has it")
	}
	dir := directory(t)
	exe := filepath.Join(t.TempDir(), "hangs")
	if err := os.WriteFile(exe, []byte("#!/bin/sh\n: >$TMPDIR/up\nexec sleep 300\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", userScript,
		"sh", groups, dir, strconv.Itoa(nobody), exe, filepath.Dir(exe), "X")
	cmd.Env = append(os.Environ(), "BIN="+filepath.Dir(exe))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for up := filepath.Join(dir, "tmp", "up"); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(up); err == nil {
			break
		}
		select {
		case err := <-ended:
			missing(t, "permission to create namespaces", "run this on a machine that allows them: "+fmt.Sprint(err))
		default:
		}
	}
	group := filepath.Join(groups, "service-test-"+filepath.Base(dir))
	if _, err := os.Stat(group); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	<-ended
	if _, err := os.Stat(group); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the control group still exists: %v", err)
		_ = os.Remove(group)
	}
}

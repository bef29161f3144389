//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/ctl/internal/dialer"
)

// A program that exists but does not run is a failure, because the daemon and the agents could not start it.
func TestTryProgram(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		says string // "" if the program is usable
	}{
		"runs":             {"#!/bin/sh\n[ $1 = --version ] && echo service-mcp 1.2.3", 0o700, ""},
		"not executable":   {"#!/bin/sh\necho service-mcp 1.2.3", 0o600, "permission denied"},
		"empty":            {"", 0o700, "exec format error"},
		"damaged":          {"\x7fELF", 0o700, "exec format error"},
		"crashes":          {"#!/bin/sh\nkill -SEGV $$", 0o700, "segmentation fault"},
		"another program":  {"#!/bin/sh\necho other 1.2.3", 0o700, "does not print its version"},
		"prints nothing":   {"#!/bin/sh\n", 0o700, "does not print its version"},
		"ends with status": {"#!/bin/sh\necho service-mcp 1.2.3; exit 2", 0o700, "exit status 2"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "service-mcp")
			if err := os.WriteFile(path, []byte(c.text), c.mode); err != nil {
				t.Fatal(err)
			}
			err := tryProgram(t.Context(), "service-mcp", path, time.Minute)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
	hangs := filepath.Join(t.TempDir(), "service-mcp")
	if err := os.WriteFile(hangs, []byte("#!/bin/sh\nsleep 60 &\nwait"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := tryProgram(t.Context(), "service-mcp", hangs, 100*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "within 100ms") {
		t.Errorf("got %v for a program that hangs, and whose child has its output", err)
	}
	missing := filepath.Join(t.TempDir(), "service-mcp")
	if err := tryProgram(t.Context(), "service-mcp", missing, time.Minute); !os.IsNotExist(err) {
		t.Errorf("got %v for a missing program", err)
	}
}

// doctor runs without arguments, so its advice must not be to look up its usage.
func TestDoctorFailure_OfADaemonThatCannotRun(t *testing.T) {
	program := filepath.Join(t.TempDir(), "serviced")
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := askServiced(t.Context(), dialer.Daemon{Program: program}, "status")
	if err == nil {
		t.Fatal("an empty program answered")
	}
	c := failure("service", err)
	if c.Fix != "See the other checks." || !strings.HasSuffix(c.Detail, "exec format error") {
		t.Errorf("got %+v", c)
	}
}

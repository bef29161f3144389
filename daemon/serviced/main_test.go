package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBadUse(t *testing.T) {
	for _, args := range [][]string{{}, {"bogus"}, {"run", "--bogus"}, {"run", "x", "y"}, {"mcp"}, {"version", "x"}, {"run", "--managed", "--managed"}} {
		var out, errs bytes.Buffer
		if rc := Main(args, strings.NewReader(""), &out, &errs); rc != 2 || out.Len() != 0 || !strings.Contains(errs.String(), "usage: serviced") {
			t.Errorf("%q: %d %q %q", args, rc, out.String(), errs.String())
		}
	}
}

func TestVersion(t *testing.T) {
	var out, errs bytes.Buffer
	if rc := Main([]string{"version"}, strings.NewReader(""), &out, &errs); rc != 0 || !strings.HasPrefix(out.String(), "serviced ") || errs.Len() != 0 {
		t.Fatalf("%d %q %q", rc, out.String(), errs.String())
	}
}

// A service manager's plain file gets last words only, for nobody sets it aside.
func TestPlainFilesAreUnbounded(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "serviced.stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	end, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	defer pipe.Close()
	for w, want := range map[io.Writer]bool{file: true, pipe: false, io.Discard: false} {
		if got := unbounded(w); got != want {
			t.Errorf("%T: %v", w, got)
		}
	}
}

// A daemon does not start on settings that it cannot use.
func TestUnusableConfig(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SERVICE_CONFIG_DIR", dir)
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("idle_timeout: soon\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if rc := Main([]string{"run"}, strings.NewReader(""), &out, &errs); rc != 2 || !strings.Contains(errs.String(), "config.yaml: idle_timeout") {
		t.Errorf("%d %q", rc, errs.String())
	}
}

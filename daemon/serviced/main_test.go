package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/programpath"
)

// runMain runs serviced without input.
func runMain(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Main(args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestBadUse(t *testing.T) {
	for _, args := range [][]string{
		{}, {"bogus"}, {"run", "--bogus"}, {"run", "x", "y"}, {"mcp"}, {"version", "x"}, {"run", "--managed", "--managed"},
	} {
		rc, out, errs := runMain(args...)
		if rc != 2 || out != "" || !strings.Contains(errs, "serviced COMMAND") {
			t.Errorf("%q: %d %q %q", args, rc, out, errs)
		}
	}
}

// A program name of an adapter never starts a daemon.
func TestAdapterOf(t *testing.T) {
	for argv0, want := range map[string]struct{ found, isAdapter bool }{
		"serviced":                                 {false, false},
		"/usr/lib/service/serviced":                {false, false},
		"service-plugin-localsim":                  {true, true},
		"/usr/lib/service/service-plugin-localsim": {true, true},
		"service-plugin-localsim.exe":              {true, true},
		"service-plugin-other":                     {false, true},
		"service-plugin-":                          {false, true},
		"":                                         {false, false},
	} {
		if adapter, isAdapter := adapterOf(argv0); (adapter != nil) != want.found || isAdapter != want.isAdapter {
			t.Errorf("%q: found %t, adapter %t, want %+v", argv0, adapter != nil, isAdapter, want)
		}
	}
}

// serviced contains the adapter of each program plugins/service-plugin-<name>.
func TestAdapters_AreThePrograms(t *testing.T) {
	programs, err := filepath.Glob("../../plugins/" + programpath.AdapterPrefix + "*")
	if err != nil || len(programs) != len(adapters) {
		t.Errorf("serviced contains %d adapters, want one for each of %v (error %v)", len(adapters), programs, err)
	}
	for _, program := range programs {
		if adapters[filepath.Base(program)] == nil {
			t.Errorf("serviced does not contain the adapter of %s", program)
		}
	}
}

func TestVersion(t *testing.T) {
	if rc, out, errs := runMain("version"); rc != 0 || !strings.HasPrefix(out, "serviced ") || errs != "" {
		t.Fatalf("%d %q %q", rc, out, errs)
	}
}

// TestPlainFilesAreUnbounded checks which outputs are never rotated. A managed daemon does not log to such an output.
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

// A daemon with invalid settings refuses to start.
func TestUnusableConfig(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SERVICE_CONFIG_DIR", dir)
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("idle_timeout: soon\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if rc, _, errs := runMain("run"); rc != 2 || !strings.Contains(errs, "config.yaml: idle_timeout") {
		t.Errorf("%d %q", rc, errs)
	}
}

package render_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
)

// TestWasmDrawsTheSame draws every golden picture, and every language on two models, in WebAssembly as a browser
// does. It compares each picture with the one drawn by this process.
func TestWasmDrawsTheSame(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("node is missing: cannot compare with the pictures that browsers draw")
		}
		t.Skip("SKIPPED: node is missing: cannot compare with the pictures that browsers draw")
	}
	type drawing struct {
		Model glasses.DeviceModel
		View  glasses.View
	}
	var cases []drawing
	var names, want []string
	add := func(m glasses.DeviceModel, name string, v glasses.View) {
		cases = append(cases, drawing{m, v})
		names = append(names, m.ID+"/"+name)
		want = append(want, caseHash(m, name, v))
	}
	for _, m := range panels() {
		for _, g := range goldens() {
			add(m, g.name, g.of(t))
		}
		for _, l := range translations(t) {
			add(m, l.name, l.view(m))
		}
	}
	input, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}

	program := filepath.Join(t.TempDir(), "draw.wasm")
	build := exec.Command("go", "build", "-o", program, "./testdata/wasm")
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command(node, filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec_node.js"),
		program)
	run.Env = []string{"PATH=" + os.Getenv("PATH")} // Go's loader refuses large environments
	run.Stdin = bytes.NewReader(input)
	var complaints bytes.Buffer
	run.Stderr = &complaints
	out, err := run.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, complaints.Bytes())
	}
	got := strings.Fields(string(out))
	if len(got) != len(want) {
		t.Fatalf("got %d pictures, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("the picture of %s in WebAssembly differs from the one on %s/%s", names[i], runtime.GOOS, runtime.GOARCH)
		}
	}
}

package render_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/service-dev/service/proto/glasses"
	"github.com/service-dev/service/proto/glasses/render"
)

// TestWasmDrawsTheSame draws every golden in WebAssembly, as a browser does, and compares it with what this process
// draws.
func TestWasmDrawsTheSame(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("node is missing: nothing shows that browsers draw the same pictures")
		}
		t.Skip("SKIPPED: node is missing, so nothing shows here that browsers draw the same pictures")
	}
	type drawing struct {
		Model glasses.DeviceModel
		View  glasses.View
	}
	var cases []drawing
	var names, want []string
	for _, m := range panels() {
		for _, g := range goldens() {
			cases = append(cases, drawing{m, g.of(t)})
			names = append(names, m.ID+"/"+g.name)
			want = append(want, fmt.Sprintf("%x", sha256.Sum256(render.PNG(render.Draw(m, g.of(t))))))
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
		t.Fatalf("%d pictures of %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s is another picture in WebAssembly than on %s/%s", names[i], runtime.GOOS, runtime.GOARCH)
		}
	}
}

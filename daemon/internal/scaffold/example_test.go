package scaffold

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses/guide"
)

// exampleProject writes only an example and the module that it needs to a folder.
func exampleProject(t *testing.T, dir, language, topic string) Example {
	t.Helper()
	e, err := ExampleOf(language, topic)
	if err != nil {
		t.Fatal(err)
	}
	files, err := Generate(Request{Language: language, Capabilities: e.Capabilities})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, e.Name), []byte(e.Code))
	write(t, filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`))
	for _, f := range files {
		write(t, filepath.Join(dir, "service", f.Name), f.Data)
	}
	return e
}

// TestTypeScriptCompiles, TestPythonTypes and TestKotlinCompiles check the other examples.
func TestExamplesParse_InSwift(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var swift []string
	for _, topic := range ExampleTopicIDs() {
		exampleProject(t, filepath.Join(dir, topic), Swift, topic)
		swift = append(swift, filepath.Join(topic, topic+".swift"))
	}
	npm, _ := filepath.Abs(filepath.Join("..", "..", "..", "test", "e2e", "npm"))
	if _, err := os.Stat(filepath.Join(npm, "node_modules", "web-tree-sitter")); err != nil {
		t.Log("SKIPPED in part: the Swift grammar is not installed (make npm)")
	} else if node := tool(t, "node"); node != "" {
		mustRun(t, dir, node, append([]string{"--liftoff-only", filepath.Join(npm, "parse-swift.mjs")}, swift...)...)
	}
}

// Every example runs: it handles a sequence of events and exits when the session ends.
func TestExamplesRun(t *testing.T) {
	t.Parallel()
	for _, v := range variants(t) {
		if v.language == Kotlin || v.compiled {
			continue // TestKotlinCompiles compiles them, and JavaScript behaves the same
		}
		for _, topic := range ExampleTopicIDs() {
			t.Run(v.name+"/"+topic, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				e := exampleProject(t, dir, v.language, topic)
				s := newService(t)
				write(t, filepath.Join(dir, "secret"), []byte(secret))
				cmd := exec.Command(v.command[0], e.Name)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "SERVICE_GLASSES_URL="+s.url,
					"SERVICE_GLASSES_SECRET_FILE="+filepath.Join(dir, "secret"), "NODE_NO_WARNINGS=1")
				var out bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &out
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				p := s.accept(0)
				if slices.Contains([]string{"hello", "buttons", "photo", "state", "timer"}, topic) {
					p.awaitRedraw()
				}
				trace := playDesk(p, false)
				if err := cmd.Wait(); err != nil {
					t.Errorf("the example exited with %v, want success: %s", err, out.String())
				}
				for _, id := range e.Capabilities {
					if c, _ := guide.CapabilityOf(id); len(c.Commands) > 0 && !strings.Contains(trace, c.Commands[0]) {
						t.Errorf("the example requests %s but sent no such command:\n%s", id, trace)
					}
				}
			})
		}
	}
}

func TestExampleRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range [][2]string{{"cobol", "hello"}, {Python, "../hello"}, {Python, ""}} {
		if _, err := ExampleOf(test[0], test[1]); codeOf(err) == "" {
			t.Errorf("%v: %v", test, err)
		}
	}
}

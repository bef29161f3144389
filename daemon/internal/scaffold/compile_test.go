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
	"github.com/service-dev/service/test/runtimes"
)

// someSets contains all capabilities, the default, and a set that needs half of the private parts.
func someSets() map[string][]string {
	return map[string][]string{"all": guide.CapabilityIDs(), "default": nil,
		"some": {guide.Camera, guide.State, guide.Phrases}}
}

// capabilitySets contains someSets and each capability alone.
func capabilitySets() map[string][]string {
	sets := someSets()
	for _, id := range guide.CapabilityIDs() {
		sets[id] = []string{id}
	}
	return sets
}

// generateInto writes a language's module for each set of capabilities to a separate folder.
func generateInto(t *testing.T, language string, sets map[string][]string) (dir string, files []string) {
	t.Helper()
	dir = t.TempDir()
	for name, capabilities := range sets {
		module, err := Generate(Request{Language: language, Capabilities: capabilities})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range module {
			path := filepath.Join(dir, name, f.Name)
			write(t, path, f.Data)
			files = append(files, path)
		}
	}
	slices.Sort(files)
	return dir, files
}

func mustRun(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
}

func TestPythonCompiles(t *testing.T) {
	t.Parallel()
	dir, files := generateInto(t, Python, capabilitySets())
	for _, python := range runtimes.Python(t) {
		mustRun(t, dir, python.Path, append([]string{"-W", "error", "-m", "py_compile"}, files...)...)
	}
}

// mypy checks the module strictly, and the examples with its defaults.
func TestPythonTypes(t *testing.T) {
	t.Parallel()
	mypy := tool(t, "mypy")
	if mypy == "" {
		t.Skip("SKIPPED: mypy is not installed (apt-get install mypy)")
	}
	dir, files := generateInto(t, Python, someSets())
	cache := "--cache-dir=" + t.TempDir() // for the standard library
	for _, file := range files {
		mustRun(t, dir, mypy, cache, "--strict", file)
	}
	for _, topic := range ExampleTopicIDs() {
		e := exampleProject(t, filepath.Join(dir, topic), Python, topic)
		mustRun(t, filepath.Join(dir, topic), mypy, cache, e.Name)
	}
}

func TestKotlinCompiles(t *testing.T) {
	t.Parallel()
	if kotlinProbe(t) == "" {
		t.Skip("SKIPPED: kotlinc is not installed")
	}
}

// There is no Swift compiler on this machine. A grammar checks the module's syntax but not its types.
func TestSwiftParses(t *testing.T) {
	t.Parallel()
	node := tool(t, "node")
	npm, err := filepath.Abs(filepath.Join("..", "..", "..", "test", "e2e", "npm"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(npm, "node_modules", "web-tree-sitter")); err != nil || node == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("the Swift grammar is missing; CI must install it")
		}
		t.Skip("SKIPPED: the Swift grammar is not installed (make npm)")
	}
	parse := filepath.Join(npm, "parse-swift.mjs")
	dir, files := generateInto(t, Swift, map[string][]string{"all": guide.CapabilityIDs(), "default": nil,
		"some": {guide.Camera, guide.State}})
	documented := filepath.Join(dir, "attestation.swift")
	write(t, documented, []byte(exampleOf(t, "```swift attestation\n")))
	mustRun(t, dir, node, append([]string{"--liftoff-only", parse, documented}, files...)...)

	broken := filepath.Join(dir, "broken.swift")
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	write(t, broken, bytes.Replace(data, []byte("public final class Glasses"), []byte("public final class Glasses {{"), 1))
	if exec.Command(node, "--liftoff-only", parse, broken).Run() == nil {
		t.Error("the grammar accepts text that is not Swift")
	}
}

// Equal requests produce the same bytes, regardless of the order of their capabilities, and contain only the requested
// parts.
func TestGenerateIsMinimal(t *testing.T) {
	t.Parallel()
	marks := map[string][]string{ // words that the module contains only for one capability
		guide.Display: {"display.show"}, guide.Camera: {"camera.photo",
			"media_lost\""}, guide.Microphone: {"audio.start"}, guide.Motion: {"motion.start"},
		guide.Transcription: {"transcription.start"}, guide.Speech: {"speech.say"}, guide.Sound: {"sound.play"},
		guide.Phrases: {"phrases.announce"},
	}
	for _, language := range Languages() {
		for id := range marks {
			files, err := Generate(Request{Language: language, Capabilities: []string{id, guide.State, id}})
			if err != nil {
				t.Fatal(err)
			}
			again, _ := Generate(Request{Language: language, Capabilities: []string{guide.State, guide.Time, id}})
			text := string(files[0].Data)
			if text != string(again[0].Data) {
				t.Errorf("%s with %s: two runs produced different text", language, id)
			}
			for other, words := range marks {
				if strings.Contains(text, `"`+words[0]+`"`) != (other == id) {
					t.Errorf("%s with %s: contains %q: %v; want it only for its own capability",
						language, id, words[0], other != id)
				}
			}
			if strings.Contains(text, "//: ") || strings.Contains(text, "#: ") || !strings.Contains(text, "clock.sleep") {
				t.Errorf("%s with %s: a template mark is left, or time is missing", language, id)
			}
		}
	}
}

func TestGenerateRefuses(t *testing.T) {
	t.Parallel()
	for _, r := range []Request{{Language: "cobol"}, {Language: Python, Capabilities: []string{"smell"}}, {}} {
		if _, err := Generate(r); err == nil {
			t.Errorf("Generate accepted %+v", r)
		}
	}
}

// tool finds a program in test/e2e/npm or on the machine. Without it the test is skipped; in CI it fails.
func tool(t *testing.T, name string) string {
	t.Helper()
	if path, err := filepath.Abs(filepath.Join("..", "..", "..", "test", "e2e", "npm", "node_modules", ".bin",
		name)); err == nil {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	if path, err := exec.LookPath(name); err == nil && name != "node" {
		return path
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is missing; CI must install it", name)
	}
	t.Logf("SKIPPED in part: %s is not installed", name)
	return ""
}

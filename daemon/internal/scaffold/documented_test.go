package scaffold

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-dev/service/docs"
	"github.com/service-dev/service/glasses/guide"
)

// TestModuleExamplesFitTheModule checks the examples that use a generated module against that module.
func TestModuleExamplesFitTheModule(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, language := range []string{TypeScript, Python} {
		files, err := Generate(Request{Language: language, Capabilities: guide.CapabilityIDs()})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			writeText(t, filepath.Join(root, "service", f.Name), string(f.Data))
		}
	}
	tsc, err := filepath.Abs(filepath.Join("..", "..", "..", "test", "e2e", "npm", "node_modules", ".bin", "tsc"))
	if err != nil {
		t.Fatal(err)
	}
	writeText(t, filepath.Join(root, "app.ts"), exampleOf(t, "```ts module\n"))
	writeText(t, filepath.Join(root, "assistant.ts"), exampleOf(t, "```ts\n"))
	writeText(t, filepath.Join(root, "questions.ts"), exampleOf(t, "```ts assistant\n"))
	writeText(t, filepath.Join(root, "conversation.ts"), exampleOf(t, "```ts conversation\n"))
	writeText(t, filepath.Join(root, "app.py"), exampleOf(t, "```py module\n"))
	for _, check := range [][]string{
		{tsc, "--noEmit", "--strict", "--target", "es2022", "--module", "es2022", "--moduleResolution", "bundler",
			"--lib", "ES2023,DOM,DOM.Iterable", "app.ts", "assistant.ts", "questions.ts",
			"conversation.ts"},
		{"python3", "-c", pythonNames},
	} {
		if _, err := exec.LookPath(check[0]); err != nil {
			if os.Getenv("CI") != "" {
				t.Errorf("%s is missing", filepath.Base(check[0]))
			}
			t.Logf("SKIPPED: %s is not installed", filepath.Base(check[0]))
			continue
		}
		cmd := exec.Command(check[0], check[1:]...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", filepath.Base(check[0]), err, out)
		}
	}
}

// pythonNames imports the module and checks every attribute of glasses that the example uses.
const pythonNames = `import ast
from service import glasses
tree = ast.parse(open("app.py").read())
for node in ast.walk(tree):
    if isinstance(node, ast.ImportFrom):
        for name in node.names: getattr(glasses, name.name)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "glasses":
        getattr(glasses.Glasses, node.attr)
`

func exampleOf(t *testing.T, mark string) string {
	t.Helper()
	for _, p := range docs.Pages() {
		if _, after, ok := strings.Cut(p.Markdown, mark); ok {
			text, _, _ := strings.Cut(after, "\n```")
			return text + "\n"
		}
	}
	t.Fatalf("no example begins with %q", mark)
	return ""
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

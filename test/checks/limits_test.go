package checks

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxFunctionLines does not apply to tests, whose tables and sequences are easier to read in one piece.
const maxFunctionLines = 80

func TestFunctions_AreShort(t *testing.T) {
	for _, name := range goFiles(t, false) {
		files := token.NewFileSet()
		tree, err := parser.ParseFile(files, name, readFile(t, name), parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				if n := files.Position(f.End()).Line - files.Position(f.Pos()).Line + 1; n > maxFunctionLines {
					t.Errorf("%s: %s has %d lines, the maximum is %d", name, f.Name.Name, n, maxFunctionLines)
				}
			}
		}
	}
}

// goFiles returns the paths of the hand-written Go files of the repository.
func goFiles(t *testing.T, tests bool) []string {
	t.Helper()
	out, err := exec.Command("git", "-C", root, "ls-files", "*.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Fields(string(out)), func(name string) bool {
		return !tests && strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".pb.go") ||
			strings.Contains(name, "testdata/")
	})
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

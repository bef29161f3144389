package checks

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"
)

// Limits that keep code readable.
const (
	maxFileLines = 400
	// maxFunctionLines does not apply to tests, whose tables and sequences are easier to read in one piece.
	maxFunctionLines = 80
	maxColumns       = 120
	// maxLongLines is the permitted number of lines over maxColumns per 1000 lines, because some texts and statements
	// are clearer on one line.
	maxLongLines = 5
)

func TestFiles_AreShort(t *testing.T) {
	for _, name := range goFiles(t, true) {
		if n := bytes.Count(readFile(t, name), []byte("\n")); n > maxFileLines {
			t.Errorf("%s has %d lines, the maximum is %d: split it by subject", name, n, maxFileLines)
		}
	}
}

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

func TestLines_FitTheColumns(t *testing.T) {
	lines, long := 0, map[string]int{}
	total := 0
	for _, name := range goFiles(t, false) {
		for line := range bytes.Lines(readFile(t, name)) {
			lines++
			if columns(line) > maxColumns {
				long[name]++
				total++
			}
		}
	}
	if total*1000 > lines*maxLongLines {
		t.Errorf("%d of %d lines are longer than %d columns, the maximum is %d per 1000; most of them are in\n%s",
			total, lines, maxColumns, maxLongLines, most(long))
	}
	t.Logf("%d of %d lines are over %d columns", total, lines, maxColumns)
}

func columns(line []byte) int {
	return utf8.RuneCount(bytes.TrimRight(line, "\r\n"))
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

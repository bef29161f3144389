package checks

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	// repeatLines is the number of consecutive lines that count as a repeat if they occur twice. Shorter runs are
	// common in all Go code, and their share grows with the code.
	repeatLines = 8
	// maxRepeated is the maximum number of repeated lines per 1,000 function lines. It may only be lowered.
	maxRepeated = 4
)

// sourceLine is a line of a function, with its names and literals replaced by placeholders.
type sourceLine struct {
	file   string
	number int
	text   string
}

// Repeats are found even if the names in them differ. Generated code, tests and templates that ship are not checked.
func TestFunctions_RepeatLittle(t *testing.T) {
	windows, total := map[string][][]sourceLine{}, 0
	for _, name := range goFiles(t, false) {
		for _, lines := range functionLines(t, name) {
			total += len(lines)
			for i := 0; i+repeatLines <= len(lines); i++ {
				window := lines[i : i+repeatLines]
				key := windowKey(window)
				windows[key] = append(windows[key], window)
			}
		}
	}
	repeated := map[sourceLine]bool{}
	for _, places := range windows {
		if len(places) < 2 {
			continue
		}
		for _, window := range places {
			for _, line := range window {
				repeated[line] = true
			}
		}
	}
	if len(repeated) > total*maxRepeated/1000 {
		t.Errorf("%d of %d lines of functions belong to runs of %d that occur more than once, the maximum is %d; most are "+
			"in\n%s", len(repeated), total, repeatLines, total*maxRepeated/1000, worst(repeated))
	}
	t.Logf("%d of %d lines are repeated", len(repeated), total)
}

func windowKey(window []sourceLine) string {
	var key strings.Builder
	for _, line := range window {
		key.WriteString(line.text + "\n")
	}
	return key.String()
}

// worst lists the packages with the most repeated lines.
func worst(repeated map[sourceLine]bool) string {
	count := map[string]int{}
	for line := range repeated {
		count[filepath.Dir(line.file)]++
	}
	return most(count)
}

// most lists the ten names with the highest counts.
func most(count map[string]int) string {
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return count[b] - count[a] })
	var out strings.Builder
	for _, name := range names[:min(10, len(names))] {
		fmt.Fprintf(&out, "%5d %s\n", count[name], name)
	}
	return out.String()
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

// functionLines returns the lines of a file's functions, without blank lines and comments.
func functionLines(t *testing.T, name string) (functions [][]sourceLine) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	tree, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	texts := normalise(source)
	for _, d := range tree.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		var lines []sourceLine
		for n := files.Position(f.Pos()).Line; n <= files.Position(f.Body.Rbrace).Line; n++ {
			if texts[n] != "" {
				lines = append(lines, sourceLine{name, n, texts[n]})
			}
		}
		functions = append(functions, lines)
	}
	return functions
}

// normalise returns the tokens of each line by line number, with names and literals replaced by placeholders.
func normalise(source []byte) map[int]string {
	texts := map[int]string{}
	file := token.NewFileSet().AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, bytes.Clone(source), nil, 0)
	for {
		pos, tok, _ := s.Scan()
		word := tok.String()
		switch {
		case tok == token.EOF:
			return texts
		case tok == token.SEMICOLON:
			continue
		case tok == token.IDENT:
			word = "name"
		case tok.IsLiteral():
			word = "literal"
		}
		texts[file.Line(pos)] += word + " "
	}
}

package checks

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/service-dev/service/docs"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
)

// section returns the text of a section of the documentation, in the form page#anchor.
func section(t *testing.T, id string) string {
	t.Helper()
	name, _, _ := strings.Cut(id, "#")
	page, _ := docs.Find(name)
	for _, s := range page.Sections {
		if s.ID == id {
			return s.Markdown
		}
	}
	t.Errorf("the documentation has no section %s", id)
	return ""
}

// TestEveryCodeIsDocumented checks that each code is in the table once, and in the section that the table names.
func TestEveryCodeIsDocumented(t *testing.T) {
	seen := map[string]bool{}
	for _, info := range problem.Table() {
		text := section(t, info.Doc)
		for _, code := range info.Codes {
			if seen[code] || !strings.Contains(text, "`"+code+"`") {
				t.Errorf("%s is in the table twice, or not in the section %s", code, info.Doc)
			}
			seen[code] = true
		}
	}
	for _, code := range append(glasses.CommandCodes(), glasses.CodeBadPayload) {
		section(t, "errors#"+docs.Anchor(code))
	}
}

// TestEveryCodeIsInTheTable checks every code in the programs' source: constants, and literals in errors. The codes of
// frames belong to package glasses, the codes of file operations to the two packages clientio.
func TestEveryCodeIsInTheTable(t *testing.T) {
	known := []string{"bad_frame", "id_reused", "unreachable"}
	known = append(append(known, glasses.CommandCodes()...), glasses.CodeBadPayload)
	for _, info := range problem.Table() {
		known = append(known, info.Codes...)
	}
	code := regexp.MustCompile(`(?m)^\s*(?:const )?[cC]ode[A-Z]\w*\s*=\s*"([a-z_]+)"|\bCode:\s*"([a-z_]+)"|` +
		`\bproblem\.New\("([a-z_]+)"`)
	found := 0
	sources(t, func(path, text string) {
		if strings.Contains(path, filepath.Join("internal", "clientio")) {
			return
		}
		for _, m := range code.FindAllStringSubmatch(text, -1) {
			if found++; !slices.Contains(known, m[1]+m[2]+m[3]) {
				t.Errorf("%s: the code %s is not in the table of internal/problem", path, m[1]+m[2]+m[3])
			}
		}
	}, "daemon", "ctl", "plugins", "backend", "glasses", "proto", "internal", "docs")
	if found < 100 {
		t.Errorf("found only %d codes, want at least 100", found)
	}
}

// TestHintsAreSentences checks how the literals of fix hints begin and end: with a capital letter and a full stop. A
// hint is a field FixHint, or the last argument of a function that creates an error.
func TestHintsAreSentences(t *testing.T) {
	found := 0
	sources(t, func(path, text string) {
		creators := []string{"problem.New", "invalidRequest"}
		if strings.Contains(filepath.ToSlash(path), "daemon/internal/tools/") {
			creators = append(creators, "invalid", "missing")
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			hint := hintOf(n, creators)
			begin, end := edge(hint, true), edge(hint, false)
			if hint == nil || begin+end == "" {
				return true
			}
			found++
			if begin != "" && !regexp.MustCompile("^[A-Z%]").MatchString(begin) ||
				end != "" && !regexp.MustCompile(`(\.|%[sd])$`).MatchString(end) {
				t.Errorf("%s: the hint %q ... %q is not a sentence", files.Position(n.Pos()), begin, end)
			}
			return true
		})
	}, "daemon", "ctl", "plugins", "backend", "glasses", "internal")
	if found < 300 {
		t.Errorf("found only %d hints, want at least 300", found)
	}
}

// hintOf returns the expression of the hint that a node contains, or nil. creators are the functions whose last
// argument is a hint.
func hintOf(n ast.Node, creators []string) ast.Expr {
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if name, ok := n.Key.(*ast.Ident); ok && name.Name == "FixHint" {
			return n.Value
		}
	case *ast.CallExpr:
		var name string
		switch called := n.Fun.(type) {
		case *ast.Ident:
			name = called.Name
		case *ast.SelectorExpr:
			if of, ok := called.X.(*ast.Ident); ok {
				name = of.Name + "." + called.Sel.Name
			}
		}
		if slices.Contains(creators, name) {
			return n.Args[len(n.Args)-1]
		}
	}
	return nil
}

// edge returns the literal with which the text of an expression begins or ends, or "" if that is not a literal.
func edge(e ast.Expr, first bool) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		if first {
			return edge(e.X, first)
		}
		return edge(e.Y, first)
	case *ast.CallExpr: // fmt.Sprintf
		if called, ok := e.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "Sprintf" {
			return edge(e.Args[0], first)
		}
	}
	return ""
}

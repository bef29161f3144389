package app

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mountedRoutes reads the patterns of every call of mux.Handle and mux.HandleFunc, and the map keys in every call of
// mount. A pattern may be a literal, a constant, a concatenation of these, or the variable of a loop over a list or
// map of them. Any other expression fails the test, so that no route is missed.
func mountedRoutes(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		s := source{t: t, name: name, constants: map[string]ast.Expr{}, loops: map[string][]ast.Expr{}}
		ast.Inspect(file, s.visit)
		if n := strings.Count(string(text), "mux.Handle") + strings.Count(string(text), "mount(mux"); n != s.calls {
			t.Errorf("%s: parsed %d of %d calls of mux.Handle and mount, want all", name, s.calls, n)
		}
		found = append(found, s.found...)
	}
	return found
}

// source is a file visited by ast.Inspect, which visits declarations before their uses.
type source struct {
	t         *testing.T
	name      string
	constants map[string]ast.Expr
	loops     map[string][]ast.Expr // values of a loop variable
	found     []string
	calls     int
}

func (s *source) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if i < len(n.Values) {
				s.constants[name.Name] = n.Values[i]
			}
		}
	case *ast.RangeStmt:
		s.loop(n)
	case *ast.FuncDecl:
		if n.Name.Name == "mount" { // its callers supply the pattern
			s.calls += 2 // for the declaration's own name and its mux.Handle call
			return false
		}
	case *ast.CallExpr:
		if s.mount(n) {
			break
		}
		call, ok := n.Fun.(*ast.SelectorExpr)
		if !ok || call.Sel.Name != "Handle" && call.Sel.Name != "HandleFunc" || len(n.Args) != 2 {
			break
		}
		if on, ok := call.X.(*ast.Ident); ok && on.Name == "mux" {
			s.calls++
			s.add(n.Args[0])
		}
	}
	return true
}

// mount reads the map keys in mount(mux, wrap, map[string]handler{...}).
func (s *source) mount(n *ast.CallExpr) bool {
	name, ok := n.Fun.(*ast.Ident)
	if !ok || name.Name != "mount" || len(n.Args) != 3 {
		return false
	}
	pages, ok := n.Args[2].(*ast.CompositeLit)
	if !ok {
		return false
	}
	s.calls++
	for _, e := range pages.Elts {
		s.found = append(s.found, s.value(e.(*ast.KeyValueExpr).Key))
	}
	return true
}

func (s *source) loop(n *ast.RangeStmt) {
	from := n.X
	if table, ok := from.(*ast.Ident); ok {
		from = s.constants[table.Name]
	}
	list, ok := from.(*ast.CompositeLit)
	if !ok {
		return
	}
	for _, e := range list.Elts {
		variable := n.Value
		if row, ok := e.(*ast.KeyValueExpr); ok { // the keys of a map are the patterns
			e, variable = row.Key, n.Key
		}
		if value, ok := variable.(*ast.Ident); ok {
			s.loops[value.Name] = append(s.loops[value.Name], e)
		}
	}
}

func (s *source) add(e ast.Expr) {
	if variable, ok := e.(*ast.Ident); ok && len(s.loops[variable.Name]) > 0 {
		for _, one := range s.loops[variable.Name] {
			s.found = append(s.found, s.value(one))
		}
		delete(s.loops, variable.Name) // each loop has its own variable
		return
	}
	s.found = append(s.found, s.value(e))
}

func (s *source) value(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.StringVal(constant.MakeFromLiteral(e.Value, e.Kind, 0))
	case *ast.BinaryExpr:
		return s.value(e.X) + s.value(e.Y)
	case *ast.Ident:
		if is, ok := s.constants[e.Name]; ok {
			return s.value(is)
		}
	}
	s.t.Errorf("%s: cannot parse a route pattern", s.name)
	return ""
}

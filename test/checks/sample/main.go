// Command sample draws texts of the repository for a reader who judges how they are written: comments and messages of
// the Go code, and texts for users. The same seed draws the same texts from the same tree:
//
//	go run ./test/checks/sample "$(git rev-parse HEAD)"
package main

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"hash/fnv"
	"html"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	comments = 70
	messages = 30 // errors and log lines
	texts    = 40
	minWords = 5 // a text with fewer is not drawn
)

var word = regexp.MustCompile(`\b[A-Za-z]+\b`)

// found is a text and its place.
type found struct{ place, text string }

// pool is the texts to draw from.
type pool struct{ comments, messages, texts []found }

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sample SEED, such as a commit's hash")
		os.Exit(2)
	}
	p, err := collect()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sample:", err)
		os.Exit(1)
	}
	h := fnv.New64a()
	h.Write([]byte(os.Args[1]))
	random := rand.New(rand.NewPCG(h.Sum64(), 0)) // #nosec G404 -- the draw must be repeatable
	number := 0
	for _, part := range []struct {
		title string
		from  []found
		n     int
	}{{"Comments", p.comments, comments}, {"Errors and logs", p.messages, messages}, {"Texts for users", p.texts, texts}} {
		fmt.Printf("# %s (%d of %d)\n\n", part.title, min(part.n, len(part.from)), len(part.from))
		random.Shuffle(len(part.from), func(i, j int) { part.from[i], part.from[j] = part.from[j], part.from[i] })
		for _, f := range part.from[:min(part.n, len(part.from))] {
			number++
			fmt.Printf("%d. %s\n   %s\n", number, f.place, strings.ReplaceAll(f.text, "\n", "\n   "))
		}
		fmt.Println()
	}
}

// collect reads the tracked files that ship. It leaves out tests, their programs and generated code.
func collect() (*pool, error) {
	list, err := exec.CommandContext(context.Background(), "git", "ls-files").Output()
	if err != nil {
		return nil, fmt.Errorf("list the tracked files: %w", err)
	}
	p := &pool{}
	for _, path := range strings.Fields(string(list)) {
		if strings.HasPrefix(path, "test/") || strings.Contains(path, "testdata") ||
			strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".pb.go") {
			continue
		}
		switch filepath.Ext(path) {
		case ".go":
			err = p.goFile(path)
		case ".md":
			err = p.markdown(path)
		case ".html":
			err = p.page(path)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, part := range [][]found{p.comments, p.messages, p.texts} {
		slices.SortFunc(part, func(a, b found) int { return strings.Compare(a.place+a.text, b.place+b.text) })
	}
	return p, nil
}

func add(to *[]found, place, text string) {
	if text = strings.TrimSpace(text); len(word.FindAllString(text, minWords)) == minWords {
		*to = append(*to, found{place, text})
	}
}

// Names of calls and fields by what their text is for.
var (
	forErrors = regexp.MustCompile(`^(Errorf|errors\.New|(Debug|Info|Warn|Error)(Context)?|Message)$`)
	forUsers  = regexp.MustCompile(`^(FixHint|Fix|Hint|Next|Short|Long|Say|Remark|command\.New|Group|Query)$`)
)

// goFile collects the comments of a file, and the string literals whose call or field tells what they are for.
func (p *pool) goFile(path string) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	at := func(n ast.Node) string { return set.Position(n.Pos()).String() }
	for _, c := range file.Comments {
		if text := c.Text(); !strings.Contains(text, "DO NOT EDIT") {
			add(&p.comments, at(c), text)
		}
	}
	take := func(name string, value ast.Expr) {
		text, ok := literal(value)
		switch {
		case !ok:
		case forErrors.MatchString(name):
			add(&p.messages, at(value), text)
		case forUsers.MatchString(name):
			add(&p.texts, at(value), text)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok {
				name := f.Sel.Name
				if name == "New" {
					name = types.ExprString(f)
				}
				for _, arg := range n.Args {
					take(name, arg)
				}
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok {
				take(key.Name, n.Value)
			}
		}
		return true
	})
	return nil
}

// literal returns the value of a string literal or of a concatenation that begins with one.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok := literal(e.X)
		if !ok {
			return "", false
		}
		if right, ok := literal(e.Y); ok {
			return left + right, true
		}
		return left + "…", true
	}
	return "", false
}

var (
	frontMatter = regexp.MustCompile(`(?s)^---\n.*?\n---\n`)
	begin       = regexp.MustCompile(`^\s*([-*|] |\d+\. )`) // of a list item or a row
)

// markdown collects the paragraphs, list items and rows of tables.
func (p *pool) markdown(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	matter := frontMatter.Find(data)
	lines := strings.Split(string(data[len(matter):]), "\n")
	inCode, text, place := false, "", ""
	for i, line := range lines {
		isFence := strings.HasPrefix(strings.TrimSpace(line), "```")
		isHeader := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|-")
		if isFence || inCode || line == "" || strings.HasPrefix(line, "#") || begin.MatchString(line) {
			add(&p.texts, place, text)
			text = ""
		}
		if isFence {
			inCode = !inCode
		}
		if isFence || inCode || isHeader || line == "" || strings.HasPrefix(line, "|-") || strings.HasPrefix(line, "#") {
			continue
		}
		if text == "" {
			place = path + ":" + strconv.Itoa(bytes.Count(matter, []byte("\n"))+i+1)
		}
		text += " " + strings.TrimSpace(line)
	}
	add(&p.texts, place, text)
	return nil
}

var (
	codeOfPage = regexp.MustCompile(`(?s)\{\{.*?\}\}|<(script|style)\b.*?</(script|style)>|<!--.*?-->`)
	tag        = regexp.MustCompile(`</?(a|b|code|em|kbd|small|span|strong|time)\b[^>]*>`)
	block      = regexp.MustCompile(`(?s)<[^>]*>`)
)

// page collects the texts between the tags of a template.
func (p *pool) page(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	keepLines := func(found []byte) []byte {
		return append([]byte("…"), bytes.Repeat([]byte("\n"), bytes.Count(found, []byte("\n")))...)
	}
	data = tag.ReplaceAll(codeOfPage.ReplaceAllFunc(data, keepLines), nil)
	line := 1
	for len(data) > 0 {
		next := block.FindIndex(data)
		if next == nil {
			next = []int{len(data), len(data)}
		}
		text := html.UnescapeString(strings.Join(strings.Fields(string(data[:next[0]])), " "))
		add(&p.texts, path+":"+strconv.Itoa(line), text)
		line += bytes.Count(data[:next[1]], []byte("\n"))
		data = data[next[1]:]
	}
	return nil
}

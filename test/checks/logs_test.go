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
)

// logKeys lists the permitted attributes of log records: one key per idea.
var logKeys = []string{
	"account", "activated", "adapter", "address", "backend", "code", "control", "count", "err", "event", "events", "font",
	"leftOut", "link", "managed", "method", "mode", "model", "ms", "panic", "path", "pid", "provider", "reason", "revoked",
	"rows", "session", "sha256", "stack", "status", "try", "type", "version",
}

// logMessage matches a message that starts in lower case and does not end in punctuation. checkLogCall checks its first
// word.
var logMessage = regexp.MustCompile(`^[a-z]\S*( .*[^.!:;])?$`)

func TestLogs_OutcomeFirstAndOneKeyPerIdea(t *testing.T) {
	files := token.NewFileSet()
	for _, name := range goFiles(t, false) {
		tree, err := parser.ParseFile(files, filepath.Join(root, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && isLogCall(call) {
				checkLogCall(t, files, call)
			}
			return true
		})
	}
}

// isLogCall reports whether a call is one of a logger's methods, with a literal message.
func isLogCall(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, method.Sel.Name) || len(call.Args) == 0 {
		return false
	}
	_, ok = literal(call.Args[0])
	return ok
}

func literal(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

func checkLogCall(t *testing.T, files *token.FileSet, call *ast.CallExpr) {
	t.Helper()
	at := files.Position(call.Pos())
	message, _ := literal(call.Args[0])
	first, _, _ := strings.Cut(message, " ")
	if !logMessage.MatchString(message) || slices.Contains([]string{"a", "an", "the"}, first) || strings.HasSuffix(first, "ing") {
		t.Errorf("%s: the message %q does not begin with the outcome", at, message)
	}
	for i := 1; i < len(call.Args); i += 2 {
		if key, ok := literal(call.Args[i]); ok && !slices.Contains(logKeys, key) {
			t.Errorf("%s: the key %q is not in logKeys", at, key)
		}
	}
}

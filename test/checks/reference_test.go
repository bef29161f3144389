package checks

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/service-dev/service/docs"
)

// sources calls visit with the path and content of each Go file in the folders, except tests.
func sources(t *testing.T, visit func(path, text string), folders ...string) {
	t.Helper()
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join("..", "..", folder), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			visit(path, string(text))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func markdownOf(t *testing.T, ids ...string) string {
	t.Helper()
	var text strings.Builder
	for _, id := range ids {
		page, ok := docs.Find(id)
		if !ok {
			t.Fatalf("page %s does not exist", id)
		}
		text.WriteString(page.Markdown)
	}
	return text.String()
}

// TestEveryVariableIsDocumented checks that the page state-files lists the environment variables that the local
// programs read.
func TestEveryVariableIsDocumented(t *testing.T) {
	page := markdownOf(t, "state-files")
	name := regexp.MustCompile(`"(SERVICE_[A-Z][A-Z_]+|NO_COLOR|XDG_RUNTIME_DIR|DO_NOT_TRACK)"`)
	found := 0
	sources(t, func(path, text string) {
		for _, m := range name.FindAllStringSubmatch(text, -1) {
			if found++; !strings.Contains(page, "`"+m[1]+"`") {
				t.Errorf("%s reads %s, which the page state-files does not list", path, m[1])
			}
		}
	}, "daemon", "ctl", "plugins", "proto", "glasses", "internal")
	if found < 10 {
		t.Errorf("found only %d variables, want at least 10", found)
	}
}

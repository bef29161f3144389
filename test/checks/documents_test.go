package checks

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// maxReadme is the maximum number of lines of README. A new user should be able to read it in five minutes.
const maxReadme = 150

func TestReadme_IsShort(t *testing.T) {
	if n := strings.Count(readDocument(t, "README.md"), "\n"); n > maxReadme {
		t.Errorf("README.md has %d lines, the maximum is %d: move something to docs/pages and link to it", n,
			maxReadme)
	}
}

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ (.+)$`)
	codeBlock    = regexp.MustCompile("(?s)```.*?```")
)

// Pages of the documentation link to each other by id. The tests of package docs check those links.
func TestDocuments_LinksResolve(t *testing.T) {
	for _, name := range documents(t) {
		if strings.HasPrefix(name, "docs/pages/") {
			continue
		}
		text := codeBlock.ReplaceAllString(readDocument(t, name), "")
		for _, match := range markdownLink.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(match[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := name
			if target != "" {
				path = filepath.Join(filepath.Dir(name), target)
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, match[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(readDocument(t, path)), anchor) {
				t.Errorf("%s links to %s, but %s has no such heading", name, match[1], path)
			}
		}
	}
}

// anchors returns the fragments of a page's headings.
func anchors(text string) (list []string) {
	for _, match := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		kept := strings.Map(func(r rune) rune {
			if strings.ContainsRune("`.,:;/()'?!&+*\"", r) {
				return -1
			}
			return r
		}, strings.ToLower(match[1]))
		list = append(list, strings.ReplaceAll(kept, " ", "-"))
	}
	return list
}

var namedPath = regexp.MustCompile("`((?:backend|ctl|daemon|docs|examples|glasses|internal|packaging|plugins|proto|test)" +
	"/[a-z0-9_./-]*)`")

func TestDocuments_NamePathsThatExist(t *testing.T) {
	decisions, err := filepath.Glob(filepath.Join(root, "docs/decisions/*.md"))
	if err != nil || len(decisions) == 0 {
		t.Fatalf("list the decisions: found %d, error %v", len(decisions), err)
	}
	names := []string{"ARCHITECTURE.md", "CONTRIBUTING.md"}
	for _, path := range decisions {
		names = append(names, "docs/decisions/"+filepath.Base(path))
	}
	for _, name := range names {
		for _, match := range namedPath.FindAllStringSubmatch(readDocument(t, name), -1) {
			if _, err := os.Stat(filepath.Join(root, match[1])); err != nil {
				t.Errorf("%s names %s, which does not exist", name, match[1])
			}
		}
	}
}

// documents returns the tracked Markdown files except test data.
func documents(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("git", "-C", root, "ls-files", "*.md").Output()
	if err != nil {
		t.Fatal(err)
	}
	list := slices.DeleteFunc(strings.Fields(string(out)), func(name string) bool {
		return strings.Contains(name, "testdata/")
	})
	if len(list) < 10 {
		t.Fatalf("git ls-files found only %d documents, want at least 10", len(list))
	}
	return list
}

func readDocument(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var outsideReference = regexp.MustCompile(`\b(design D[0-9]|spec [0-9]+(\.[0-9]|\b))`)

// A file may refer only to this repository or to public documents.
func TestFiles_ReferToNothingOutside(t *testing.T) {
	patterns := []string{"*.go", "*.proto", "*.sql", "*.sh", "*.md", "Makefile", ".ci/run"}
	out, err := exec.Command("git", append([]string{"-C", root, "ls-files"}, patterns...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(out)) {
		found := outsideReference.FindString(readDocument(t, name))
		if found != "" && name != "test/checks/documents_test.go" {
			t.Errorf("%s refers to %q, which is not in this repository: state the content instead", name, found)
		}
	}
}

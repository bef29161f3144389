package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/service-dev/service/docs"
	"github.com/service-dev/service/internal/rendezvous"
)

// codeSpans returns every word that a page formats as code, in spans and in blocks.
func codeSpans(t *testing.T, id string) map[string]bool {
	t.Helper()
	page, ok := docs.Find(id)
	if !ok {
		t.Fatalf("page %s does not exist", id)
	}
	words := map[string]bool{}
	for _, span := range regexp.MustCompile("(?s)```.*?```|`[^`\n]+`").FindAllString(page.Markdown, -1) {
		for _, word := range regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`).FindAllString(span, -1) {
			words[word] = true
		}
	}
	return words
}

// TestHTTPReferenceNamesEveryField checks that the page lists the JSON fields and headers of proto/backendapi.
func TestHTTPReferenceNamesEveryField(t *testing.T) {
	words := codeSpans(t, "http-api")
	files, err := filepath.Glob("../proto/backendapi/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	tag, header := regexp.MustCompile(`json:"(\w+)`), regexp.MustCompile(`"X-Service-(\w+)`)
	fields := 0
	page, _ := docs.Find("http-api")
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range tag.FindAllStringSubmatch(string(source), -1) {
			if fields++; !words[m[1]] {
				t.Errorf("the page does not name the field %s", m[1])
			}
		}
		for _, m := range header.FindAllStringSubmatch(string(source), -1) {
			if !strings.Contains(page.Markdown, "`X-Service-"+m[1]) {
				t.Errorf("the page does not name the header X-Service-%s", m[1])
			}
		}
	}
	if fields < 100 {
		t.Errorf("only %d fields were found, want at least 100", fields)
	}
}

// TestStateReferenceNamesEveryVariable checks that the page lists the variables that the programs read.
func TestStateReferenceNamesEveryVariable(t *testing.T) {
	page, _ := docs.Find("state-files")
	for _, name := range rendezvous.Variables {
		if !regexp.MustCompile("\\| `" + name + "` \\| [^|]+[^| ]").MatchString(page.Markdown) {
			t.Errorf("the page does not explain %s", name)
		}
	}
}

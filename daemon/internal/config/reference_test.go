package config

import (
	"strings"
	"testing"

	"github.com/service-dev/service/docs"
)

// TestReferenceNamesEveryKey checks that the reference page lists every key of config.yaml.
func TestReferenceNamesEveryKey(t *testing.T) {
	page, ok := docs.Find("state-files")
	if !ok {
		t.Fatal("the documentation has no page state-files")
	}
	_, err := parse(FileName, []byte("nosuch: 1\n"))
	_, keys, ok := strings.Cut(err.Error(), "must be one of ")
	if !ok {
		t.Fatal(err)
	}
	for key := range strings.SplitSeq(keys, ", ") {
		if !strings.Contains(page.Markdown, "| `"+key+"` |") {
			t.Errorf("the page does not list %s", key)
		}
	}
}

package tools

import (
	"reflect"
	"strings"
	"testing"

	"github.com/service-dev/service/docs"
	"github.com/service-dev/service/internal/problem"
)

// TestReference_NamesSharedFields checks that the documentation names the fields that many answers share.
func TestReference_NamesSharedFields(t *testing.T) {
	page, ok := docs.Find("tool-results")
	if !ok {
		t.Fatal("the documentation has no page tool-results")
	}
	fields := commonFields()
	for _, shape := range []any{problem.Error{}, AuthRequired{}, linkedAnswer{}, authTokenFile{}} {
		for _, f := range jsonFields(reflect.TypeOf(shape)) {
			if f.json != "-" {
				fields = append(fields, f.json)
			}
		}
	}
	for _, name := range fields {
		if !strings.Contains(page.Markdown, "`"+name+"`") {
			t.Errorf("the page does not name %s", name)
		}
	}
}

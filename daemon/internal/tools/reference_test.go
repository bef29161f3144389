package tools

import (
	"reflect"
	"strings"
	"testing"

	"github.com/service-dev/service/proto/docs"
)

// TestReferenceNamesSharedFields holds the documentation to the fields that answers of many tools have.
func TestReferenceNamesSharedFields(t *testing.T) {
	page, ok := docs.Find("tool-results")
	if !ok {
		t.Fatal("there is no page tool-results")
	}
	fields := commonFields()
	for _, shape := range []any{Error{}, AuthRequired{}, linkedAnswer{}, authTokenFile{}} {
		of := reflect.TypeOf(shape)
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			fields = append(fields, name)
		}
	}
	for _, name := range fields {
		if !strings.Contains(page.Markdown, "`"+name+"`") {
			t.Errorf("the page does not name %s", name)
		}
	}
}

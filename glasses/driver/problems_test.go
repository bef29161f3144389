package driver_test

import (
	"strings"
	"testing"

	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/proto/docs"
)

// Whatever keeps glasses from being connected, a person learns the next step, on the pages and in the documentation.
func TestProblems_HaveANextStep(t *testing.T) {
	page, ok := docs.Find("real-glasses")
	if !ok {
		t.Fatal("the documentation has no page real-glasses")
	}
	for _, code := range driver.Problems() {
		message, hint := driver.ProblemText(code)
		for _, text := range []string{message, hint} {
			if text == "" || strings.HasSuffix(text, ".") {
				t.Errorf("problem %s has the text %q, want one without a full stop", code, text)
			}
		}
		if !strings.Contains(page.Markdown, "`"+code+"`") {
			t.Errorf("the page real-glasses does not explain %s", code)
		}
	}
}

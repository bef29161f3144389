package driver_test

import (
	"strings"
	"testing"

	"github.com/service-dev/service/glasses/driver"
)

// Every problem that prevents a connection to glasses has a text and a next step.
func TestProblems_HaveANextStep(t *testing.T) {
	for _, code := range driver.Problems() {
		message, hint := driver.ProblemText(code)
		for _, text := range []string{message, hint} {
			if text == "" || strings.HasSuffix(text, ".") {
				t.Errorf("problem %s has the text %q, want one without a full stop", code, text)
			}
		}
	}
}

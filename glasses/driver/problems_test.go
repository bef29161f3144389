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
		if message == "" || strings.HasSuffix(message, ".") || !strings.HasSuffix(hint, ".") {
			t.Errorf("problem %s has the message %q and the hint %q, want a full stop only in the hint", code, message, hint)
		}
	}
}

package glasses_test

import (
	"testing"

	"github.com/service-dev/service/glasses"
)

func TestNeverMatches(t *testing.T) {
	for _, test := range []struct{ typ, kind, chip, sender, want string }{
		{typ: "display.show"},
		{typ: "display.show", kind: "request", chip: "display", sender: "app"},
		{typ: "result", kind: "result", chip: "camera", sender: "glasses"},
		{typ: "result", sender: "service", chip: "errors"},
		{typ: "input", chip: "display", sender: "glasses"},
		{typ: "transcription", chip: "custom", sender: "app"},
		{typ: "order.placed", kind: "event", chip: "custom", sender: "app"},
		{kind: "event", sender: "service"},
		{chip: "errors"},
		{typ: "display.show", kind: "event", want: "display.show has kind request and sender app on the chip display"},
		{typ: "display.show", sender: "glasses", want: "display.show has kind request and sender app on the chip display"},
		{typ: "app.attached", kind: "request", want: "app.attached has kind event and sender app on the chip custom, or " +
			"kind event and sender service on the chip lifecycle"},
		{typ: "input", kind: "request",
			want: "input has kind event and sender glasses on the chip display"},
		{typ: "input", sender: "service", want: "input has kind event and sender glasses on the chip display"},
		{typ: "device", sender: "service"},
		{typ: "result", sender: "app", want: "result has kind result and sender glasses, or kind result and sender service"},
		{kind: "request", sender: "glasses", want: "entries have kind request and sender app, or kind result and sender " +
			"glasses, or kind result and sender service, or kind event and sender app, or kind event and sender glasses, or " +
			"kind event and sender service"},
	} {
		if got := glasses.NeverMatches(test.typ, test.kind, test.chip, test.sender); got != test.want {
			t.Errorf("%+v: got %q", test, got)
		}
	}
}

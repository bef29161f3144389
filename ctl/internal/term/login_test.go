package term

import (
	"regexp"
	"strings"
	"testing"

	"github.com/service-dev/service/internal/problem"
)

// agentWords matches terms that only an agent understands.
var agentWords = regexp.MustCompile(`createSimulatorSession|completeAuthLink|deviceCode|[Tt]he person|they `)

func TestLoginProblem_SpeaksToThePerson(t *testing.T) {
	daemon := &problem.Error{Message: "the user declined"}
	unreachable := &problem.Error{Code: "backend_unreachable", Message: "m", FixHint: "Set https_proxy."}
	if got := LoginProblem(unreachable); got != unreachable {
		t.Errorf("the hint that names a setting became %+v", got)
	}
	for code, failure := range loginFailures {
		daemon.Code = code
		daemon.FixHint = "Ask the user; then call createSimulatorSession."
		if code == unreachable.Code {
			daemon.FixHint = ""
		}
		if failure.message == "" {
			daemon.Message = "said by the daemon"
		}
		got := LoginProblem(daemon)
		if agentWords.MatchString(got.Message+got.FixHint) || !strings.Contains(got.FixHint, "`servicectl login") {
			t.Errorf("%s: the texts address an agent: %q, next: %q", code, got.Message, got.FixHint)
		}
		daemon.Message = "the user declined"
	}
	if other := (&problem.Error{Code: "busy", Message: "m", FixHint: "f"}); LoginProblem(other) != other {
		t.Error("an unrelated error was reworded")
	}
}

func TestPortForward_OnlyForPagesOfThisMachine(t *testing.T) {
	const command = "ssh -N -L 45871:127.0.0.1:45871 HOST"
	for _, test := range []struct {
		page   string
		opened bool
		reason string
		want   string
	}{
		{"http://localhost:45871/activate?code=A", false, "no_desktop", command},
		{"http://127.0.0.1:45871/", false, "failed", command},
		{"http://[::1]:45871/", false, "failed", command},
		{"http://localhost:45871/", true, "", ""},
		{"http://localhost:45871/", false, "disabled", ""},
		{"http://localhost:45871/", false, "refused", ""},
		{"https://service.example.org:45871/", false, "no_desktop", ""},
		{"http://localhost/", false, "no_desktop", ""},
		{"http://localhost.example.org:1/", false, "no_desktop", ""},
		{":", false, "no_desktop", ""},
	} {
		if got := PortForward(test.page, test.opened, test.reason); got != test.want {
			t.Errorf("PortForward(%s, %v, %s) = %q, want %q", test.page, test.opened, test.reason, got, test.want)
		}
	}
}

package term

import (
	"regexp"
	"strings"
	"testing"
)

// agentWords matches terms that only an agent understands.
var agentWords = regexp.MustCompile(`createSimulatorSession|completeAuthLink|deviceCode|[Tt]he person|they `)

func TestLoginProblem_SpeaksToThePerson(t *testing.T) {
	daemon := Problem{Message: "the person declined", FixHint: "Ask the person; then call createSimulatorSession."}
	for code, failure := range loginFailures {
		daemon.Code = code
		if failure.message == "" {
			daemon.Message = "said by the daemon"
		}
		got := LoginProblem(daemon)
		if agentWords.MatchString(got.Message+got.FixHint) || !strings.Contains(got.FixHint, "`servicectl login") {
			t.Errorf("%s: the texts address an agent: %q, next: %q", code, got.Message, got.FixHint)
		}
		daemon.Message = "the person declined"
	}
	if other := (Problem{Code: "busy", Message: "m", FixHint: "f"}); LoginProblem(other) != other {
		t.Error("an unrelated error was reworded")
	}
}

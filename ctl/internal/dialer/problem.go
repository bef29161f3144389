package dialer

import "errors"

// Problem explains an error of this package to a user or an agent.
type Problem struct {
	Code, Message string
	Retryable     bool
	FixHint       string
}

// ProblemOf describes an error of this package. ok is false for any other error.
func ProblemOf(err error) (p Problem, ok bool) {
	var sandbox *SandboxError
	var unsafe *UnsafeError
	var start *StartError
	var silent *NotRespondingError
	var missing *MissingError
	var elsewhere *ElsewhereError
	var directory *DirectoryError
	switch {
	case errors.As(err, &silent):
		return Problem{Code: CodeNotResponding, Message: silent.Error(), Retryable: true, FixHint: silent.Fix()}, true
	case errors.As(err, &missing):
		return Problem{Code: CodeMissing, Message: missing.Error(), FixHint: missing.Fix()}, true
	case errors.As(err, &directory):
		return Problem{Code: "unusable_directory", Message: directory.Error(), FixHint: directory.Fix()}, true
	case errors.As(err, &elsewhere):
		return Problem{Code: "daemon_elsewhere", Message: elsewhere.Error(), FixHint: elsewhere.Fix()}, true
	case errors.As(err, &sandbox):
		return Problem{Code: "sandbox_blocked", Message: sandbox.Error(), FixHint: sandbox.Setting()}, true
	case errors.As(err, &unsafe):
		return Problem{Code: "unsafe_directory", Message: unsafe.Error(), FixHint: unsafe.Fix}, true
	case errors.As(err, &start):
		p := Problem{Code: "daemon_unavailable", Message: start.Error(), Retryable: !start.Final,
			FixHint: "run `servicectl doctor`"}
		if start.Log != "" {
			p.FixHint = "look into " + start.Log + ", then try again"
		}
		return p, true
	}
	return Problem{}, false
}

// CodeMissing is the Code for a daemon whose program does not exist.
const CodeMissing = "program_missing"

// CodeNotResponding is the Code for a daemon that accepts connections but does not respond.
const CodeNotResponding = "daemon_not_responding"

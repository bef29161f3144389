package command

import (
	"context"
	"errors"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/dialer"
	"github.com/service-dev/service/ctl/internal/term"
)

// Exit is an exit code returned as an error. Its cause was already reported.
type Exit int

// Exit codes of the programs.
const (
	ExitYes       Exit = 0
	ExitNo        Exit = 1
	ExitUnknown   Exit = 2
	ExitCancelled Exit = 130
)

func (Exit) Error() string { return "already reported" }

// Report prints an error that a command returned, with the next step. It prints nothing for an Exit.
func (p *Program) Report(err error) {
	var reported Exit
	switch {
	case err == nil, errors.As(err, &reported):
	case errors.Is(err, context.Canceled):
		p.Cancelled()
	case p.PrintsJSON:
		_ = p.JSON(map[string]term.Problem{"error": ProblemOf(err)})
	default:
		p.Problem(p.Name, ProblemOf(err))
	}
}

// ProblemOf converts any error to a Problem that includes the next step.
func ProblemOf(err error) term.Problem {
	var refused *client.Error
	if errors.As(err, &refused) {
		return term.Problem(*refused)
	}
	if p, ok := dialer.ProblemOf(err); ok {
		return term.Problem(p)
	}
	if errors.Is(err, dialer.ErrNotRunning) {
		return term.Problem{
			Code: "daemon_not_running", Message: err.Error(), Retryable: true,
			FixHint: "any other command starts it; or run `servicectl daemon run`",
		}
	}
	if wrong := (*UsageError)(nil); errors.As(err, &wrong) {
		return term.Problem{Code: "usage", Message: wrong.Message, FixHint: wrong.Next}
	}
	return term.Problem{Code: "usage", Message: err.Error(), FixHint: "run the command with --help to see its usage"}
}

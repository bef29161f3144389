package command

import (
	"context"
	"errors"

	"github.com/service-dev/service/internal/problem"
)

// Exit is an exit code returned as an error whose cause was already reported.
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
		_ = p.JSON(map[string]*problem.Error{"error": ProblemOf(err)})
	default:
		p.Problem(p.Name, ProblemOf(err))
	}
}

// ProblemOf returns the *problem.Error that err wraps, or converts err to one. The result always contains the
// next step.
func ProblemOf(err error) *problem.Error {
	if p := problem.From(err); p != nil {
		return p
	}
	if wrong := (*UsageError)(nil); errors.As(err, &wrong) {
		return problem.New("usage", wrong.Message, wrong.Next)
	}
	return problem.New("usage", err.Error(), "Run the command with --help to see its usage.")
}

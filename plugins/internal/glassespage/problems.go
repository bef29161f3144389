package glassespage

import (
	"cmp"

	"github.com/service-dev/service/glasses/driver"
	"github.com/service-dev/service/internal/problem"
)

// linkProblem returns the error for a code. It treats an empty code as a lost connection.
func linkProblem(code string) *problem.Error {
	code = cmp.Or(code, problem.CodeLost)
	message, fixHint := driver.ProblemText(code)
	return &problem.Error{Code: code, Message: message, FixHint: fixHint}
}

package glassespage

import (
	"cmp"

	"github.com/service-dev/service/glasses/driver"
)

// Problem is why a link cannot be opened, with texts for the user.
type Problem struct {
	Code    string `json:"code"` // a code of package driver
	Message string `json:"message"`
	FixHint string `json:"fixHint"`
}

func (p *Problem) Error() string { return p.Message }

// problem returns the Problem for a code; an empty code counts as a lost connection.
func problem(code string) *Problem {
	code = cmp.Or(code, driver.ProblemLost)
	message, fixHint := driver.ProblemText(code)
	return &Problem{Code: code, Message: message, FixHint: fixHint}
}

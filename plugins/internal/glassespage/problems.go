package glassespage

import (
	"cmp"

	"github.com/service-dev/service/glasses/driver"
)

// Problem is what keeps a link from being open, for a person.
type Problem struct {
	Code    string `json:"code"` // of package driver
	Message string `json:"message"`
	FixHint string `json:"fixHint"`
}

func (p *Problem) Error() string { return p.Message }

// problem returns the problem with a code; an empty one counts as a lost connection.
func problem(code string) *Problem {
	code = cmp.Or(code, driver.ProblemLost)
	message, fixHint := driver.ProblemText(code)
	return &Problem{Code: code, Message: message, FixHint: fixHint}
}

package assistantscript

import (
	"errors"
	"regexp/syntax"
	"strings"
)

// patternCost returns the approximate number of instructions to which a pattern compiles, including its repetitions. It
// does not expand the repetitions, because a few characters can expand to millions of instructions.
func patternCost(pattern string) (int, error) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		var refused *syntax.Error
		if errors.As(err, &refused) {
			return 0, errors.New(strings.TrimSpace("it is not valid: " + refused.Code.String()))
		}
		return 0, err
	}
	return cost(re), nil
}

func cost(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n = min(n+cost(sub), maxPatterns+1)
	}
	if re.Op == syntax.OpRepeat {
		n = min(n*max(re.Min, re.Max, 1), maxPatterns+1)
	}
	return n
}

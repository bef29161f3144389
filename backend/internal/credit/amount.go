package credit

import (
	"fmt"
	"strconv"
	"strings"
)

// Amount is an amount of money in micro-USD: 1,000,000 is one dollar.
type Amount int64

const (
	// USD is one dollar.
	USD Amount = 1_000_000
	// MaxAmount is the maximum of a single transfer, so that no sum can overflow.
	MaxAmount = 1_000_000 * USD
)

const decimals = 6

// ParseAmount parses an amount in dollars: digits, optionally followed by a point and up to six more digits, as in 5,
// 5.00 or 0.0125. It returns ErrBadAmount for anything else, including a sign or more than MaxAmount.
func ParseAmount(text string) (Amount, error) {
	whole, fraction, pointed := strings.Cut(text, ".")
	if !isDigits(whole) || len(whole) > 7 || pointed && (!isDigits(fraction) || len(fraction) > decimals) {
		return 0, fmt.Errorf("%q: %w", text, ErrBadAmount)
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", decimals-len(fraction)), 10, 64)
	if a := Amount(n); err == nil && a <= MaxAmount {
		return a, nil
	}
	return 0, fmt.Errorf("%q: %w", text, ErrBadAmount)
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// String formats an amount in dollars with two to six decimals, such as 5.00, 0.0125 or -1.50.
func (a Amount) String() string {
	sign, n := "", uint64(a)
	if a < 0 {
		sign, n = "-", -n
	}
	fraction := fmt.Sprintf("%0*d", decimals, n%uint64(USD))
	for len(fraction) > 2 && fraction[len(fraction)-1] == '0' {
		fraction = fraction[:len(fraction)-1]
	}
	return fmt.Sprintf("%s%d.%s", sign, n/uint64(USD), fraction)
}

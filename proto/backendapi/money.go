package backendapi

import (
	"fmt"
	"strings"
)

// Dollars formats an amount in micro-dollars with at least two decimals and no trailing zeros after them: $0.05,
// -$0.0005, $1.20.
func Dollars(micro int64) string {
	sign := ""
	if micro < 0 {
		sign, micro = "-", -micro
	}
	fraction := strings.TrimRight(fmt.Sprintf("%06d", micro%1_000_000), "0")
	for len(fraction) < 2 {
		fraction += "0"
	}
	return fmt.Sprintf("%s$%d.%s", sign, micro/1_000_000, fraction)
}

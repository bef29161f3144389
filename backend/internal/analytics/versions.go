package analytics

import (
	"cmp"
	"strings"
)

// compareVersions orders versions by the precedence of SemVer 2.0.0, section 11: 1.9.0, 1.10.0-beta, 1.10.0. A
// missing component counts as 0. Names that do not begin with a digit come after versions. Versions of equal
// precedence are ordered as names, so that only equal names compare as equal. An empty name comes first.
func compareVersions(a, b string) int {
	x, restOfA := core(a)
	y, restOfB := core(b)
	if x == "" || y == "" {
		if a == "" || b == "" {
			return cmp.Compare(len(a), len(b))
		}
		return cmp.Or(cmp.Compare(len(y), len(x)), compareNames(a, b))
	}
	return cmp.Or(compareCores(x, y), compareReleases(restOfA, restOfB), compareNames(a, b))
}

// core splits a version into the dotted numbers at its start and the rest. It skips a leading "v".
func core(version string) (numbers, rest string) {
	version = strings.TrimPrefix(version, "v")
	numbers, rest = number(version)
	if numbers == "" {
		return "", version
	}
	for strings.HasPrefix(rest, ".") {
		next, after := number(rest[1:])
		if next == "" {
			break
		}
		numbers, rest = numbers+"."+next, after
	}
	return numbers, rest
}

func compareCores(a, b string) int {
	for a != "" || b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		if c := compareNumbers(cmp.Or(x, "0"), cmp.Or(y, "0")); c != 0 {
			return c
		}
	}
	return 0
}

// compareReleases compares the parts of two versions after the numbers: a pre-release precedes the release, and build
// metadata is ignored.
func compareReleases(a, b string) int {
	a, _, _ = strings.Cut(a, "+")
	b, _, _ = strings.Cut(b, "+")
	x, isPreA := strings.CutPrefix(a, "-")
	y, isPreB := strings.CutPrefix(b, "-")
	switch {
	case isPreA && isPreB:
		return comparePreReleases(x, y)
	case isPreA:
		return -1
	case isPreB:
		return 1
	}
	return compareNames(a, b)
}

// comparePreReleases compares dot-separated identifiers: numbers by value, and numbers before text.
func comparePreReleases(a, b string) int {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(x), len(y)) {
		m, restOfM := number(x[i])
		n, restOfN := number(y[i])
		isNumberM, isNumberN := m != "" && restOfM == "", n != "" && restOfN == ""
		c := cmp.Compare(x[i], y[i])
		switch {
		case isNumberM && isNumberN:
			c = compareNumbers(m, n)
		case isNumberM:
			c = -1
		case isNumberN:
			c = 1
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x), len(y))
}

// compareNames compares names by their characters, and numbers within them by value.
func compareNames(a, b string) int {
	for a != "" && b != "" {
		x, restOfA := number(a)
		y, restOfB := number(b)
		if x == "" || y == "" {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		if c := compareNumbers(x, y); c != 0 {
			return c
		}
		a, b = restOfA, restOfB
	}
	return cmp.Compare(len(a), len(b))
}

// compareNumbers compares digit strings without leading zeros by value.
func compareNumbers(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// number splits s after its leading digits. It removes leading zeros, but keeps at least one digit if there is any.
func number(s string) (digits, rest string) {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	start := 0
	for start < n-1 && s[start] == '0' {
		start++
	}
	return s[start:n], s[n:]
}

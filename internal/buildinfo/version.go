package buildinfo

import (
	"cmp"
	"strings"
)

// Compare returns -1, 0 or 1 according to the precedence rules of Semantic Versioning 2.0.0, which ignore build
// metadata. ok is false if a or b is not a semantic version, such as "dev".
func Compare(a, b string) (order int, ok bool) {
	coreA, preA, okA := split(a)
	coreB, preB, okB := split(b)
	if !okA || !okB {
		return 0, false
	}
	for i := range coreA {
		if order := compareNumbers(coreA[i], coreB[i]); order != 0 {
			return order, true
		}
	}
	return comparePrereleases(preA, preB), true
}

// split parses a version into its three numbers and the identifiers of a pre-release.
func split(version string) (core [3]string, pre []string, ok bool) {
	version, _, _ = strings.Cut(strings.TrimPrefix(version, "v"), "+")
	version, suffix, isPre := strings.Cut(version, "-")
	numbers := strings.Split(version, ".")
	if len(numbers) != len(core) {
		return core, nil, false
	}
	for i, n := range numbers {
		if !isNumber(n) || len(n) > 1 && n[0] == '0' {
			return core, nil, false
		}
		core[i] = n
	}
	if !isPre {
		return core, nil, true
	}
	pre = strings.Split(suffix, ".")
	for _, id := range pre {
		if id == "" {
			return core, nil, false
		}
	}
	return core, pre, true
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// compareNumbers compares numbers of any length without leading zeros.
func compareNumbers(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// comparePrereleases sorts pre-releases before the release, and numbers before words.
func comparePrereleases(a, b []string) int {
	if len(a) == 0 || len(b) == 0 {
		return cmp.Compare(len(b), len(a))
	}
	for i := range min(len(a), len(b)) {
		numA, numB := isNumber(a[i]), isNumber(b[i])
		var order int
		switch {
		case numA && numB:
			order = compareNumbers(a[i], b[i])
		case numA:
			order = -1
		case numB:
			order = 1
		default:
			order = strings.Compare(a[i], b[i])
		}
		if order != 0 {
			return order
		}
	}
	return cmp.Compare(len(a), len(b))
}

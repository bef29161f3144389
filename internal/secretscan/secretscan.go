// Package secretscan recognises credentials in text that is about to be stored or sent. It prefers false positives,
// because callers only drop what it finds. It recognises the credentials of this service and of well-known
// services, and any long text that looks random.
package secretscan

import (
	"regexp"
	"strings"
	"sync"

	"github.com/service-dev/service/internal/credential"
)

// known matches credentials with a known form: credentials of our backends, source hosts, clouds and AI providers,
// bearer headers, JSON web tokens and private keys.
var known = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i:\b(` + strings.Join(credential.Prefixes(), "|") + `)[A-Za-z0-9_-]{16})` +
		`|\b(ghp|gho|ghu|ghs|ghr|github_pat|glpat|xox[abprs])[_-][A-Za-z0-9_-]{12}` +
		`|\b(sk|pk|rk)[-_][A-Za-z0-9_-]{16}|\bAKIA[0-9A-Z]{12}|\bAIza[0-9A-Za-z_-]{20}` +
		`|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4}|(?i:\bbearer\s+[A-Za-z0-9._~+/=-]{8})|-----BEGIN [A-Z ]*PRIVATE KEY`)
})

// userCode matches the user code of a device code, with or without its dash.
var userCode = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b[BCDFGHJKLMNPQRSTVWXZ]{4}-?[BCDFGHJKLMNPQRSTVWXZ]{4}\b`)
})

// randomRun is the minimum length of a run of letters and digits that counts as random. The run must also mix letters
// and digits as only generators do.
const randomRun = 24

// Contains reports whether s may contain a credential.
func Contains(s string) bool { return known().MatchString(s) || random(s) }

// redacted matches credentials with a known form up to their end. A private key extends to the end of the text.
var redacted = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY[^"]*|(?:` + known().String() + `)[A-Za-z0-9._~+/=-]*`)
})

// Redact replaces credentials with a known form. It keeps JSON valid.
func Redact(s string) string { return redacted().ReplaceAllString(s, "(credential removed)") }

// ContainsUserCode reports whether s contains text that looks like a user code. Codes are short and have no checksum,
// so ordinary words of eight consonants also match.
func ContainsUserCode(s string) bool { return userCode().MatchString(s) }

// ContainsToken reports whether s contains a credential of this service or a long random run. It does not allocate.
func ContainsToken[T ~string | ~[]byte](s T) bool {
	for i := 0; i+tokenLeast < len(s); i++ {
		starts := i == 0 || class(s[i-1]) == other
		if starts && credential.HasPrefix(s[i:]) && tokenAt(s, i+4) {
			return true
		}
	}
	return random(s)
}

// tokenLeast is the minimum length of this service's credentials, including the prefix.
const tokenLeast = 4 + 15

func tokenAt[T ~string | ~[]byte](s T, from int) bool {
	n := 0
	for i := from; i < len(s) && (class(s[i]) != other || s[i] == '-' || s[i] == '_'); i++ {
		n++
	}
	return n >= tokenLeast-4+1
}

// random reports whether s has a long run that contains a digit and often changes between letters and digits or between
// cases.
func random[T ~string | ~[]byte](s T) bool {
	start := 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && class(s[i]) != other {
			continue
		}
		if i-start >= randomRun && mixed(s[start:i]) {
			return true
		}
		start = i + 1
	}
	return false
}

type kind byte

const (
	other kind = iota
	digit
	lower
	upper
)

func class(c byte) kind {
	switch {
	case c >= '0' && c <= '9':
		return digit
	case c >= 'a' && c <= 'z':
		return lower
	case c >= 'A' && c <= 'Z':
		return upper
	}
	return other
}

// mixed reports whether a run contains a digit and changes its kind of character at least once per five characters on
// average, or is hexadecimal with at least four digits.
func mixed[T ~string | ~[]byte](run T) bool {
	changes, digits, hexadecimal := 0, 0, true
	for i := range len(run) {
		c := run[i]
		if class(c) == digit {
			digits++
		} else if c|0x20 > 'f' {
			hexadecimal = false
		}
		if i > 0 && class(c) != class(run[i-1]) {
			changes++
		}
	}
	return digits > 0 && changes*5 >= len(run) || hexadecimal && digits >= 4
}

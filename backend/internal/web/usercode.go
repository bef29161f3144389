package web

import "strings"

const codeLetters = "BCDFGHJKLMNPQRSTVWXZ"

// normaliseCode brings what a person or a link carries into the form XXXX-XXXX. Case, dashes and spaces do not matter;
// anything that cannot be a user code gives "".
func normaliseCode(s string) string {
	if len(s) > 64 {
		return ""
	}
	var b strings.Builder
	for _, c := range strings.ToUpper(s) {
		switch {
		case c == '-' || c == ' ':
		case strings.ContainsRune(codeLetters, c):
			b.WriteRune(c)
		default:
			return ""
		}
	}
	if b.Len() != 8 {
		return ""
	}
	code := b.String()
	return code[:4] + "-" + code[4:]
}

// spelled is the code letter by letter, for screen readers.
func spelled(code string) string {
	return strings.TrimSpace(strings.Join(strings.Split(strings.ReplaceAll(code, "-", ","), ""), " "))
}

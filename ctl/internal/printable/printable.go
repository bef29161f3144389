// Package printable makes untrusted text safe to print in reports.
package printable

import (
	"strings"
	"unicode"
)

// Lines replaces each unprintable character in text with a replacement character. Such characters begin escape
// sequences, or reorder or hide text. Lines keeps newlines and tabs.
func Lines(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

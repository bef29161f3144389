// Package printable makes text of others safe for reports that people and other programs read.
package printable

import (
	"strings"
	"unicode"
)

// Lines returns text in which a replacement character stands for each character that does not print, such as control
// characters, escape sequences and marks that reorder or hide text. It keeps lines and tabs.
func Lines(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

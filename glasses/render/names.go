//go:build !js

package render

import (
	"strings"

	"golang.org/x/text/unicode/runenames"
)

// nameOf returns the name of a character in the Unicode Character Database, e.g. "ETHIOPIC SYLLABLE HA", or "" if the
// character has no individual name.
func nameOf(r rune) string {
	name := runenames.Name(r)
	if strings.HasPrefix(name, "<") { // a group, such as <Private Use>
		return ""
	}
	return name
}

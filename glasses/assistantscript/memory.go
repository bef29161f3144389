package assistantscript

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxProfile is the maximum length of a profile, in bytes. A profile is what conversation memory knows about one user
// of an app.
const MaxProfile = 4096

// CheckProfile returns an error unless profile is at most MaxProfile bytes of UTF-8 whose only control characters are
// line breaks and tabs. The separators U+2028 and U+2029 count as control characters.
func CheckProfile(profile string) error {
	if len(profile) > MaxProfile {
		return fmt.Errorf("it is %d bytes long, over the limit of %d", len(profile), MaxProfile)
	}
	if !utf8.ValidString(profile) {
		return fmt.Errorf("it is not valid UTF-8")
	}
	for _, c := range profile {
		if unicode.IsControl(c) && c != '\n' && c != '\t' || c == '\u2028' || c == '\u2029' {
			return fmt.Errorf("it contains the control character %U: line breaks and tabs are allowed", c)
		}
	}
	return nil
}

// MaxLine is the maximum length of a line that Merge adds, in bytes. One line must not push out all others.
const MaxLine = 500

// Merge returns profile with each of lines that it does not contain yet added as a line at its end. It cuts lines that
// are longer than MaxLine and marks them with an ellipsis. It removes the oldest lines if the result would be longer
// than MaxProfile. If it adds no line, it returns profile unchanged.
func Merge(profile string, lines []string) string {
	var list []string
	if profile != "" {
		list = strings.Split(strings.TrimRight(profile, "\n"), "\n")
	}
	before := len(list)
	for _, line := range lines {
		if line = cutLine(strings.TrimSpace(line)); line != "" && !slices.Contains(list, line) {
			list = append(list, line)
		}
	}
	if len(list) == before {
		return profile
	}
	size := -1 // there is no line break after the last line
	for _, line := range list {
		size += len(line) + 1
	}
	for ; size > MaxProfile; list = list[1:] {
		size -= len(list[0]) + 1
	}
	return strings.Join(list, "\n")
}

// cutLine returns at most MaxLine bytes of a line.
func cutLine(line string) string {
	const mark = "…"
	if len(line) <= MaxLine {
		return line
	}
	end := MaxLine - len(mark)
	for !utf8.RuneStart(line[end]) {
		end--
	}
	return strings.TrimSpace(line[:end]) + mark
}

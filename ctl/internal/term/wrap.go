package term

import (
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// narrowest is the smallest width, in columns, at which wrapped text is readable.
const narrowest = 30

// fold breaks text into lines of at most width columns, at spaces. It never breaks a word (such as a URL or a path) or
// a command in backquotes, because the user could not copy it; such a line may be too long. It returns one line if
// width is 0, which means unknown, or too narrow.
func fold(text string, width int) []string {
	if width < narrowest || columns(text) <= width {
		return []string{text}
	}
	var lines []string
	line, gap := "", ""
	for _, unit := range units(text) {
		if strings.TrimLeft(unit, " ") == "" {
			gap = unit
			continue
		}
		if line != "" && columns(line+gap+unit) > width {
			lines, line, gap = append(lines, line), "", ""
		}
		line, gap = line+gap+unit, ""
	}
	return append(lines, line)
}

// units splits text into runs of spaces and the text between them. It does not split text in backquotes.
func units(text string) []string {
	isQuoting := strings.Count(text, "`")%2 == 0
	var list []string
	start, quoted := 0, false
	for i := 0; i < len(text); i++ {
		if i > start && !quoted && (text[i] == ' ') != (text[i-1] == ' ') {
			list, start = append(list, text[start:i]), i
		}
		if text[i] == '`' && isQuoting {
			quoted = !quoted
		}
	}
	return append(list, text[start:])
}

// foldLines folds each line of text that is wider than width. Continuation lines keep the line's indentation.
func foldLines(text string, width int) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if width == 0 || columns(line) <= width {
			continue
		}
		body := strings.TrimLeft(line, " ")
		margin := line[:len(line)-len(body)]
		parts := fold(body, width-len(margin))
		lines[i] = margin + strings.Join(parts, "\n"+margin)
	}
	return strings.Join(lines, "\n")
}

var colourCodes = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\x1b\\[[0-9;]*m") })

// columns returns the width of a line in columns, ignoring its colour codes.
func columns(line string) int {
	if strings.Contains(line, "\x1b") {
		line = colourCodes().ReplaceAllString(line, "")
	}
	return utf8.RuneCountInString(line)
}

func pad(s string, wide int) string {
	return s + strings.Repeat(" ", max(0, wide-columns(s)))
}

package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/service-dev/service/internal/jsonlimit"
)

// safeText is text that may be printed to the terminal unchanged, because it was sanitized or comes from this program.
// Say and Remark sanitize all other arguments, so that text from a backend, an app or an agent cannot control the
// terminal.
type safeText string

// printable returns text on one line and without unprintable characters: control characters, escape sequences, and
// marks that reorder or hide text. It replaces white space with spaces.
func printable(s string) string {
	if isPrintable(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r) && r != '\u0085': // U+0085 is also a control character
			return ' '
		}
		return -1
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

func isPrintable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// block sanitizes multi-line text and keeps tabs and newlines.
func block(text string) safeText {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		cells := strings.Split(line, "\t")
		for j, cell := range cells {
			cells[j] = printable(cell)
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return safeText(strings.Join(lines, "\n"))
}

// sanitizeArgs sanitizes the arguments of a printed line.
func sanitizeArgs(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case safeText:
			out[i] = string(v)
		case string:
			out[i] = printable(v)
		case error:
			out[i] = printable(v.Error())
		case fmt.Stringer:
			out[i] = printable(v.String())
		default:
			out[i] = arg
		}
	}
	return out
}

// Stream returns a writer that sanitizes output of other programs, such as a log or an app, and writes it to w. It
// keeps newlines and tabs and drops all other unprintable characters.
func Stream(w io.Writer) io.Writer { return &stream{to: w} }

type stream struct {
	to   io.Writer
	part []byte // the beginning of a character whose other bytes were not written yet
}

func (s *stream) Write(p []byte) (int, error) {
	data := slices.Concat(s.part, p)
	whole := len(data)
	for back := 1; back <= min(utf8.UTFMax-1, len(data)); back++ {
		if at := len(data) - back; utf8.RuneStart(data[at]) {
			if !utf8.FullRune(data[at:]) {
				whole = at
			}
			break
		}
	}
	s.part = bytes.Clone(data[whole:])
	if _, err := io.WriteString(s.to, string(block(string(data[:whole])))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// maxIndented is the maximum size of indented JSON, in bytes. Longer JSON is written on one line.
const maxIndented = 64 << 20

// encode writes v as JSON and escapes all unprintable characters.
func encode(w io.Writer, v any, indented bool) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	data := b.Bytes()
	if indented {
		data = append(jsonlimit.Indent(bytes.TrimSuffix(data, []byte("\n")), maxIndented), '\n')
	}
	_, err := w.Write(escaped(data))
	return err
}

// escaped escapes unprintable characters in JSON, which contains only ASCII outside of strings.
func escaped(data []byte) []byte {
	if !bytes.ContainsFunc(data, isHidden) {
		return data
	}
	var b bytes.Buffer
	for _, r := range string(data) {
		switch {
		case !isHidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

func isHidden(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }

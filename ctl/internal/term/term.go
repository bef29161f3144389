// Package term prints all texts of the clients for users. Results go to standard output, remarks and errors to
// standard error. It uses colours, overwritten lines and wrapping only on a terminal, and no colours with NO_COLOR or
// TERM=dumb. An error ends with the next step, a secret is never printed, and text from other sources is sanitized.
// The package must not depend on the daemon or the commands.
package term

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/service-dev/service/internal/problem"
)

// Terminal is the output of a command.
type Terminal struct {
	Out, Err io.Writer
	// TTY reports whether Out is a terminal.
	TTY bool
	// Width is the number of columns of Out, or 0 if it is not a terminal.
	Width int
	// Moves reports whether lines can be overwritten (a TTY that is not dumb).
	Moves bool
	// Colour reports whether colours may be used on Out.
	Colour bool

	errWidth  int // Width of Err
	errColour bool
}

// New returns a terminal for out and err and this process's environment.
func New(out, err io.Writer) *Terminal {
	t := &Terminal{Out: out, Err: err}
	t.TTY, t.Width = sizeOf(out)
	isTerminal, width := sizeOf(err)
	t.errWidth, t.errColour = width, coloured(isTerminal)
	t.Moves, t.Colour = t.TTY && os.Getenv("TERM") != "dumb", coloured(t.TTY)
	return t
}

// sizeOf reports whether w is a terminal, and returns its width in columns, or 0 if that is unknown.
func sizeOf(w io.Writer) (isTerminal bool, width int) {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return false, 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		width = 0
	}
	return true, width
}

// Say prints a text to standard output. On a terminal, it wraps lines that do not fit.
func (t *Terminal) Say(format string, args ...any) {
	fmt.Fprintln(t.Out, foldLines(fmt.Sprintf(format, sanitizeArgs(args)...), t.Width))
}

// Row prints a row of a table, a command to copy or output of another program to standard output. It never breaks
// lines.
func (t *Terminal) Row(format string, args ...any) {
	fmt.Fprintf(t.Out, format+"\n", sanitizeArgs(args)...)
}

// Remark prints a text to standard error. On a terminal, it wraps lines that do not fit.
func (t *Terminal) Remark(format string, args ...any) {
	fmt.Fprintln(t.Err, foldLines(fmt.Sprintf(format, sanitizeArgs(args)...), t.errWidth))
}

// RemarkRow is Row for standard error.
func (t *Terminal) RemarkRow(format string, args ...any) {
	fmt.Fprintf(t.Err, format+"\n", sanitizeArgs(args)...)
}

// Next prints the next step to standard error.
func (t *Terminal) Next(format string, args ...any) {
	const margin = "        " // as wide as the label
	text := fmt.Sprintf(format, sanitizeArgs(args)...)
	lines := strings.Split(foldLines(text, max(0, t.errWidth-len(margin))), "\n")
	fmt.Fprintf(t.Err, "  %s %s\n", paint(Cell{"next:", Faint}, t.errColour), strings.Join(lines, "\n"+margin))
}

// JSON writes v as JSON, indented unless the output would be very long.
func (t *Terminal) JSON(v any) error { return encode(t.Out, v, true) }

// Line writes v as JSON on one line.
func (t *Terminal) Line(v any) error { return encode(t.Out, v, false) }

// Problem prints an error and its next step.
func (t *Terminal) Problem(program string, p *problem.Error) {
	t.Remark("%s %s", paint(Cell{program + ":", Bad}, t.errColour), block(p.Message))
	if p.FixHint != "" {
		t.Next("%s", block(lowered(p.FixHint)))
	}
}

// Cancelled reports that Ctrl-C was received.
func (t *Terminal) Cancelled() { fmt.Fprintln(t.Err, "\ncancelled") }

// Prose prints paragraphs, which are separated by empty lines. On a terminal it refills each paragraph to the width.
func (t *Terminal) Prose(text string) {
	if t.Width > 0 {
		paragraphs := strings.Split(text, "\n\n")
		for i, p := range paragraphs {
			paragraphs[i] = strings.ReplaceAll(p, "\n", " ")
		}
		text = strings.Join(paragraphs, "\n\n")
	}
	t.Say("%s", block(text))
}

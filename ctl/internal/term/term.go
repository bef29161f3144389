// Package term prints all texts of the clients for people. Results go to standard output, remarks and errors to
// standard error. Colours and moving lines are used only on a terminal (no colours with NO_COLOR or TERM=dumb). An
// error ends with the next step, a secret is never printed, and text from others is sanitized. The package must not
// depend on the daemon or the commands.
package term

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"
)

// Terminal is the output of a command.
type Terminal struct {
	Out, Err io.Writer
	// TTY reports whether Out is a terminal.
	TTY bool
	// Width is the number of columns, or 0 if it is unknown.
	Width int
	// Moves reports whether lines can be overwritten (a TTY that is not dumb).
	Moves bool
	// Colour reports whether colours may be used.
	Colour bool
}

// New returns a terminal for the given streams and environment.
func New(out, err io.Writer) *Terminal {
	t := &Terminal{Out: out, Err: err}
	if file, ok := out.(*os.File); ok {
		t.TTY = term.IsTerminal(int(file.Fd()))
		if wide, _, err := term.GetSize(int(file.Fd())); err == nil && t.TTY {
			t.Width = wide
		}
	}
	t.Moves = t.TTY && os.Getenv("TERM") != "dumb"
	_, noColour := os.LookupEnv("NO_COLOR")
	t.Colour = t.Moves && !noColour
	return t
}

// Say prints one line to standard output.
func (t *Terminal) Say(format string, args ...any) {
	fmt.Fprintf(t.Out, format+"\n", sanitizeArgs(args)...)
}

// Remark prints one line to standard error.
func (t *Terminal) Remark(format string, args ...any) {
	fmt.Fprintf(t.Err, format+"\n", sanitizeArgs(args)...)
}

// JSON writes v as indented JSON.
func (t *Terminal) JSON(v any) error { return encode(t.Out, v, "  ") }

// Line writes v as JSON on one line.
func (t *Terminal) Line(v any) error { return encode(t.Out, v, "") }

// Bold returns s in bold if colours may be used.
func (t *Terminal) Bold(s string) safeText { //nolint:revive // only Say takes it
	if !t.Colour {
		return safeText(printable(s))
	}
	return safeText("\x1b[1m" + printable(s) + "\x1b[0m")
}

// Table writes aligned rows.
func (t *Terminal) Table(rows [][]string) {
	w := tabwriter.NewWriter(t.Out, 0, 4, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = printable(cell)
		}
		fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	_ = w.Flush()
}

// Problem is an error with its next step.
type Problem struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
	FixHint   string `json:"fixHint"`
}

// Problem prints an error and its next step.
func (t *Terminal) Problem(program string, p Problem) {
	t.Remark("%s: %s", program, block(p.Message))
	if p.FixHint != "" {
		t.Remark("  next: %s", block(p.FixHint))
	}
}

// Cancelled reports that Ctrl-C was received.
func (t *Terminal) Cancelled() { fmt.Fprintln(t.Err, "\ncancelled") }

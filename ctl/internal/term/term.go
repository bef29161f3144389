// Package term owns every word that the clients say to a person. Its rules: answers go to standard output, remarks and
// errors to standard error; nothing moves or is coloured unless a terminal reads it (and not with NO_COLOR or
// TERM=dumb); an error ends with the next step; a secret is never printed; what others wrote is printed without what
// could steer a terminal. It must not know the daemon or the commands.
package term

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"
)

// Terminal is where a command speaks.
type Terminal struct {
	Out, Err io.Writer
	// TTY is whether a person's terminal reads Out.
	TTY bool
	// Width is the number of its columns; 0 when that cannot be told.
	Width int
	// Moves is whether a line may be written over (a TTY that is not dumb).
	Moves bool
	// Colour is whether emphasis may be shown.
	Colour bool
}

// New looks at the streams and the environment.
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

// Say writes one line of an answer.
func (t *Terminal) Say(format string, args ...any) {
	fmt.Fprintf(t.Out, format+"\n", cleaned(args)...)
}

// Remark writes one line beside the answer.
func (t *Terminal) Remark(format string, args ...any) {
	fmt.Fprintf(t.Err, format+"\n", cleaned(args)...)
}

// JSON writes v as indented JSON.
func (t *Terminal) JSON(v any) error { return encode(t.Out, v, "  ") }

// Line writes v as one line of JSON.
func (t *Terminal) Line(v any) error { return encode(t.Out, v, "") }

// Bold emphasises where that is possible.
func (t *Terminal) Bold(s string) ink { //nolint:revive // only Say takes it
	if !t.Colour {
		return ink(printable(s))
	}
	return ink("\x1b[1m" + printable(s) + "\x1b[0m")
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

// Problem is an error in the words of every room.
type Problem struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
	FixHint   string `json:"fixHint"`
}

// Problem says what went wrong and what to do next.
func (t *Terminal) Problem(program string, p Problem) {
	t.Remark("%s: %s", program, block(p.Message))
	if p.FixHint != "" {
		t.Remark("  next: %s", block(p.FixHint))
	}
}

// Cancelled says that Ctrl-C was heard.
func (t *Terminal) Cancelled() { fmt.Fprintln(t.Err, "\ncancelled") }

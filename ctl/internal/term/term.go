// Package term owns every word that the clients say to a person. Its rules: answers go to standard output, remarks and
// errors to standard error; nothing moves or is coloured unless a terminal reads it (and not with NO_COLOR or
// TERM=dumb); an error ends with the next step; a secret is never printed. It must not know the daemon or the commands.
package term

import (
	"encoding/json"
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
func (t *Terminal) Say(format string, args ...any) { fmt.Fprintf(t.Out, format+"\n", args...) }

// Remark writes one line beside the answer.
func (t *Terminal) Remark(format string, args ...any) { fmt.Fprintf(t.Err, format+"\n", args...) }

// JSON writes v as indented JSON.
func (t *Terminal) JSON(v any) error {
	e := json.NewEncoder(t.Out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Line writes v as one line of JSON.
func (t *Terminal) Line(v any) error {
	e := json.NewEncoder(t.Out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// Bold emphasises where that is possible.
func (t *Terminal) Bold(s string) string {
	if !t.Colour {
		return s
	}
	return "\x1b[1m" + s + "\x1b[0m"
}

// Table writes aligned rows.
func (t *Terminal) Table(rows [][]string) {
	w := tabwriter.NewWriter(t.Out, 0, 4, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.TrimRight(strings.Join(row, "\t"), "\t"))
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
	fmt.Fprintf(t.Err, "%s: %s\n", program, p.Message)
	if p.FixHint != "" {
		fmt.Fprintf(t.Err, "  next: %s\n", p.FixHint)
	}
}

// Cancelled says that Ctrl-C was heard.
func (t *Terminal) Cancelled() { fmt.Fprintln(t.Err, "\ncancelled") }

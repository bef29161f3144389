package term

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Confirm asks a question on the terminal. Any answer except y or yes means no. If the input is not a terminal, the
// answer is no.
func (t *Terminal) Confirm(ctx context.Context, in io.Reader, question string) (bool, error) {
	file, ok := asTerminal(in)
	if !ok {
		return false, nil
	}
	line, err := t.prompt(ctx, file, question+" [y/N] ")
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return isYes(line), err
}

// Ask asks a question until the answer is y or n. It returns io.EOF if the input ends.
func (t *Terminal) Ask(ctx context.Context, in io.Reader, question string) (bool, error) {
	file, ok := asTerminal(in)
	for ok {
		line, err := t.prompt(ctx, file, question+" [y/n] ")
		if err != nil || isYes(line) {
			return err == nil, err
		}
		if word := strings.ToLower(strings.TrimSpace(line)); word == "n" || word == "no" {
			return false, nil
		}
	}
	return false, io.EOF
}

// prompt reads one line from a terminal.
func (t *Terminal) prompt(ctx context.Context, file *os.File, text string) (string, error) {
	fmt.Fprint(t.Err, foldQuestion(printable(text), t.errWidth))
	type answer struct {
		line string
		err  error
	}
	answered := make(chan answer, 1)
	go func() { // ends with the process if there is no answer
		line, err := bufio.NewReader(file).ReadString('\n')
		answered <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case a := <-answered:
		if a.err != nil {
			fmt.Fprintln(t.Err) // after Ctrl-D, the cursor is still on the line of the question
		}
		return a.line, a.err
	}
}

// foldQuestion wraps a one-line question. It keeps the space before the answer and reserves a column for the answer.
func foldQuestion(question string, width int) string {
	return foldLines(strings.TrimSuffix(question, " "), max(0, width-2)) + " "
}

// CanConfirm reports whether Confirm can ask a question.
func CanConfirm(in io.Reader) bool {
	_, ok := asTerminal(in)
	return ok
}

func asTerminal(in io.Reader) (*os.File, bool) {
	file, ok := in.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

func isYes(line string) bool {
	word := strings.ToLower(strings.TrimSpace(line))
	return word == "y" || word == "yes"
}

// Secret asks for a secret on a terminal without echoing the input. It returns io.EOF if the input ends or is not a
// terminal.
func (t *Terminal) Secret(ctx context.Context, in io.Reader, question string) (string, error) {
	file, ok := asTerminal(in)
	if !ok {
		return "", io.EOF
	}
	fd := int(file.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("read the terminal's settings: %w", err)
	}
	fmt.Fprint(t.Err, foldQuestion(printable(question), t.errWidth))
	type answer struct {
		secret []byte
		err    error
	}
	answered := make(chan answer, 1)
	go func() { // ends with the process if there is no answer
		secret, err := term.ReadPassword(fd)
		answered <- answer{secret, err}
	}()
	select {
	case <-ctx.Done():
		_ = term.Restore(fd, before) // the shell must echo input again
		return "", ctx.Err()
	case a := <-answered:
		fmt.Fprintln(t.Err)
		return string(a.secret), a.err
	}
}

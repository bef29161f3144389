package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// UsageError is a mistake in the command line, with the next step.
type UsageError struct{ Message, Next string }

func (e *UsageError) Error() string { return e.Message }

// ExplainArguments adds the next step to argument errors of a command and its subcommands.
func ExplainArguments(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if explained := (*UsageError)(nil); err == nil || errors.As(err, &explained) {
				return err
			}
			return &UsageError{err.Error(), fmt.Sprintf("run `%s --help` to see the arguments", cmd.CommandPath())}
		}
	}
	for _, child := range cmd.Commands() {
		ExplainArguments(child)
	}
}

// BadFlag reports an unknown or malformed flag. It suggests flags with a similar name, or the help that lists the
// flags.
func BadFlag(cmd *cobra.Command, err error) error {
	if name, ok := strings.CutPrefix(err.Error(), "unknown flag: --"); ok {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if similar := SimilarTo(name, known); len(similar) > 0 {
			return &UsageError{err.Error(), DidYouMean("--", similar)}
		}
	}
	return &UsageError{err.Error(), fmt.Sprintf("run `%s --help` to see the flags", cmd.CommandPath())}
}

// DidYouMean formats a suggestion of names, each preceded by prefix.
func DidYouMean(prefix string, names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = "`" + prefix + name + "`"
	}
	return "did you mean " + strings.Join(quoted, " or ") + "?"
}

// maxTypos is the maximum edit distance at which a misspelled name is still recognised.
const maxTypos = 2

// SimilarTo returns the known names that the user may have meant.
func SimilarTo(name string, known []string) []string {
	var similar []string
	for _, k := range known {
		if typos(strings.ToLower(name), strings.ToLower(k)) <= min(maxTypos, len(name)/2) {
			similar = append(similar, k)
		}
	}
	return similar
}

// typos returns the edit distance of two words.
func typos(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

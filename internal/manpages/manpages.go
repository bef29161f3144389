// Package manpages writes the man pages and shell completion scripts of a program with commands. Only releases need
// it.
package manpages

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// Main is the main function of a command that writes the pages of a program: manpages VERSION DATE DIR. DATE is
// printed at the bottom of the pages, e.g. 2026-11-26.
func Main(root *cobra.Command) {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: manpages VERSION DATE DIR")
		os.Exit(2)
	}
	if err := Write(root, os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Write writes a page for each command of root to dir/man, and a script for each shell to dir/completions.
func Write(root *cobra.Command, version, date, dir string) error {
	if _, err := time.Parse(time.DateOnly, date); err != nil {
		return err
	}
	root.InitDefaultHelpFlag()
	files := map[string]func(io.Writer) error{
		"completions/" + root.Name() + ".bash": func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"completions/_" + root.Name():          root.GenZshCompletion,
		"completions/" + root.Name() + ".fish": func(w io.Writer) error { return root.GenFishCompletion(w, true) },
		"completions/" + root.Name() + ".ps1":  root.GenPowerShellCompletionWithDesc,
	}
	var add func(cmd *cobra.Command)
	add = func(cmd *cobra.Command) {
		files["man/"+pageName(cmd)+".1"] = func(w io.Writer) error {
			_, err := io.WriteString(w, page(cmd, version, date))
			return err
		}
		for _, child := range children(cmd) {
			add(child)
		}
	}
	add(root)
	for name, write := range files {
		if err := writeFile(filepath.Join(dir, name), write); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

func writeFile(file string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	var text strings.Builder
	if err := write(&text); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text.String()), 0o644)
}

// pageName returns the name of a command's page, such as servicectl-session-run.
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// children returns the commands of cmd that have a page.
func children(cmd *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			all = append(all, c)
		}
	}
	return all
}

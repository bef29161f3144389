// Command gotest runs go test with its arguments and prints one line per package and the output of failed tests. At
// the end it lists every test that was skipped, wholly or in part, with the reason, which go test itself does not
// show.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// skipMark marks the output of a test that skips something because this machine lacks a requirement.
const skipMark = "SKIPP"

// maxNamed is the maximum number of tests listed for one reason.
const maxNamed = 10

func main() {
	cmd := exec.CommandContext(context.Background(), "go", append([]string{"test", "-json"}, os.Args[1:]...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	r := newReport(os.Stdout)
	readErr := r.read(out)
	err = errors.Join(readErr, cmd.Wait())
	r.printSkipped()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(max(1, exit.ExitCode()))
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// event is a line of go test -json; see go doc test2json.
type event struct {
	Action, Package, ImportPath, Test, Output string
}

// report prints the results of packages as they complete.
type report struct {
	out     io.Writer
	output  map[string][]line // per running package
	skipped map[string][]string
}

// line is one line of a test's output, or of the package's output if test is empty.
type line struct{ test, text string }

func newReport(out io.Writer) *report {
	return &report{out: out, output: map[string][]line{}, skipped: map[string][]string{}}
}

func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		text, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(text)) > 0 {
			var e event
			if json.Unmarshal(text, &e) == nil && e.Action != "" {
				r.take(e)
			} else {
				fmt.Fprintf(r.out, "%s", text)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) take(e event) {
	switch {
	case e.Action == "build-output":
		fmt.Fprint(r.out, e.Output)
	case e.Action == "output" && strings.HasPrefix(e.Output, "=== "): // a test begins, pauses or continues
	case e.Action == "output":
		r.output[e.Package] = append(r.output[e.Package], line{e.Test, e.Output})
		// Scripts print each command after "> ", also a skip whose condition is not met.
		echo := strings.HasPrefix(strings.TrimSpace(e.Output), "> ")
		if _, reason, found := strings.Cut(e.Output, skipMark); found && !echo {
			reason = strings.TrimSpace(skipMark + reason)
			r.skipped[reason] = append(r.skipped[reason], strings.TrimSuffix(e.Package+" "+e.Test, " "))
		}
	case e.Test != "":
		if e.Action == "pass" || e.Action == "skip" {
			r.forget(e.Package, e.Test)
		}
	case e.Action == "pass" || e.Action == "skip":
		r.print(e.Package, func(l line) bool { return l.test == "" && l.text != "PASS\n" })
	case e.Action == "fail":
		r.print(e.Package, func(line) bool { return true })
	}
}

// forget drops the output of a test that passed.
func (r *report) forget(pkg, test string) {
	r.output[pkg] = slices.DeleteFunc(r.output[pkg], func(l line) bool { return l.test == test })
}

func (r *report) print(pkg string, wanted func(line) bool) {
	for _, l := range r.output[pkg] {
		if wanted(l) {
			fmt.Fprint(r.out, l.text)
		}
	}
	delete(r.output, pkg)
}

// printSkipped lists the reasons for skipping, each with its tests.
func (r *report) printSkipped() {
	if len(r.skipped) == 0 {
		return
	}
	fmt.Fprintln(r.out, "\nNOT TESTED HERE:")
	reasons := make([]string, 0, len(r.skipped))
	for reason := range r.skipped {
		reasons = append(reasons, reason)
	}
	slices.Sort(reasons)
	for _, reason := range reasons {
		tests := slices.Compact(slices.Sorted(slices.Values(r.skipped[reason])))
		fmt.Fprintln(r.out, reason)
		for _, test := range tests[:min(len(tests), maxNamed)] {
			fmt.Fprintln(r.out, "    "+test)
		}
		if more := len(tests) - maxNamed; more > 0 {
			fmt.Fprintf(r.out, "    and %d more\n", more)
		}
	}
}

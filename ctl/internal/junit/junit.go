// Package junit writes test results as JUnit XML for CI systems. It is independent of what was tested.
package junit

import (
	"encoding/xml"
	"fmt"
	"strings"
	"time"

	"github.com/service-dev/service/ctl/internal/printable"
)

// Suite is the result of one test file.
type Suite struct {
	Name string
	// Took is the duration in real time.
	Took  time.Duration
	Cases []Case
	// Error is the reason why the suite could not be completed.
	Error string
	// NotRun is the reason why the suite was not started.
	NotRun string
	// Output is the output of the tested program.
	Output string
}

// Case is one test case. It passed unless Failure or Skipped is set.
type Case struct {
	Name    string
	Seconds float64
	Failure string
	Skipped bool
}

type xmlSuites struct {
	XMLName  xml.Name   `xml:"testsuites"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Errors   int        `xml:"errors,attr"`
	Skipped  int        `xml:"skipped,attr"`
	Time     string     `xml:"time,attr"`
	Suites   []xmlSuite `xml:"testsuite"`
}

type xmlSuite struct {
	Name     string    `xml:"name,attr"`
	Tests    int       `xml:"tests,attr"`
	Failures int       `xml:"failures,attr"`
	Errors   int       `xml:"errors,attr"`
	Skipped  int       `xml:"skipped,attr"`
	Time     string    `xml:"time,attr"`
	Cases    []xmlCase `xml:"testcase"`
	Output   *xmlText  `xml:"system-out"`
}

type xmlCase struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Time    string   `xml:"time,attr"`
	Failure *xmlText `xml:"failure"`
	Error   *xmlText `xml:"error"`
	Skipped *xmlText `xml:"skipped"`
}

type xmlText struct {
	Message string `xml:"message,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// Encode returns suites as one XML file. It replaces unprintable characters, because CI systems show the texts in
// pages and terminals.
func Encode(suites ...Suite) []byte {
	var all xmlSuites
	var took time.Duration
	for _, s := range suites {
		x := suiteOf(s)
		all.Suites = append(all.Suites, x)
		all.Tests += x.Tests
		all.Failures += x.Failures
		all.Errors += x.Errors
		all.Skipped += x.Skipped
		took += s.Took
	}
	all.Time = seconds(took.Seconds())
	data, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil // strings and numbers can always be encoded
	}
	return append([]byte(xml.Header), append(data, '\n')...)
}

func suiteOf(s Suite) xmlSuite {
	s.Name = printable.Lines(s.Name)
	out := xmlSuite{Name: s.Name, Time: seconds(s.Took.Seconds())}
	for _, c := range s.Cases {
		x := xmlCase{Name: printable.Lines(c.Name), Class: s.Name, Time: seconds(c.Seconds)}
		switch {
		case c.Skipped:
			x.Skipped = &xmlText{}
			out.Skipped++
		case c.Failure != "":
			x.Failure = text(c.Failure)
			out.Failures++
		}
		out.Cases = append(out.Cases, x)
	}
	run := xmlCase{Name: "run", Class: s.Name, Time: out.Time}
	switch {
	case s.Error != "":
		run.Error = text(s.Error)
		out.Cases = append(out.Cases, run)
		out.Errors++
	case s.NotRun != "":
		run.Skipped = text(s.NotRun)
		out.Cases = append(out.Cases, run)
		out.Skipped++
	}
	out.Tests = len(out.Cases)
	if s.Output != "" {
		out.Output = &xmlText{Text: printable.Lines(s.Output)}
	}
	return out
}

// text puts the first line into the attribute that CI systems show next to the name.
func text(s string) *xmlText {
	s = printable.Lines(s)
	first, _, _ := strings.Cut(s, "\n")
	return &xmlText{Message: first, Text: s}
}

func seconds(s float64) string { return fmt.Sprintf("%.3f", s) }

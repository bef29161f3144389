// Package report writes the results of scenarios as one self-contained HTML page, which needs no server, network or
// other file. It is independent of how scenarios are run.
package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"image/png"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/service-dev/service/ctl/internal/printable"
	"github.com/service-dev/service/internal/pagestyle"
)

// Page is the report of one command.
type Page struct {
	// Verdict summarizes all runs in a few words.
	Verdict string
	// Command is the command line as the user would type it.
	Command string
	At      time.Time
	Took    time.Duration
	// Interrupted reports that some runs are missing because the command was interrupted.
	Interrupted bool
	Runs        []Run
}

// State is the state of a run.
type State string

// The states of a run.
const (
	Passed State = "passed"
	Failed State = "failed"
	// Broken means that the run could not be completed.
	Broken State = "error"
	// Interrupted means that the run was interrupted.
	Interrupted State = "interrupted"
	NotRun      State = "not run"
)

// Run is one scenario on one device model.
type Run struct {
	// Name identifies the run on the page.
	Name string
	// Title is the name in the scenario itself.
	Title       string
	DeviceModel string
	State       State
	// Problem is the reason why the run could not be completed, and Hint is the next step.
	Problem, Hint string
	// Duration is the duration of the run on the session's clock.
	Duration time.Duration
	Took     time.Duration
	Steps    []Step
	Diffs    []Diff
	Film     []Frame
	// Notes are remarks, for example about content that does not fit the glasses.
	Notes []string
	// LeftOut is the number of pictures omitted from the page.
	LeftOut int
	// Output is the last part of the app's output.
	Output string
}

// Step is one step of a scenario.
type Step struct {
	Number int
	Name   string
	At     time.Duration
	// Verdict is pass, fail or skipped.
	Verdict string
	// Expected is the step as written in the file. Seen is the reason why the step failed. Panel is what the wearer
	// saw at that time.
	Expected, Seen string
	Panel          Picture
}

// Diff is one difference from a recording.
type Diff struct {
	Name, Message, Want, Got string
	// WantPanel, GotPanel and Marked are PNG pictures; they are empty for a difference in the app's requests.
	WantPanel, GotPanel, Marked Picture
}

// Frame is the content of the panel from a point in time on.
type Frame struct {
	Caption string
	At      time.Duration
	Failed  bool
	Panel   Picture
}

// Picture is the content of a PNG file. Any other content is not shown.
type Picture []byte

var (
	//go:embed assets/page.html
	pageHTML string
	//go:embed assets/page.css
	ownCSS string
	//go:embed assets/page.js
	pageJS string
)

// page is the template. Its content security policy allows only its own style and script, so that an app's text cannot
// run as code even if escaping is missing.
var page = sync.OnceValue(func() *template.Template {
	css := pagestyle.Report + ownCSS
	return template.Must(template.New("page").Funcs(template.FuncMap{
		"style":  func() template.CSS { return template.CSS(css) },
		"script": func() template.JS { return template.JS(pageJS) },
		"clean":  printable.Lines, "seconds": seconds, "count": count,
	}).Parse(strings.Replace(pageHTML, "POLICY", "default-src 'none'; img-src data:; style-src "+hash(css)+
		"; script-src "+hash(pageJS)+"; base-uri 'none'; form-action 'none'", 1)))
})

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Encode returns the page as HTML.
func Encode(p Page) ([]byte, error) {
	var b bytes.Buffer
	if err := page().Execute(&b, p); err != nil {
		return nil, fmt.Errorf("write the HTML report: %w", err)
	}
	return b.Bytes(), nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }

// count formats a number with its noun.
func count(n int, noun string) string {
	plural := "s"
	if n == 1 {
		plural = ""
	}
	return fmt.Sprint(n, " ", noun, plural)
}

// Passed reports whether every run passed.
func (p Page) Passed() bool {
	return !slices.ContainsFunc(p.Runs, func(r Run) bool { return r.State != Passed })
}

// LeftOut returns the number of pictures omitted from the page.
func (p Page) LeftOut() int {
	n := 0
	for _, r := range p.Runs {
		n += r.LeftOut
	}
	return n
}

// Open reports whether the run's details are initially expanded.
func (r Run) Open() bool { return r.State == Failed || r.State == Broken || r.State == Interrupted }

// FailedSteps returns the steps that failed.
func (r Run) FailedSteps() (list []Step) {
	for _, s := range r.Steps {
		if s.Verdict == "fail" {
			list = append(list, s)
		}
	}
	return list
}

// Word returns the verdict of a step as shown on the page.
func (s Step) Word() string {
	return map[string]string{"pass": "passed", "fail": "failed", "skipped": "skipped"}[s.Verdict]
}

// Compares reports whether a difference contains pictures of both sides.
func (d Diff) Compares() bool { return d.WantPanel.Shown() && d.GotPanel.Shown() }

// Shown reports whether the picture can be shown.
func (p Picture) Shown() bool { return p.Size().X > 0 }

// Size returns the width and height in pixels.
func (p Picture) Size() (size struct{ X, Y int }) {
	if c, err := png.DecodeConfig(bytes.NewReader(p)); err == nil {
		size.X, size.Y = c.Width, c.Height
	}
	return size
}

// URL returns the picture as a data URL.
func (p Picture) URL() template.URL {
	return template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(p))
}

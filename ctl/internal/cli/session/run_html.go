package session

import (
	"cmp"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/service-dev/service/ctl/internal/command"
	page "github.com/service-dev/service/ctl/internal/report"
)

// Limits for the pictures in an HTML report: their total size and the size of one picture, in bytes.
const (
	maxReportPictures = 600
	maxReportBytes    = 24 << 20
	maxReportPicture  = 4 << 20
)

// page returns the batch as an HTML report. If not all pictures fit, pictures of failed runs take precedence.
func (b *batch) page(stopped bool) page.Page {
	p := page.Page{Verdict: b.totals().verdict(), Command: b.line(b.args, b.options.models), At: b.started, Took: b.took,
		Interrupted: stopped}
	for i := range b.jobs {
		p.Runs = append(p.Runs, b.pageRun(i, stopped))
	}
	pictures := pictureBudget{count: maxReportPictures, bytes: maxReportBytes}
	for _, open := range []bool{true, false} {
		for i := range p.Runs {
			if p.Runs[i].Open() == open && b.results[i].report != nil {
				pictures.fill(&p.Runs[i], b.results[i].report)
			}
		}
	}
	return p
}

func (b *batch) pageRun(i int, stopped bool) page.Run {
	j, res := b.jobs[i], b.results[i]
	r := page.Run{Name: j.title(), Title: j.scenario.Name, DeviceModel: cmp.Or(j.model, j.scenario.DeviceModel),
		State: page.State(states[res.state]), Took: res.took, Output: res.output}
	switch res.state {
	case broken:
		p := command.ProblemOf(res.err)
		r.Problem, r.Hint = p.Message, p.FixHint
	case interrupted:
		r.Problem = "The run was stopped before it finished."
	case notRun:
		r.Problem = whyNot[stopped]
	}
	if res.left != "" {
		r.Notes = append(r.Notes, "The app exited before the run ended ("+res.left+").")
	}
	if res.report == nil {
		return r
	}
	r.Duration = time.Duration(res.report.DurationMs) * time.Millisecond
	r.Notes = append(append(append(r.Notes, res.report.MissingFonts...), res.report.moreDiffs()...),
		res.report.misfits()...)
	for n, s := range res.report.allSteps() {
		step := page.Step{Number: n + 1, Name: s.Step, At: time.Duration(s.AtMs) * time.Millisecond, Verdict: s.Verdict,
			Seen: s.Message}
		if n < len(j.scenario.Steps) {
			expected := j.scenario.Steps[n]
			expected.Note = "" // the name of the step already contains it
			step.Expected = indented(expected)
		}
		r.Steps = append(r.Steps, step)
	}
	return r
}

// indented formats JSON for reading, without escaping HTML characters.
func indented(v any) string {
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if enc.Encode(v) != nil {
		return ""
	}
	return strings.TrimSpace(text.String())
}

// pictureBudget is the remaining number of pictures, and of their bytes, that a report may contain.
type pictureBudget struct{ count, bytes int }

// load returns a picture. If the picture does not fit, load returns nil and increments leftOut.
func (p *pictureBudget) load(file string, leftOut *int) page.Picture {
	info, err := os.Stat(file)
	switch {
	case err != nil: // the run did not save this picture
		return nil
	case p.count == 0 || info.Size() > int64(min(p.bytes, maxReportPicture)):
		*leftOut++
		return nil
	}
	data, _ := os.ReadFile(file) // an unreadable picture is not shown
	p.count--
	p.bytes -= len(data)
	return data
}

// differencePicture matches the file names of pictures of a difference from the recording.
var differencePicture = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^step-\d+(-\d+)?-(want|got|diff)$`)
})

// failedPicture matches the file name of the picture of a failed step.
var failedPicture = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^step-(\d+)-failed$`) })

// fill adds a run's pictures: first the pictures of failures, then the film.
func (p *pictureBudget) fill(run *page.Run, r *report) {
	for _, d := range r.Diffs {
		run.Diffs = append(run.Diffs, page.Diff{Name: strings.TrimSpace(d.Kind + " " + d.Path), Message: d.Message,
			Want: d.Want, Got: d.Got, WantPanel: p.load(d.WantFile, &run.LeftOut), GotPanel: p.load(d.GotFile, &run.LeftOut),
			Marked: p.load(d.DiffFile, &run.LeftOut)})
	}
	for _, picture := range r.Pictures {
		named := failedPicture().FindStringSubmatch(picture.Name)
		if named == nil {
			continue
		}
		if number, err := strconv.Atoi(named[1]); err == nil && number >= 1 && number <= len(run.Steps) {
			run.Steps[number-1].Panel = p.load(picture.File, &run.LeftOut)
		}
	}
	run.LeftOut += r.MoreFrames
	for _, f := range r.film() {
		if panel := p.load(f.file, &run.LeftOut); panel != nil {
			run.Film = append(run.Film, page.Frame{Caption: f.caption, Failed: f.failed, Panel: panel,
				At: time.Duration(f.at) * time.Millisecond})
		}
	}
}

// filmFrame is a picture in the film: either a change on the panel or a picture saved by a step.
type filmFrame struct {
	at                 int64
	sha, file, caption string
	failed             bool
}

// film returns the run's pictures in chronological order. If a step's picture equals an earlier frame, that frame
// gets the step's caption instead of a second frame.
func (r *report) film() []filmFrame {
	var list []filmFrame
	for _, f := range r.Frames {
		list = append(list, filmFrame{at: f.AtMs, sha: f.SHA256, file: f.File})
	}
	for _, p := range r.Pictures {
		if differencePicture().MatchString(p.Name) {
			continue // shown with its difference
		}
		f := filmFrame{at: p.AtMs, sha: p.SHA256, file: p.File, caption: p.Name}
		if f.failed = failedPicture().MatchString(p.Name); f.failed {
			f.caption = "a step failed"
		}
		same := slices.IndexFunc(list, func(o filmFrame) bool { return o.sha == f.sha && o.caption == "" && o.at <= f.at })
		if same >= 0 && !f.failed {
			list[same].caption = f.caption
			continue
		}
		list = append(list, f)
	}
	slices.SortStableFunc(list, func(a, b filmFrame) int { return cmp.Compare(a.at, b.at) })
	return list
}

package session

import (
	"cmp"
	"strings"

	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/junit"
	page "github.com/service-dev/service/ctl/internal/report"
)

// writeReports writes the requested reports, even for an interrupted batch.
func (b *batch) writeReports(stopped bool) error {
	if file := b.options.junit; file != "" {
		var suites []junit.Suite
		for i := range b.jobs {
			suites = append(suites, b.suiteOf(i, stopped))
		}
		if err := writeReport(file, junit.Encode(suites...)); err != nil {
			return err
		}
		b.written = append(b.written, file)
	}
	if b.options.html == "" {
		return nil
	}
	data, err := page.Encode(b.page(stopped))
	if err != nil {
		return err
	}
	if err := writeReport(b.options.html, data); err != nil {
		return err
	}
	b.written = append(b.written, b.options.html)
	return nil
}

func (b *batch) suiteOf(i int, stopped bool) junit.Suite {
	j, res := b.jobs[i], b.results[i]
	s := junit.Suite{Took: res.took, Output: res.output}
	switch res.state {
	case passed, failed:
		s = res.report.suite()
	case broken:
		s.Error = command.ProblemOf(res.err).Message
	case interrupted:
		s.Error = "interrupted: the run was stopped before it finished"
	case notRun:
		s.NotRun = whyNot[stopped]
	}
	s.Name = j.title()
	if b.single {
		s.Name = cmp.Or(j.scenario.Name, "scenario")
	}
	return s
}

// whyNot is the reason why a run was not started, keyed by whether the command was interrupted.
var whyNot = map[bool]string{true: "interrupted: the command was stopped before this run began",
	false: "not run: an earlier run failed"}

// next returns the command that repeats only the first failed run, advice on why a single run failed, or "".
func (b *batch) next() string {
	for i, j := range b.jobs {
		if b.results[i].state != failed {
			continue
		}
		if len(b.jobs) == 1 {
			if b.options.html == "" {
				return "add --html report.html to see what the wearer saw"
			}
			return ""
		}
		var models []string
		if j.model != "" {
			models = []string{j.model}
		}
		return b.line([]string{j.name}, models)
	}
	return ""
}

// line returns a command line that runs files on models with this command's app.
func (b *batch) line(files, models []string) string {
	words := []string{"servicectl", "session", "run"}
	for _, file := range files {
		words = append(words, shellWord(file))
	}
	if len(models) > 0 {
		words = append(words, "--models", strings.Join(models, ","))
	}
	if b.options.project != "" {
		words = append(words, "--project", shellWord(b.options.project))
	}
	if len(b.command) > 0 {
		words = append(words, "--")
		for _, word := range b.command {
			words = append(words, shellWord(word))
		}
	}
	return strings.Join(words, " ")
}

// shellWord quotes a word for a shell if necessary.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

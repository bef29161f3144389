//go:build linux

package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// maxKept limits the findings that are printed, and alike the findings with the same format. Further ones are only
// counted.
const (
	maxKept = 60
	alike   = 6
)

// results counts calls and stores findings. It is safe for concurrent use.
type results struct {
	began time.Time

	mu       sync.Mutex
	answers  map[string]map[string]int // counts by call and outcome
	faults   map[string]int
	skipped  []string
	findings []string
	same     map[string]int // findings by the source line that reported them
	dropped  int
	notes    [][2]string
}

func newResults() *results {
	return &results{began: time.Now(), answers: map[string]map[string]int{}, faults: map[string]int{},
		same: map[string]int{}}
}

func (l *results) answered(call, outcome string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answers[call] == nil {
		l.answers[call] = map[string]int{}
	}
	l.answers[call][outcome]++
}

func (l *results) fault(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults[name]++
}

// skip records a check that is not possible on this machine.
func (l *results) skip(what string) {
	fmt.Println("NOT DONE:", what)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skipped = append(l.skipped, what)
}

// note adds a figure to the table.
func (l *results) note(what, value string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes = append(l.notes, [2]string{what, value})
}

// report records a finding with the current time.
func (l *results) report(format string, args ...any) {
	text := fmt.Sprintf("%6.1fs  ", time.Since(l.began).Seconds()) + fmt.Sprintf(format, args...)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.same[format]++
	if len(l.findings) >= maxKept || l.same[format] > alike {
		l.dropped++
		return
	}
	l.findings = append(l.findings, text)
	fmt.Println("FINDING", text)
}

// sum returns the number of answered calls, how many of them returned an expected error, and the number of findings.
func (l *results) sum() (calls, errors, findings int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, outcomes := range l.answers {
		for outcome, n := range outcomes {
			calls += n
			if outcome != ok {
				errors += n
			}
		}
	}
	return calls, errors, len(l.findings) + l.dropped
}

// print prints the results of a run. repeat is the command that repeats the run.
func (l *results) print(repeat string) (good bool) {
	calls, errors, findings := l.sum()
	l.mu.Lock()
	defer l.mu.Unlock()
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nFAULT\tTIMES")
	for _, name := range slices.Sorted(maps.Keys(l.faults)) {
		fmt.Fprintf(t, "%s\t%d\n", name, l.faults[name])
	}
	fmt.Fprintln(t, "\nCALL\tGOOD\tEXPECTED ERRORS")
	for _, call := range slices.Sorted(maps.Keys(l.answers)) {
		outcomes := l.answers[call]
		fmt.Fprintf(t, "%s\t%d\t%s\n", call, outcomes[ok], others(outcomes))
	}
	fmt.Fprintln(t, "\nCHECK\tCOUNTED")
	for _, n := range l.notes {
		fmt.Fprintf(t, "%s\t%s\n", n[0], n[1])
	}
	t.Flush()
	for _, what := range l.skipped {
		fmt.Println("not done:", what)
	}
	fmt.Printf("\n%d calls, %d answered with an error that the fault under way explains, %d findings, %s; again: %s\n",
		calls, errors, findings, time.Since(l.began).Round(time.Second), repeat)
	for _, f := range l.findings {
		fmt.Println("FINDING", f)
	}
	if l.dropped > 0 {
		fmt.Printf("and %d more, most of them similar\n", l.dropped)
	}
	return findings == 0
}

func others(outcomes map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(outcomes)) {
		if name != ok {
			list = append(list, fmt.Sprintf("%s %d", name, outcomes[name]))
		}
	}
	return strings.Join(list, ", ")
}

package term

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/service-dev/service/ctl/internal/glassesapp"
)

// BenchRealQuestion asks whether the bench runs against real glasses.
const BenchRealQuestion = "Are these real glasses, and not an emulation of them?"

// BenchBegin prints the introduction of a bench.
func (t *Terminal) BenchBegin(name string) {
	t.Say("Measures %s: pictures, inputs, the microphone, and a broken connection. This takes a few minutes.", name)
}

// BenchStep announces a step. todo is what the user has to do, or empty; Enter skips it.
func (t *Terminal) BenchStep(number, all int, what, todo string) {
	t.Say("%d of %d: %s", number, all, what)
	if todo != "" {
		t.Say("        %s (Enter skips this)", todo)
	}
}

// BenchBroken reports that the connection is broken.
func (t *Terminal) BenchBroken(state string) {
	t.Say("        The connection is %s. Bring the glasses back.", state)
}

// BenchRecord prints the results of a bench. file is the path of the record.
func (t *Terminal) BenchRecord(r glassesapp.Record, file string) {
	p, m := r.Pictures, r.Microphone
	batteries := make([]string, 0, len(r.Battery))
	for key, percent := range r.Battery {
		batteries = append(batteries, fmt.Sprintf("%s %d %%", key, percent))
	}
	slices.Sort(batteries)
	t.Pairs([][]string{
		{"connected", cmp.Or(r.Connect.Skipped, fmt.Sprintf("in %d ms", r.Connect.Ms))},
		{"pictures", fmt.Sprintf("%d of %d, median %d ms, %d to %d ms %s", len(p.Ms), p.Asked, p.MedianMs, p.LeastMs,
			p.MostMs, p.Error)},
		{"batteries", cmp.Or(strings.Join(batteries, ", "), "unknown")},
		{"inputs", cmp.Or(r.Inputs.Skipped, strings.Join(r.Inputs.Seen, ", "), "none")},
		{"microphone", cmp.Or(m.Skipped, m.Error, fmt.Sprintf("%d chunks in %d ms, %.1f dB, peak %.1f dB", m.Chunks,
			m.ListenMs, m.LevelDB, m.PeakDB))},
		{"reconnected", cmp.Or(r.Reconnect.Skipped, fmt.Sprintf("%s for %d ms", r.Reconnect.State, r.Reconnect.AwayMs))},
		{"against", r.Against},
	})
	if file != "" {
		t.Say("The record is in %s. It contains no address and no serial number.", file)
	}
}

// Lines returns a channel that receives a value for each line typed from now on. Its goroutine ends with the process.
func Lines(in interface{ Read([]byte) (int, error) }) <-chan struct{} {
	lines := make(chan struct{})
	go func() {
		part := make([]byte, 256)
		for {
			n, err := in.Read(part)
			if err != nil {
				return
			}
			if slices.Contains(part[:n], '\n') {
				lines <- struct{}{}
			}
		}
	}()
	return lines
}

// BenchSpeak asks the user to speak.
func (t *Terminal) BenchSpeak() { t.Say("        Speak for three seconds.") }

package term

import "github.com/service-dev/service/glasses/conformance"

// ConformanceWaits prints the address at which the glasses have to attach.
func (t *Terminal) ConformanceWaits(url, model string) {
	t.Remark("Let your glasses (%s) attach to %s", model, url)
}

// ConformanceLine prints one verdict.
func (t *Terminal) ConformanceLine(l conformance.Line) {
	if l.Passed() {
		t.Say("PASS  %s (%s)", l.Name, l.Section)
		return
	}
	t.Say("FAIL  %s (%s): %s", l.Name, l.Section, l.Problem)
}

// ConformanceEnd prints the outcome.
func (t *Terminal) ConformanceEnd(lines, failed int) {
	if failed == 0 {
		t.Say("All %d rules passed.", lines)
		return
	}
	t.Say("%d of %d rules failed. Read the named sections of the glasses protocol (PROTOCOL.md).", failed, lines)
}

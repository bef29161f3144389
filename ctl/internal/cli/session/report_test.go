package session

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWriteReport_ReplacesOrLeaves(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "report.xml"), filepath.Join(dir, "link.xml")
	put(t, file, "old")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := writeReport(link, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "new" {
		t.Errorf("the report contains %q, %v, want new", data, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().IsRegular() {
		t.Errorf("the symbolic link was replaced: %v", err)
	}
	if err := writeReport(filepath.Join(file, "x"), nil); err == nil {
		t.Error("writing a report below a file succeeded")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("unexpected files: got %v, %v", entries, err)
	}
}

// Every form of a report counts the omitted differences, and no two cases have the same name.
func TestReports_CountEveryDifference(t *testing.T) {
	r := &report{Name: "list", Verdict: "fail", Steps: []reportStep{{Step: "advance 9 ms", Verdict: "pass"}}}
	if err := json.Unmarshal([]byte(`{"diffs":[{"kind":"extra","message":"display.show is extra"},
		{"kind":"extra","message":"speech.say is extra"}],"moreDiffs":{"missing":7}}`), r); err != nil {
		t.Fatal(err)
	}
	const want = "7 more differences: missing"
	b := batch{options: runOptions{html: "x"}, jobs: []job{{name: "a"}}, results: []result{{state: failed, report: r}}}
	if notes := b.page(false).Runs[0].Notes; !slices.Contains(notes, want) {
		t.Errorf("notes of the HTML report: got %q, want %q", notes, want)
	}
	if list := r.failures(); len(list) != 3 || !strings.Contains(list[2].What, want) {
		t.Errorf("failures in the terminal: got %+v, want three, the last with %q", list, want)
	}
	names := map[string]bool{}
	for _, c := range r.suite().Cases {
		names[c.Name] = true
	}
	if len(names) != 4 || !names["004 as recorded: "+want] {
		t.Errorf("names of the JUnit cases: got %v, want four, one with %q", names, want)
	}
}

// An app that crashed has also left its session. Every form of the report states both facts once, before other
// failures.
func TestReport_SaysOnceThatTheAppLeft(t *testing.T) {
	r := report{Name: "list", Verdict: "pass", DurationMs: 9, Steps: []reportStep{{Step: "advance 9 ms", Verdict: "pass"}},
		AppLeft: "the app left the session at 5 ms and did not come back",
		raw:     json.RawMessage(`{"verdict":"pass","steps":[]}`)}
	r.appFailed("exit status 3")
	const want = "the app left the session at 5 ms and did not come back (exit status 3)"
	if list := r.failures(); len(list) != 1 || list[0].Why != want {
		t.Errorf("unexpected failures: %+v", list)
	}
	if sum := r.summary(); sum.AppLeft != want || len(sum.Steps) != 1 || sum.Verdict != "fail" {
		t.Errorf("unexpected summary: %+v", sum)
	}
	if cases := r.suite().Cases; len(cases) != 2 || cases[1].Failure != want {
		t.Errorf("unexpected JUnit cases: %+v", cases)
	}
	var object struct{ Verdict, AppLeft string }
	if err := json.Unmarshal(r.raw, &object); err != nil || object.Verdict != "fail" || object.AppLeft != want {
		t.Errorf("unexpected JSON: %s, %v", r.raw, err)
	}
}

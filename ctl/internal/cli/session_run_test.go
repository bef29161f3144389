package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	page "github.com/service-dev/service/ctl/internal/report"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFindJobs_TakesEveryScenarioOnce(t *testing.T) {
	dir := t.TempDir()
	const empty = `{"scenario":1,"name":"x","steps":[]}`
	for name, text := range map[string]string{
		"a.json": `{"scenario":1,"name":"x","steps":[{"advance":1}]}`, "b/a.json": empty, "package.json": `{"name":"x"}`,
		"cut.json": `{"scenario":1,`, "list.json": `[]`, ".git/a.json": empty, "node_modules/a.json": empty,
		"rec/scenario.json": `{"scenario":1,"name":"r","deviceModel":"even_g1","steps":[],"recorded":` +
			`{"clock":"virtual","durationMs":0,"trace":[],"pictures":[]}}`, "rec/other.json": empty,
	} {
		put(t, filepath.Join(dir, name), text)
	}
	t.Chdir(dir)
	jobs, single, err := findJobs([]string{".", "a.json"}, []string{"even_g1", "rayban_display"})
	if err != nil || single {
		t.Fatalf("got error %v, single %v, want several jobs", err, single)
	}
	var got []string
	for _, j := range jobs {
		name := j.title()
		if j.invalid != nil {
			name += " (invalid)"
		}
		got = append(got, name)
	}
	want := "a.json on even_g1, a.json on rayban_display, b/a.json on even_g1, b/a.json on rayban_display, " +
		"cut.json (invalid), rec"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("found %s\nwant %s", text, want)
	}
	for arg, want := range map[string]bool{"a.json": true, "rec": true, "b": false} {
		if _, single, err := findJobs([]string{arg}, nil); err != nil || single != want {
			t.Errorf("findJobs(%s): got single %v, %v, want %v", arg, single, err, want)
		}
	}
}

// A named folder may be a symbolic link. Links below it are not followed, because they may lead anywhere.
func TestFindJobs_FollowsOnlyTheLinkThatIsNamed(t *testing.T) {
	const empty = `{"scenario":1,"name":"x","steps":[]}`
	outside, shared, dir := t.TempDir(), t.TempDir(), t.TempDir()
	put(t, filepath.Join(outside, "b.json"), empty)
	put(t, filepath.Join(shared, "deep", "a.json"), empty)
	for link, to := range map[string]string{filepath.Join(dir, "tests"): shared,
		filepath.Join(shared, "outside"): outside, filepath.Join(shared, "b.json"): filepath.Join(outside, "b.json")} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	jobs, single, err := findJobs([]string{"tests"}, nil)
	if err != nil || single || len(jobs) != 1 || jobs[0].title() != "tests/deep/a.json" || jobs[0].invalid != nil {
		t.Errorf("got jobs %+v, single %v, %v, want only tests/deep/a.json", jobs, single, err)
	}
}

// The command that repeats a run contains the app id given for the original run.
func TestLine_KeepsTheProject(t *testing.T) {
	b := &batch{command: []string{"node", "my app.js"}, options: runOptions{project: "com.example.app"}}
	if got, want := b.line([]string{"a.json"}, []string{"even_g1"}), "servicectl session run a.json --models even_g1 "+
		"--project com.example.app -- node 'my app.js'"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestJobSlug_IsAFileName(t *testing.T) {
	for _, name := range []string{"../../etc/passwd", "a\x00b/\n", strings.Repeat("é", 300), "C:\\x|y?", "..", ""} {
		if slug := (job{name: name}).slug(); len(slug) > 80 || strings.ContainsAny(slug, "/\\\x00\n:|?") ||
			strings.HasPrefix(slug, ".") {
			t.Errorf("unsuitable slug of %q: %q", name, slug)
		}
	}
}

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
	if err := writeReport(filepath.Join(dir, "nosuch", "x"), nil); err == nil {
		t.Error("writing a report to a missing folder succeeded")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("unexpected files: got %v, %v", entries, err)
	}
}

// Pictures over the limit are counted, and pictures of failed runs take precedence.
func TestPictureBudget_SaysWhatIsLeftOut(t *testing.T) {
	dir := t.TempDir()
	small, large := filepath.Join(dir, "small.png"), filepath.Join(dir, "large.png")
	put(t, small, "12345")
	put(t, large, strings.Repeat("x", 100))
	budget := pictureBudget{count: 3, bytes: 20}
	left := 0
	for _, file := range []string{small, large, "", filepath.Join(dir, "nosuch.png"), small, small, small} {
		budget.load(file, &left)
	}
	if left != 2 || budget.count != 0 || budget.bytes != 5 {
		t.Errorf("got %d omitted pictures and budget %+v, want 2 omitted and 5 bytes left", left, budget)
	}
	b := batch{options: runOptions{html: "x"}, jobs: []job{{name: "a"}, {name: "b"}}, results: []result{
		{state: passed, report: &report{MoreFrames: 4}}, {state: failed, report: &report{}}}}
	if p := b.page(false); p.LeftOut() != 4 || p.Passed() || p.Runs[1].State != page.Failed {
		t.Errorf("unexpected page: %+v", p)
	}
}

func TestShellWord_Quotes(t *testing.T) {
	for word, want := range map[string]string{"a/b.json": "a/b.json", "": "''", "a b": "'a b'", "it's": `'it'\''s'`,
		"$(x)": "'$(x)'", "--flag=1": "--flag=1"} {
		if got := shellWord(word); got != want {
			t.Errorf("shellWord(%q) = %s, want %s", word, got, want)
		}
	}
}

// The film omits pictures of a difference from the recording, because they are shown with that difference.
func TestFilm_ShowsWhatTheWearerSaw(t *testing.T) {
	var r report
	if err := json.Unmarshal([]byte(`{"pictures":[{"name":"start","atMs":1},{"name":"step-2-want","atMs":2},
		{"name":"step-2-3-got","atMs":2},{"name":"step-2-diff","atMs":2},
		{"name":"step-4-failed","atMs":3}]}`), &r); err != nil {
		t.Fatal(err)
	}
	var captions []string
	for _, f := range r.film() {
		captions = append(captions, f.caption)
	}
	if want := []string{"start", "a step failed"}; !slices.Equal(captions, want) {
		t.Errorf("captions: got %q, want %q", captions, want)
	}
}

// A failed step shows its own picture, even if a step without a picture failed at the same time.
func TestPage_PutsAPictureWithItsStep(t *testing.T) {
	file := filepath.Join(t.TempDir(), "step-2-failed.png")
	put(t, file, "png")
	r := &report{Steps: []reportStep{{Verdict: "fail", AtMs: 5}, {Verdict: "fail", AtMs: 5}}}
	if err := json.Unmarshal([]byte(`[{"name":"step-2-failed","atMs":5,"file":`+strconv.Quote(file)+`},
		{"name":"step-9-failed","atMs":5,"file":`+strconv.Quote(file)+`}]`), &r.Pictures); err != nil {
		t.Fatal(err)
	}
	b := batch{options: runOptions{html: "x"}, jobs: []job{{name: "a"}}, results: []result{{state: failed, report: r}}}
	steps := b.page(false).Runs[0].Steps
	if steps[0].Panel != nil || string(steps[1].Panel) != "png" {
		t.Errorf("unexpected pictures of the steps: %+v", steps)
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

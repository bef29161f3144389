package session

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	page "github.com/service-dev/service/ctl/internal/report"
)

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

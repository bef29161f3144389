package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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

func TestJobSlug_IsAFileName(t *testing.T) {
	for _, name := range []string{"../../etc/passwd", "a\x00b/\n", strings.Repeat("é", 300), "C:\\x|y?", "..", ""} {
		if slug := (job{name: name}).slug(); len(slug) > 80 || strings.ContainsAny(slug, "/\\\x00\n:|?") ||
			strings.HasPrefix(slug, ".") {
			t.Errorf("unsuitable slug of %q: %q", name, slug)
		}
	}
}

package purge

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/service-dev/service/docs"
)

// stateDir creates a state directory with files; a name that ends with / is a folder.
func stateDir(t *testing.T, files ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	for _, file := range append(files, "./") {
		path := filepath.Join(dir, file)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if strings.HasSuffix(file, "/") {
			err = errors.Join(err, os.MkdirAll(path, 0o700))
		} else {
			err = errors.Join(err, os.WriteFile(path, []byte("x"), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRemove(t *testing.T) {
	dir := stateDir(t, "install.json", "install.json.corrupt-20260101T000000Z", ".auth.json.tmp-1", "auth.json",
		"config.yaml", "run/daemon.lock", "run/a/1/x", "log/serviced.log", "backend/service.db", "backend/.port-123",
		".doctor.tmp-1", "sessions/loc_a/session.json", "sessions/loc_b/session.json", "sessions/ses_c/app.token",
		"telemetry/spool/")
	s, err := Inspect(dir)
	if err != nil || s.Sessions != 2 || len(s.Others) != 0 || !s.Has["backend"] {
		t.Fatalf("Inspect: %+v, %v", s, err)
	}
	if kept, err := s.Remove(); err != nil || !slices.Equal(kept, s.Others) {
		t.Fatalf("kept %v, %v", kept, err)
	}
	if left, err := s.Left(); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
	if _, err := Inspect(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Inspect of a removed directory: %v", err)
	}
}

// Files of other programs are kept, in the directory, in the service's folders and at the targets of links.
func TestRemove_KeepsWhatIsNotOurs(t *testing.T) {
	outside := stateDir(t, "precious")
	foreign := []string{
		".backend/x", ".config.yaml", ".fonts/x", ".install.json.corrupt-20260101T000000Z", ".log/x", "auth.json/x",
		"backend/notes.txt", "consent.tmp-1", "fonts/Own.ttf", "glasses.uncleared/my notes", "log/nginx.log",
		"notes.txt", "run/notes", "runs/log", "sessions/loc_a/notes", "telemetry",
	}
	dir := stateDir(t, append(foreign, "install.json", "backend/service.db", "glasses.uncleared/g2 Left",
		"log/serviced.log", "run/daemon.lock", "sessions/loc_a/session.json")...)
	if err := os.Truncate(filepath.Join(dir, "glasses.uncleared/g2 Left"), 0); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"adapters.json": filepath.Join(outside, "precious"), "mine": outside, "sessions/out": outside,
		"config.yaml": filepath.Join(outside, "precious"), // the only link that a user may have made
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	want := slices.Concat(foreign, []string{"adapters.json", "mine", "sessions/out"})
	for n, name := range want { // a foreign folder is listed, but not its contents
		for _, folder := range []string{".backend", ".fonts", ".log", "auth.json", "runs"} {
			if strings.HasPrefix(name, folder+"/") {
				want[n] = folder
			}
		}
	}
	slices.Sort(want)
	s, err := Inspect(dir)
	slices.Sort(s.Others)
	if err != nil || !slices.Equal(s.Others, want) {
		t.Fatalf("Inspect: %v\n%q, want\n%q", err, s.Others, want)
	}
	kept, err := s.Remove()
	slices.Sort(kept)
	if err != nil || !slices.Equal(kept, want) {
		t.Errorf("Remove: %v\n%q, want\n%q", err, kept, want)
	}
	for _, name := range append(foreign, "mine/precious", "adapters.json", "sessions/out") {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Errorf("a file of others: %v", err)
		}
	}
	for _, name := range []string{"install.json", "backend/service.db", "log/serviced.log", "config.yaml",
		"sessions/loc_a/session.json", "glasses.uncleared/g2 Left"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
	if left, err := s.Left(); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// If it cannot be determined what is left, the purge has failed.
func TestLeft(t *testing.T) {
	dir := stateDir(t, "install.json", "file")
	if left, err := (State{Dir: dir}).Left(); err != nil || !slices.Equal(left, []string{"install.json"}) {
		t.Errorf("a daemon was started again: %q, %v", left, err)
	}
	if left, err := (State{Dir: filepath.Join(dir, "file")}).Left(); err == nil {
		t.Errorf("a file is in its place: %q", left)
	}
}

func TestInspect_RefusesForeignDirectories(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(stateDir(t, "install.json"), link); err != nil {
		t.Skip(err)
	}
	for name, dir := range map[string]string{
		"other files": stateDir(t, "package.json", "log/x"), "a link": link, "a file": filepath.Join(stateDir(t, "f"), "f"),
		"a folder as identity": stateDir(t, "install.json/"),
	} {
		if _, err := Inspect(dir); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %v, want ErrForeign", name, err)
		}
	}
	s, err := Inspect(stateDir(t))
	if err == nil {
		_, err = s.Remove()
	}
	if err != nil {
		t.Errorf("an empty directory: %v", err)
	}
	home := stateDir(t, "install.json")
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	if _, err := Inspect(home); !errors.Is(err, ErrForeign) {
		t.Errorf("the home directory: %v, want ErrForeign", err)
	}
}

// Every file listed in the documentation is removed, even while it is being written.
func TestRemovesWhatTheDocumentationLists(t *testing.T) {
	fill := strings.NewReplacer("<time>", "20260101T000000Z", "<sha256>", strings.Repeat("a", 64), "<session>", "loc_a",
		"<type>", "jpg", "<segment>", "01890a5d-ac96-774b-bcce-b302099a8057", "<start>", "1234",
		"<model> <name>", "g2 Even+G2")
	var listed []string
	for _, page := range docs.Pages() {
		if page.ID != "state-files" {
			continue
		}
		_, table, _ := strings.Cut(page.Markdown, "## Files")
		table, _, _ = strings.Cut(table, "\n## ")
		for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1) {
			listed = append(listed, fill.Replace(row[1]))
		}
	}
	if len(listed) < 30 {
		t.Fatalf("the documentation lists only %q", listed)
	}
	var create []string
	for _, file := range listed {
		if strings.HasPrefix(file, "glasses.uncleared/") {
			create = append(create, "glasses.uncleared/") // its files are empty
			continue
		}
		create = append(create, file, filepath.Join(filepath.Dir(file), "."+filepath.Base(file)+".tmp-123"))
	}
	s, err := Inspect(stateDir(t, create...))
	if err != nil || len(s.Others) > 0 {
		t.Fatalf("would not be removed: %q, %v", s.Others, err)
	}
	if kept, err := s.Remove(); err != nil || len(kept) > 0 {
		t.Errorf("kept %q, %v", kept, err)
	}
}

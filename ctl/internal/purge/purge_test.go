package purge

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/service-dev/service/proto/docs"
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
	dir := stateDir(t, "install.json", "install.json.corrupt-20260101", ".auth.json.tmp-1", "auth.json", "config.yaml",
		"run/daemon.lock", "log/serviced.log", "backend/service.db", "sessions/loc_a/session.json", "sessions/loc_b/session.json",
		"sessions/ses_c/app.token", "telemetry/spool/1.jsonl")
	s, err := Inspect(dir)
	if err != nil || s.Sessions != 2 || len(s.Others) != 0 || !s.Has["backend"] {
		t.Fatalf("Inspect: %+v, %v", s, err)
	}
	if err := s.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
	if _, err := Inspect(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Inspect of a removed directory: %v", err)
	}
}

// Files of others stay, in the directory and wherever a link leads.
func TestRemove_KeepsWhatIsNotOurs(t *testing.T) {
	outside := stateDir(t, "precious")
	dir := stateDir(t, "install.json", "notes.txt", "runs/log", "run/x", "sessions/")
	for link, target := range map[string]string{
		"log": outside, "sessions/out": outside, "backend": filepath.Join(outside, "precious"), "mine": outside,
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	s, err := Inspect(dir)
	if err != nil || strings.Join(s.Others, " ") != "mine notes.txt runs" {
		t.Fatalf("Inspect: %+v, %v", s, err)
	}
	if err := s.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(outside, "precious")); err != nil {
		t.Errorf("a file outside: %v", err)
	}
	entries, _ := os.ReadDir(dir)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if strings.Join(left, " ") != "mine notes.txt runs" {
		t.Errorf("left: %v, want what is not ours", left)
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
	if s, err := Inspect(stateDir(t)); err != nil || s.Remove() != nil {
		t.Errorf("an empty directory: %v", err)
	}
}

// Each file that the documentation lists is removed.
func TestNamesAreThoseOfTheDocumentation(t *testing.T) {
	documented := map[string]bool{}
	for _, page := range docs.Pages() {
		if page.ID != "state-files" {
			continue
		}
		for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (?:`serviced`|clients|adapter|embedded|you|`servicectl`)").
			FindAllStringSubmatch(page.Markdown, -1) {
			name, _, _ := strings.Cut(row[1], "/")
			name, _, _ = strings.Cut(name, ".corrupt-")
			documented[name] = !strings.HasPrefix(name, "SERVICE_") // a variable
		}
	}
	for _, name := range names {
		if !documented[name] {
			t.Errorf("%s is not documented", name)
		}
		delete(documented, name)
	}
	for name, isFile := range documented {
		if !isFile {
			continue
		}
		t.Errorf("%s is documented, but would not be removed", name)
	}
}

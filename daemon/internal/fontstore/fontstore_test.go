package fontstore

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/glasses/render/fonts"
	"github.com/service-dev/service/internal/problem"
)

func testFont(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../../glasses/render/fonts/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// opened is a store with its log and the list that it passed to the adapters.
type opened struct {
	*Store
	used []fonts.Added
	log  bytes.Buffer
}

func open(t *testing.T, dir string) *opened {
	t.Helper()
	o := &opened{}
	o.Store = Open(Options{StateDir: dir, Log: slog.New(slog.NewTextHandler(&o.log, nil)), Now: time.Now,
		Use: func(_ context.Context, list []fonts.Added) { o.used = list }})
	t.Cleanup(func() { fonts.SetAdded(nil, nil) })
	return o
}

func add(t *testing.T, s *opened, name string) Font {
	t.Helper()
	f, err := s.Add(t.Context(), testFont(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// refusal returns the code of an error, which must be a *problem.Error with a fix hint.
func refusal(t *testing.T, err error) string {
	t.Helper()
	var p *problem.Error
	if !errors.As(err, &p) || p.FixHint == "" {
		t.Fatalf("got %v, want a *problem.Error with a fix hint", err)
	}
	return p.Code
}

// drawing returns the names of the added fonts that are used to draw texts.
func drawing() (names []string) {
	for f := range fonts.AddedFaces(false) {
		names = append(names, f.Added.Name)
	}
	return names
}

func TestStore_KeepsFontsInOrder(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	regular, cff := add(t, s, "cherokee-regular.ttf"), add(t, s, "cff.otf")
	for _, s := range []*opened{s, open(t, dir)} {
		if list := s.List(); !slices.Equal(list, []Font{regular, cff}) || len(s.used) != 2 || len(drawing()) != 2 {
			t.Errorf("%+v, %+v", list, s.used)
		}
	}
	for path, want := range map[string]os.FileMode{"": 0o700, regular.SHA256: 0o600, "fonts.json": 0o600} {
		info, err := os.Stat(filepath.Join(dir, Dir, path))
		if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != want {
			t.Errorf("%q: %v", path, err)
		}
	}
	again := open(t, dir)
	if f, err := again.Remove(t.Context(), strings.ToUpper(regular.Name)); err != nil || f != regular {
		t.Errorf("%+v, %v", f, err)
	}
	if got := drawing(); !slices.Equal(got, []string{"CFFTest"}) || len(again.used) != 1 {
		t.Errorf("after the removal, texts are drawn with %v; want only CFFTest", got)
	}
	if _, err := os.Stat(filepath.Join(dir, Dir, regular.SHA256)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stat the file of a removed font: %v, want ErrNotExist", err)
	}
}

func TestStore_RefusesWhatItCannotKeep(t *testing.T) {
	s := open(t, t.TempDir())
	add(t, s, "cherokee-regular.ttf")
	for name, want := range map[string]string{
		"cherokee-regular.ttf": problem.CodeFontDuplicate, "cherokee-regular.woff2": problem.CodeFontUnsupported,
	} {
		if _, err := s.Add(t.Context(), testFont(t, name)); refusal(t, err) != want {
			t.Errorf("adding %s: %v, want code %s", name, err, want)
		}
	}
	for _, name := range []string{"Noto", "", s.list[0].SHA256[:7]} {
		if _, err := s.Remove(t.Context(), name); refusal(t, err) != problem.CodeFontNotFound {
			t.Errorf("removing %q: %v, want CodeNotFound", name, err)
		}
	}
	for i := len(s.list); i < fonts.MaxAdded; i++ { // bytes after the tables change the hash
		if _, err := s.Add(t.Context(), append(testFont(t, "cff.otf"), byte(i))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Remove(t.Context(), "CFFTest"); refusal(t, err) != problem.CodeFontNotFound {
		t.Errorf("removing a name that several fonts have: %v, want CodeNotFound", err)
	}
	if _, err := s.Add(t.Context(), testFont(t, "cff.otf")); refusal(t, err) != problem.CodeFontTooMany ||
		len(s.List()) != fonts.MaxAdded {
		t.Errorf("adding one font too many: %v, want CodeTooMany", err)
	}
}

func TestStore_IgnoresADamagedFile(t *testing.T) {
	dir := t.TempDir()
	f := add(t, open(t, dir), "cherokee-regular.ttf")
	path := filepath.Join(dir, Dir, f.SHA256)
	if err := os.WriteFile(path, []byte("OTTO"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	if list := s.List(); len(list) != 1 || list[0].Problem == "" || len(drawing()) != 0 {
		t.Errorf("fonts %+v, drawing with %v; want a problem and no font in use", list, drawing())
	}
	if log := s.log.String(); !strings.Contains(log, f.SHA256) || !strings.Contains(log, "its content has changed") {
		t.Errorf("log %q", log)
	}
	if add(t, s, "cherokee-regular.ttf") != f || len(drawing()) != 1 || s.List()[0].Problem != "" {
		t.Error("adding the font again did not repair it")
	}
}

func TestStore_OutlivesADamagedList(t *testing.T) {
	for _, list := range []string{"{", `{"fonts":[{"name":"x","sha256":"../../../etc/passwd"}]}`} {
		dir := t.TempDir()
		add(t, open(t, dir), "cherokee-regular.ttf")
		if err := os.WriteFile(filepath.Join(dir, Dir, indexName), []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, dir)
		kept, _ := filepath.Glob(filepath.Join(dir, Dir, unreadableIndex+"*"))
		if len(s.List()) != 1 || len(kept) != 1 || !strings.Contains(s.log.String(), "list of added fonts") {
			t.Errorf("%s: fonts %v, set aside %v, log %s; want 1 font, 1 list set aside and a log record about it",
				list, s.List(), kept, s.log.String())
		}
		if again := open(t, dir); !slices.Equal(again.List(), s.List()) || again.log.String() != "" {
			t.Errorf("%s: after another start: fonts %v, log %s; want no change", list, again.List(), again.log.String())
		}
	}
}

func TestStore_KeepsItsListIfLeftoversCannotBeRemoved(t *testing.T) {
	dir := t.TempDir()
	want := []Font{add(t, open(t, dir), "cherokee-regular.ttf")}
	if err := os.MkdirAll(filepath.Join(dir, Dir, strings.Repeat("ab", 32), "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if s := open(t, dir); !slices.Equal(s.List(), want) || !strings.Contains(s.log.String(), "leftover") {
			t.Errorf("fonts %v, want %v; log %s", s.List(), want, s.log.String())
		}
	}
}

// The list never contains a missing file, and the next start removes a file that is not in the list.
func TestStore_RemovesWhatAKilledWriterLeft(t *testing.T) {
	dir := t.TempDir()
	f := add(t, open(t, dir), "cherokee-regular.ttf")
	lost := filepath.Join(dir, Dir, strings.Repeat("ab", 32))
	if err := os.WriteFile(lost, []byte("OTTO"), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	if _, err := os.Stat(lost); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stat the leftover file: %v, want ErrNotExist", err)
	}
	if _, err := os.Stat(filepath.Join(dir, Dir, f.SHA256)); err != nil {
		t.Error(err)
	}
}

func TestStore_SaysThatItCannotWrite(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, Dir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	if _, err := s.Add(t.Context(), testFont(t, "cff.otf")); refusal(t, err) != problem.CodeStateUnwritable ||
		len(s.List()) != 0 {
		t.Errorf("%v", err)
	}
}

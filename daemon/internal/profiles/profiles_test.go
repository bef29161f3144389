package profiles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/glasses/assistantscript"
)

const (
	app = "com.example.app"
	ann = "0123456789abcdef0123456789abcdef"
	ben = "f123456789abcdef0123456789abcdef"
)

// clock is a time that tests move.
type clock struct{ now time.Time }

func newStore(dir string, c *clock) *Store {
	return New(dir, func() time.Time { return c.now }, slog.New(slog.DiscardHandler))
}

func newClock() *clock { return &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func wantText(t *testing.T, s *Store, project, user, want string) {
	t.Helper()
	if got := s.Get(project, user).Text; got != want {
		t.Errorf("profile of %.4s in %s: got %q, want %q", user, project, got, want)
	}
}

func save(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Save(); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, s *Store, project, user, text string) {
	t.Helper()
	if err := s.Put(project, user, text); err != nil {
		t.Fatal(err)
	}
}

func erase(t *testing.T, s *Store, project, user string) {
	t.Helper()
	if err := s.Erase(project, user); err != nil {
		t.Fatal(err)
	}
}

func TestStore_KeepsProfilesOfUsersAndProjectsApart(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	s := newStore(dir, c)
	first := s.Begin(app, ann)
	first.End("Name: Ann", "", "Likes <tea>")
	first.End("Not added")
	s.Begin("com.example.other", ann).End("Name: Nina")
	(*Conversation)(nil).End("Nobody")
	save(t, s)
	s = newStore(dir, c)
	wantText(t, s, app, ann, "Name: Ann\nLikes <tea>")
	wantText(t, s, app, ben, "")
	wantText(t, s, "com.example.other", ann, "Name: Nina")
	if got := s.Begin(app, ann).Profile; got != "Name: Ann\nLikes <tea>" {
		t.Errorf("the next conversation began with %q", got)
	}
	path := filepath.Join(dir, fileName)
	data, err := os.ReadFile(path)
	if err != nil || bytes.Contains(data, []byte(ann)) {
		t.Errorf("memory.json: %v, or it contains the user's secret", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("memory.json: got %v, %v, want mode 0600", info.Mode(), err)
	}
}

func TestStore_EraseStopsMergesUnderWay(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	s := newStore(dir, c)
	put(t, s, app, ann, "Name: Ann")
	put(t, s, app, ben, "Name: Ben")
	before, other := s.Begin(app, ann), s.Begin(app, ben)
	erase(t, s, app, ann)
	after := s.Begin(app, ann)
	before.End("Likes tea")
	other.End("Likes coffee")
	wantText(t, s, app, ann, "")
	after.End("Likes milk")
	wantText(t, s, app, ann, "Likes milk")
	wantText(t, s, app, ben, "Name: Ben\nLikes coffee")
	if len(s.open) > 0 {
		t.Errorf("%d conversations are still open", len(s.open))
	}
}

func TestStore_ForgetsUnusedProfiles(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	s := newStore(dir, c)
	put(t, s, app, ann, "Name: Ann")
	put(t, s, app, ben, "Name: Ben")
	c.now = c.now.Add(Life)
	s.Begin(app, ann).End()
	save(t, s)
	c.now = c.now.Add(time.Second)
	for range 2 {
		wantText(t, s, app, ann, "Name: Ann")
		wantText(t, s, app, ben, "")
		s = newStore(dir, c)
	}
	if p := s.Get(app, ann); !p.ExpiresAt.Equal(c.now.Add(Life-time.Second)) || !p.UpdatedAt.Equal(newClock().now) {
		t.Errorf("got %+v, want a profile that expires %v after its last use", p, Life)
	}
}

func TestStore_DropsLeastRecentlyUsed(t *testing.T) {
	c := newClock()
	s := newStore(t.TempDir(), c)
	user := func(i int) string { return fmt.Sprintf("%032x", i) }
	for i := range Max {
		k := s.key(app, user(i)) // without writing the file each time
		s.put(k, s.newEntry(k, strings.Repeat("\"", assistantscript.MaxProfile)))
		c.now = c.now.Add(time.Second)
	}
	s.Begin(app, user(0)).End()
	put(t, s, app, user(Max), "new")
	wantText(t, s, app, user(1), "")
	wantText(t, s, app, user(Max), "new")
	if s.Get(app, user(0)).Text == "" || len(s.entries) != Max {
		t.Errorf("the profile used last is missing, or there are %d profiles instead of %d", len(s.entries), Max)
	}
	save(t, s)
	if again := newStore(filepath.Dir(s.path), c); again.Get(app, user(0)).Text == "" || len(again.entries) != Max {
		t.Errorf("%d profiles were read again, want %d", len(again.entries), Max)
	}
}

func TestStore_RenamesUnusableFile(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	if err := os.WriteFile(filepath.Join(dir, fileName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStore(dir, c)
	wantText(t, s, app, ann, "")
	put(t, s, app, ann, "Name: Ann")
	save(t, s)
	if _, err := os.Stat(filepath.Join(dir, fileName+".corrupt-20260101T000000Z")); err != nil {
		t.Error(err)
	}
}

func TestStore_SavesAgainAfterFailure(t *testing.T) {
	dir, c := filepath.Join(t.TempDir(), "missing"), newClock()
	s := newStore(dir, c)
	save(t, s) // nothing has changed
	s.Begin(app, ann).End("Name: Ann")
	if err := s.Save(); err == nil {
		t.Fatal("saved in a directory that does not exist")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	save(t, s)
	wantText(t, newStore(dir, c), app, ann, "Name: Ann")
}

func TestNewPrivate_HasOneProfileForAll(t *testing.T) {
	s := NewPrivate("Name: Ann", newClock().now.UTC)
	s.Begin(app, ann).End("Likes tea")
	wantText(t, s, app, ben, "Name: Ann\nLikes tea")
	save(t, s)
	erase(t, s, app, ben)
	wantText(t, s, app, ann, "")
}

// Nothing that has expired stays on disk, not even in a file that was put aside.
func TestSweep_DeletesExpiredProfilesFromDisk(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	s := newStore(dir, c)
	put(t, s, app, ann, "Name: Ann")
	c.now = c.now.Add(time.Hour)
	put(t, s, app, ben, "Name: Ben")
	save(t, s)
	aside := filepath.Join(dir, fileName+corrupt+"20260101T000000Z")
	if err := os.WriteFile(aside, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(aside, c.now, c.now); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{"Name: Ben", ""} {
		c.now = c.now.Add(Life - time.Minute)
		if left == "" {
			c.now = c.now.Add(time.Hour)
		}
		for _, store := range []*Store{s, newStore(dir, c)} { // one that runs, and one after a restart
			if err := store.Sweep(); err != nil {
				t.Fatal(err)
			}
		}
		data, err := os.ReadFile(filepath.Join(dir, fileName))
		if err != nil || bytes.Contains(data, []byte("Ann")) || bytes.Contains(data, []byte("Name")) != (left != "") {
			t.Errorf("want the file with %q alone: got %s, %v", left, data, err)
		}
		c.now = newClock().now.Add(time.Hour)
	}
	if _, err := os.Stat(aside); !os.IsNotExist(err) {
		t.Errorf("the file that was put aside: got %v, want it deleted", err)
	}
}

// A file that cannot be read stays where it is, and nothing is changed until it can be.
func TestLoad_KeepsUnreadableFile(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	path := filepath.Join(dir, fileName)
	if err := os.Mkdir(path, 0o700); err != nil { // whoever runs the test, a directory cannot be read as a file
		t.Fatal(err)
	}
	s := newStore(dir, c)
	if err := s.Load(); err == nil {
		t.Fatal("read a directory")
	}
	if s.Put(app, ann, "Name: Ann") == nil || s.Erase(app, ann) == nil {
		t.Error("changed a profile that cannot be read")
	}
	s.Begin(app, ann).End("Likes tea")
	wantText(t, s, app, ann, "")
	save(t, s)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	put(t, s, app, ann, "Name: Ann")
	save(t, s)
	wantText(t, newStore(dir, c), app, ann, "Name: Ann")
}

func TestSave_WritesAUseOnlyAfterAnHour(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	s := newStore(dir, c)
	put(t, s, app, ann, "Name: Ann")
	save(t, s)
	for wait, want := range map[time.Duration]bool{time.Minute: false, useStep: true} {
		if err := os.Remove(s.path); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		c.now = s.entries[s.key(app, ann)].saved.Add(wait)
		s.Begin(app, ann).End()
		save(t, s)
		if _, err := os.Stat(s.path); (err == nil) != want {
			t.Errorf("a use %v after the last: got %v, want the file written: %v", wait, err, want)
		}
	}
}

func TestLoad_KeepsMostRecentlyUsed(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	var f file
	for i := range Max + 1 {
		f.Profiles = append(f.Profiles, &entry{Project: app, User: fmt.Sprint(i), Profile: "a",
			UsedAt: c.now.Add(time.Duration(i) * time.Second)})
	}
	f.Profiles = append(f.Profiles, nil)
	data, err := json.Marshal(f)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, fileName), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(dir, c)
	if err := s.Load(); err != nil {
		t.Fatal(err)
	}
	last := s.entries[key{app, fmt.Sprint(Max)}]
	if len(s.entries) != Max || s.entries[key{app, "0"}] != nil || last == nil {
		t.Fatalf("got %d profiles, want the %d that were used last", len(s.entries), Max)
	}
	if !last.UsedAt.Equal(c.now) {
		t.Errorf("a use in the future: got %v, want %v", last.UsedAt, c.now)
	}
}

// A conversation that learns nothing leaves the app's own text as it is.
func TestEnd_KeepsTextWithoutNewLines(t *testing.T) {
	s := newStore(t.TempDir(), newClock())
	for _, text := range []string{"Name: Ann\n", "\n"} {
		put(t, s, app, ann, text)
		s.Begin(app, ann).End("")
		wantText(t, s, app, ann, text)
	}
}

// A change that cannot be written has no effect, and does not keep later ones from being written.
func TestPut_ChangesNothingOnFailure(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	s := newStore(dir, c)
	put(t, s, app, ann, "Name: Ann")
	if err := errors.Join(os.Remove(s.path), os.Mkdir(s.path, 0o700)); err != nil { // nothing can replace it
		t.Fatal(err)
	}
	s.Begin(app, ben).End("Name: Ben")
	open := s.Begin(app, ann)
	if s.Put(app, ann, "Name: Nina") == nil || s.Erase(app, ann) == nil {
		t.Fatal("changed a profile without the file")
	}
	wantText(t, s, app, ann, "Name: Ann")
	open.End("Likes tea")
	if err := os.Remove(s.path); err != nil {
		t.Fatal(err)
	}
	save(t, s)
	s = newStore(dir, c)
	wantText(t, s, app, ann, "Name: Ann\nLikes tea")
	wantText(t, s, app, ben, "Name: Ben")
}

// A use that was to be written with a change that failed is written later.
func TestPut_KeepsUsesOnFailure(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	s := newStore(dir, c)
	put(t, s, app, ann, "Name: Ann")
	c.now = c.now.Add(useStep / 2) // too soon for the file to be written for the use alone

	if err := errors.Join(os.Remove(s.path), os.Mkdir(s.path, 0o700)); err != nil { // nothing can replace it
		t.Fatal(err)
	}
	s.Begin(app, ann).End()
	used := s.entries[s.key(app, ann)].UsedAt
	if s.Put(app, ben, "Name: Ben") == nil {
		t.Fatal("changed a profile without the file")
	}
	if err := os.Remove(s.path); err != nil {
		t.Fatal(err)
	}
	save(t, s)
	if got := newStore(dir, c).Get(app, ann).ExpiresAt; !got.Equal(used.Add(Life)) {
		t.Errorf("the profile expires at %v, want %v", got, used.Add(Life))
	}
}

// A store without profiles is a file with an empty list.
func TestErase_LeavesAnEmptyList(t *testing.T) {
	s := newStore(t.TempDir(), newClock())
	put(t, s, app, ann, "Name: Ann")
	erase(t, s, app, ann)
	if data, err := os.ReadFile(s.path); err != nil || !bytes.Contains(data, []byte(`"profiles": []`)) {
		t.Errorf("got %s, %v", data, err)
	}
}

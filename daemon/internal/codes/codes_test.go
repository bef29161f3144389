package codes

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(dir string, now time.Time) *Store {
	return New(dir, func() time.Time { return now }, slog.New(slog.DiscardHandler))
}

func put(t *testing.T, s *Store, code string, issued Issued) {
	t.Helper()
	if err := s.Put(code, issued); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestStore_SurvivesARestartWithoutTheCode(t *testing.T) {
	dir := t.TempDir()
	call := &Call{Tool: "createSimulatorSession", Args: json.RawMessage(`{"project":"com.example.app"}`), Cwd: "/home/a"}
	put(t, at(dir, start), "sdc_secret", Issued{Backend: "https://a.test", Expires: start.Add(10 * time.Minute),
		Call: call})
	if text := read(t, dir); strings.Contains(text, "sdc_secret") {
		t.Error("the file holds the code:", text)
	}
	if info, _ := os.Stat(filepath.Join(dir, FileName)); info.Mode().Perm() != 0o600 {
		t.Error("mode", info.Mode())
	}
	s := at(dir, start.Add(time.Minute))
	got, ok, err := s.Find("sdc_secret")
	if err != nil || !ok || got.Backend != "https://a.test" || !got.Expires.Equal(start.Add(10*time.Minute)) ||
		got.Call.Tool != call.Tool ||
		string(got.Call.Args) != string(call.Args) || got.Call.Cwd != "/home/a" {
		t.Errorf("%+v, %v, %v", got, ok, err)
	}
	if _, ok, _ := s.Find("sdc_other"); ok {
		t.Error("found a code that was never stored")
	}
	if err := s.Remove("sdc_secret"); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := at(dir, start).Find("sdc_secret"); ok {
		t.Error("found a removed code")
	}
}

// The page of a code survives a restart, but only someone with the code can decrypt it.
func TestStore_KeepsThePageSecret(t *testing.T) {
	dir := t.TempDir()
	const page = "https://a.test/activate?code=WDJB-MJHT"
	issued := Issued{Backend: "https://a.test", Expires: start, Page: page}
	put(t, at(dir, start), "sdc_a", issued)
	if text := read(t, dir); strings.Contains(text, "WDJB") || strings.Contains(text, "activate") {
		t.Error("the file holds the page:", text)
	}
	s := at(dir, start)
	if err := s.Update("sdc_a", func(i *Issued) { i.Opened, i.Aborted = true, true }); err != nil {
		t.Fatal(err)
	}
	if err := s.Update("sdc_unknown", func(*Issued) { t.Error("changed an unknown code") }); err != nil {
		t.Error(err)
	}
	put(t, s, "sdc_a", issued) // a second gated call keeps both marks
	if got, ok, err := at(dir, start).Find("sdc_a"); !ok || err != nil || got.Page != page || !got.Opened ||
		!got.Aborted {
		t.Errorf("%+v, %v, %v; want the page and both marks", got, ok, err)
	}
	s.file.Codes[0].Page[0] ^= 1
	if got, _, _ := s.Find("sdc_a"); got.Page != "" {
		t.Errorf("a changed page was read as %q", got.Page)
	}
}

func TestStore_KeysDiffer(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for _, dir := range []string{a, b} {
		put(t, at(dir, start), "sdc_same", Issued{Expires: start})
	}
	hash := func(dir string) string { s := at(dir, start); s.loadOnce(); return s.file.Codes[0].Hash }
	if hash(a) == hash(b) {
		t.Error("two installs store the same hash")
	}
}

func TestStore_Bounds(t *testing.T) {
	dir := t.TempDir()
	s := at(dir, start)
	for i := range maxEntries + 10 {
		put(t, s, fmt.Sprint("sdc_", i), Issued{Expires: start.Add(time.Minute)})
	}
	if _, ok, _ := s.Find("sdc_9"); ok || len(s.file.Codes) != maxEntries {
		t.Errorf("%d codes are kept, want maxEntries without the oldest", len(s.file.Codes))
	}
	if _, ok, _ := s.Find("sdc_10"); !ok {
		t.Error("a newer code was removed before the oldest")
	}
	late := at(dir, start.Add(time.Minute+keepAfter+time.Second))
	if _, ok, _ := late.Find("sdc_20"); ok {
		t.Error("found a code past its grace period")
	}
	put(t, late, "sdc_new", Issued{Expires: late.now()})
	if len(late.file.Codes) != 1 {
		t.Errorf("%d codes are kept after the others expired, want 1", len(late.file.Codes))
	}
	if _, ok, _ := at(dir, start.Add(-MaxWindow)).Find("sdc_new"); ok {
		t.Error("a code is kept longer after the clock was set back")
	}
}

func TestStore_DropsCallsThatMayHoldSecrets(t *testing.T) {
	dir := t.TempDir()
	s := at(dir, start)
	for name, args := range map[string]string{
		"secret": `{"a":"svc_aGVsbG8td29ybGQtdGhpcy1pcy1hLXRlc3QtdG9rZW4wMDEyMzQ"}`,
		"large":  `{"a":"` + strings.Repeat("x ", maxArgs) + `"}`,
	} {
		put(t, s, name, Issued{Expires: start, Call: &Call{Tool: "t", Args: json.RawMessage(args)}})
		if got, ok, _ := s.Find(name); !ok || got.Call != nil {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
	if strings.Contains(read(t, dir), "svc_") {
		t.Error("the file holds a token")
	}
}

func TestStore_UnusableFile(t *testing.T) {
	for name, content := range map[string]string{"not JSON": "{", "no key": `{"codes":[{"hash":""}]}`,
		"short key": `{"key":"YQ==","codes":[]}`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, FileName), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		s := at(dir, start)
		if _, ok, err := s.Find("sdc_a"); ok || err != nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
		put(t, s, "sdc_a", Issued{Expires: start})
		if _, ok, _ := at(dir, start).Find("sdc_a"); !ok {
			t.Errorf("%s: the file was not replaced", name)
		}
	}
}

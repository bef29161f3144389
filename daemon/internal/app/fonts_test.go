//go:build unix

package app

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/fontstore"
	"github.com/service-dev/service/daemon/internal/pluginhost"
	"github.com/service-dev/service/daemon/internal/scenario"
	"github.com/service-dev/service/glasses"
	file "github.com/service-dev/service/glasses/scenario"
)

func testFont(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../../glasses/render/fonts/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// startFonts opens the added fonts of a daemon's state directory. No other test of the package adds a font.
func startFonts(t *testing.T, l *locals, dir string) *fontstore.Store {
	t.Helper()
	s := fontstore.Open(fontstore.Options{StateDir: dir, Use: l.host.UseFonts, Log: slog.New(slog.DiscardHandler),
		Now: time.Now})
	t.Cleanup(func() {
		for _, f := range s.List() {
			if _, err := s.Remove(t.Context(), f.SHA256); err != nil && t.Context().Err() == nil {
				t.Error(err)
			}
		}
	})
	return s
}

// cherokee is an app that shows letters missing from our fonts, and shows them again after each tap.
func cherokee(l *locals, t *testing.T) (id string, again func() []glasses.Finding) {
	t.Helper()
	results := make(chan glasses.Result, 16)
	show := func(a *testApp) { a.ask(glasses.TypeDisplayShow, text("ᏣᎳᎩ")) }
	o := startApp(t, l, backend.ClockVirtual, show, func(a *testApp, f glasses.Frame) {
		var r glasses.Result
		switch {
		case f.Type == glasses.TypeInput:
			show(a)
		case f.Type == glasses.TypeResult && json.Unmarshal(f.Payload, &r) == nil:
			results <- r
		}
	})
	<-results
	return o.SessionID, func() []glasses.Finding {
		t.Helper()
		if _, err := l.Control(t.Context(), backend.Target{}, o.SessionID, glasses.SimInput, glasses.Input{Kind: "tap"},
			nil); err != nil {
			t.Fatal(err)
		}
		return (<-results).Findings
	}
}

// The daemon and the simulator use an added font immediately and stop using it once it is removed. Both always report
// the same missing characters. Tests with added fonts do not run in parallel with others, because fonts are shared by
// the whole process.
func TestAddedFont_DaemonAndSimulatorAgree(t *testing.T) {
	dir := t.TempDir()
	l := startLocals(t, dir)
	store := startFonts(t, l, dir)
	id, again := cherokee(l, t)
	agree := func(when string, missing bool) []byte {
		t.Helper()
		simulator := again()
		d, err := l.Display(t.Context(), backend.Target{}, id)
		if err != nil {
			t.Fatal(err)
		}
		if daemon := d.Findings(); !slices.Equal(daemon, simulator) || (len(daemon) > 0) != missing {
			t.Errorf("%s: characters missing in the daemon: %v, in the simulator: %v", when, daemon, simulator)
		}
		return d.PNG
	}
	boxes := agree("without the font", true)
	f, err := store.Add(t.Context(), testFont(t, "cherokee-regular.ttf"))
	if err != nil {
		t.Fatal(err)
	}
	letters := agree("with the font", false)
	if bytes.Equal(boxes, letters) {
		t.Error("adding the font did not change the picture")
	}
	for _, p := range l.host.Plugins() {
		if p.Name == pluginhost.LocalSim {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
	gone := l.until(t, id, 0, func(e glasses.Event) bool { return e.Type == glasses.RowGlassesDetached })
	l.until(t, id, gone.Seq, func(e glasses.Event) bool { return e.Type == glasses.RowGlassesAttached })
	if !bytes.Equal(agree("after a crash of the simulator", false), letters) {
		t.Error("a crash of the simulator changed the picture")
	}
	if _, err := store.Remove(t.Context(), f.Name); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(agree("after its removal", true), boxes) {
		t.Error("the picture differs from the one before the font was added")
	}
}

// A recording lists the added fonts that its texts use. A replay without them reports how to add them.
func TestAddedFont_RecordingNamesIt(t *testing.T) {
	dir := t.TempDir()
	l := startLocals(t, dir)
	store := startFonts(t, l, dir)
	f, err := store.Add(t.Context(), testFont(t, "cherokee-bold.woff"))
	if err != nil {
		t.Fatal(err)
	}
	id, again := cherokee(l, t)
	again()
	a, recording := newAgent(t, l), filepath.Join(t.TempDir(), "recording")
	a.record(id, recording)
	data, err := os.ReadFile(filepath.Join(recording, "scenario.json"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := file.Parse(data)
	if want := []file.Font{{Name: f.Name, SHA256: f.SHA256}}; err != nil || !slices.Equal(s.Fonts, want) {
		t.Fatalf("fonts %v, %v", s.Fonts, err)
	}
	id, _ = cherokee(l, t)
	if r, _ := a.replay(id, recording, map[string]any{}); r.Verdict != scenario.Pass || len(r.MissingFonts) > 0 {
		t.Errorf("replay with the font: %+v; want a pass and no missing font", r)
	}
	if _, err := store.Remove(t.Context(), f.SHA256[:8]); err != nil {
		t.Fatal(err)
	}
	id, _ = cherokee(l, t)
	r, _ := a.replay(id, recording, map[string]any{})
	want := "font Noto Sans Cherokee Bold (sha256 " + f.SHA256 + ") was used for the recording but is not installed: " +
		"add it with `servicectl fonts add`"
	if r.Verdict != scenario.Fail || !slices.Equal(r.MissingFonts, []string{want}) ||
		!strings.HasPrefix(r.Summary, "F"+want[1:]) {
		t.Errorf("replay without the font: %+v; want a failure that names the font", r)
	}
	id, _ = cherokee(l, t)
	if r, _ := a.replay(id, recording, map[string]any{"accept": true}); !r.Accepted {
		t.Fatalf("accepting: %+v", r)
	}
	id, _ = cherokee(l, t)
	if r, _ := a.replay(id, recording, map[string]any{}); r.Verdict != scenario.Pass || len(r.MissingFonts) > 0 {
		t.Errorf("replay after accepting: %+v; want a pass and no missing font", r)
	}
}

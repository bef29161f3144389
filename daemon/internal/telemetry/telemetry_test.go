package telemetry

import (
	"bufio"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/consent"
)

func newRecorder(t *testing.T) (*Recorder, *consent.Store) {
	t.Helper()
	dir := t.TempDir()
	c := consent.New(dir)
	now := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	return New(dir, "inst_test", c, slog.New(slog.DiscardHandler), now), c
}

func read(t *testing.T, r *Recorder) []Event {
	t.Helper()
	f, err := os.Open(r.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []Event
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("a line is not whole: %v", err)
		}
		all = append(all, e)
	}
	return all
}

func TestOnlyListedFieldsAreWritten(t *testing.T) {
	r, _ := newRecorder(t)
	r.Record(t.Context(), ToolCalled, map[string]string{"tool": "whoAmI", "outcome": strings.Repeat("x", 500), "userCode": "ABCD-EFGH"})
	r.Record(t.Context(), "something.else", map[string]string{"tool": "whoAmI"})
	events := read(t, r)
	if len(events) != 1 {
		t.Fatalf("events: %v", events)
	}
	e := events[0]
	if e.Name != ToolCalled || e.InstallID != "inst_test" || e.At != "2026-01-02T03:04:05.000Z" || len(e.ID) != 32 {
		t.Errorf("event: %+v", e)
	}
	if len(e.Fields) != 2 || e.Fields["tool"] != "whoAmI" || len(e.Fields["outcome"]) != maxValue {
		t.Errorf("fields: %v", e.Fields)
	}
	if info, err := os.Stat(r.Path()); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the log is open to others: %v, %v", info.Mode(), err)
	}
}

func TestLogIsBoundedAndWhole(t *testing.T) {
	r, _ := newRecorder(t)
	r.Record(t.Context(), Linked, nil)
	if err := os.Truncate(r.Path(), maxLog+1); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { r.Record(t.Context(), Linked, nil) })
	}
	wg.Wait()
	if n := len(read(t, r)); n != 50 {
		t.Errorf("%d events after the turn, want 50", n)
	}
	if _, err := os.Stat(r.Path() + ".old"); err != nil {
		t.Error(err)
	}
}

// The switches of design D28, strongest first.
func TestGateNamesTheSwitchThatWon(t *testing.T) {
	for _, c := range []struct {
		env     map[string]string
		state   consent.State
		allowed bool
		by      string
	}{
		{nil, consent.Unset, true, ByDefault},
		{nil, consent.Accepted, true, ByConsent},
		{nil, consent.Declined, false, ByConsent},
		{map[string]string{"SERVICE_TELEMETRY": "0"}, consent.Accepted, false, ByEnv},
		{map[string]string{"SERVICE_TELEMETRY": "1"}, consent.Declined, false, ByConsent},
		{map[string]string{"DO_NOT_TRACK": "1"}, consent.Accepted, false, ByDNT},
		{map[string]string{"DO_NOT_TRACK": "0"}, consent.Accepted, true, ByConsent},
		{map[string]string{"CI": "true"}, consent.Accepted, false, ByCI},
		{map[string]string{"SERVICE_TELEMETRY": "0", "DO_NOT_TRACK": "1", "CI": "true"}, consent.Accepted, false, ByEnv},
	} {
		r, store := newRecorder(t)
		if err := store.Set(c.state); err != nil {
			t.Fatal(err)
		}
		if allowed, by := r.Gate(caller.Caller{Env: c.env}); allowed != c.allowed || by != c.by {
			t.Errorf("%v with %s: %v by %s, want %v by %s", c.env, c.state, allowed, by, c.allowed, c.by)
		}
	}
}

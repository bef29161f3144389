package telemetry

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/service-dev/service/proto/telemetry"
)

func line(t testing.TB) []byte {
	id, err := uuid.NewV7()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(telemetry.Event{ID: id.String(), At: "2026-01-02T03:04:05.000Z", Name: telemetry.Linked})
	if err != nil {
		t.Fatal(err)
	}
	return append(data, '\n')
}

// named returns the name of a segment that is older than current ones; n determines the order of such segments.
func named(url string, n int) string {
	return fmt.Sprintf("00000000-0000-7000-8000-%012d.%s.jsonl", n, markOf(url))
}

func put(t *testing.T, s *spool, url string, n int, text string) (path string) {
	t.Helper()
	path = filepath.Join(s.dir, named(url, n))
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func fill(t *testing.T, s *spool, n int) {
	t.Helper()
	for range n {
		if _, err := s.add(ours, line(t)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFullSpoolLosesTheOldestAndCountsThem(t *testing.T) {
	s := newSpool(newLockedDir(filepath.Join(t.TempDir(), Dir)))
	s.cap = segmentCap + 64<<10
	const written = 1500
	fill(t, s, written)
	waiting, bytes := s.waiting()
	lost := s.counterFile.read().Dropped
	if lost == 0 || int64(waiting)+lost != written || bytes > s.cap {
		t.Errorf("%d events wait in %d bytes, %d lost; want the bytes bounded and all events counted", waiting, bytes, lost)
	}
	l, err := s.next(ours)
	if err != nil || l.Dropped != lost || len(l.Events) != telemetry.MaxBatch {
		t.Errorf("batch of %d events, %d dropped, error %v; want MaxBatch and all lost ones", len(l.Events), l.Dropped, err)
	}
}

// Lines that a killed writer or another program left in the spool are skipped. All other events are kept.
func TestForeignBytesInTheSpool(t *testing.T) {
	s := newSpool(newLockedDir(filepath.Join(t.TempDir(), Dir)))
	fill(t, s, 2)
	good := string(line(t))
	for i, text := range []string{
		good + good[:30],        // incomplete line
		"\x00\x00\xff\n" + good, // zero bytes
		strings.Repeat("x", maxLine+1) + "\n",
		strings.Replace(good, telemetry.Linked, "else.where", 1) + strings.Replace(good, "}", `,"secret":"x"}`, 1),
		"",
		"null\n[]\n{}\n",
		`{"id":"1","at":"2026-01-02T03:04:05.000Z","name":"account.linked"}` + "\n",
		strings.Replace(good, "2026-01-02T", "x", 1),
		strings.Repeat(good, telemetry.MaxBatch+5),
	} {
		put(t, s, ours, i, text)
	}
	if err := os.Rename(put(t, s, ours, 10, good),
		filepath.Join(s.dir, strings.TrimSuffix(named(ours, 10), segmentEnd)+sentMark+segmentEnd)); err != nil {
		t.Fatal(err)
	}
	total := 0
	for range 20 {
		l, err := s.next(ours)
		if err != nil {
			t.Fatal(err)
		}
		if len(l.names) == 0 {
			break
		}
		body, err := json.Marshal(l.Batch)
		if err != nil || len(body) > telemetry.MaxBody || len(l.Events) > telemetry.MaxBatch ||
			strings.Contains(string(body), "secret") {
			t.Errorf("a batch of %d events in %d bytes, error %v; above a limit", len(l.Events), len(body), err)
		}
		total += len(l.Events)
		if err := s.drop(l, func(*counters) {}); err != nil {
			t.Fatal(err)
		}
	}
	if want := 2 + 1 + 1 + 1 + telemetry.MaxBatch + 1; total != want {
		t.Errorf("read %d events, want %d", total, want)
	}
	if lost := s.counterFile.read().Dropped; lost != 1+1+1+1+3+1+1+5 {
		t.Errorf("%d events count as lost, want the sum over all segments", lost)
	}
}

// stuck makes deleting fail for segments whose names contain part.
func stuck(s *spool, part string) {
	s.unlink = func(path string) error {
		if strings.Contains(filepath.Base(path), part) {
			return &os.PathError{Op: "remove", Path: path, Err: os.ErrPermission}
		}
		return os.Remove(path)
	}
}

// If one segment cannot be deleted, the others are still erased, and the error names it.
func TestClearGoesOnAfterWhatCannotBeDeleted(t *testing.T) {
	s := newSpool(newLockedDir(filepath.Join(t.TempDir(), Dir)))
	for n := range 3 {
		put(t, s, ours, n, string(line(t)))
	}
	stuck(s, named(ours, 0))
	if n, err := s.clear(); n != 2 || !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), named(ours, 0)) {
		t.Errorf("%d, %v", n, err)
	}
	s.unlink = os.Remove
	if n, err := s.clear(); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// Segments of early builds do not identify a backend. They are counted and erased but never sent.
func TestSegmentsWithoutABackendAreErased(t *testing.T) {
	s := newSpool(newLockedDir(filepath.Join(t.TempDir(), Dir)))
	old := func() {
		for n, end := range []string{segmentEnd, sentMark + segmentEnd} {
			path := put(t, s, ours, n, string(line(t)))
			if err := os.Rename(path, strings.Replace(path, "."+markOf(ours)+segmentEnd, end, 1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	old()
	if n, err := s.clear(); n != 2 || err != nil {
		t.Errorf("erased %d, %v", n, err)
	}
	old()
	if l, err := s.next(ours); err != nil || len(l.Events) != 0 || l.unread != nil {
		t.Errorf("%+v, %v", l, err)
	}
	if left, err := os.ReadDir(s.dir); len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// If two processes share a directory and one of them uploads, no event is lost or sent twice.
func TestTwoProcessesShareTheSpool(t *testing.T) {
	dir := filepath.Join(t.TempDir(), Dir)
	daemon, other := newSpool(newLockedDir(dir)), newSpool(newLockedDir(dir))
	const each = 300
	var wg sync.WaitGroup
	refused := 0
	for _, s := range []*spool{daemon, other} {
		wg.Go(func() {
			for range each {
				if _, err := s.add(ours, line(t)); err != nil {
					t.Log(err)
					refused++
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	seen := map[string]bool{}
	collect := func() {
		l, err := daemon.next(ours)
		if err != nil {
			return // the other process holds the lock
		}
		for _, e := range l.Events {
			if seen[e.ID] {
				t.Errorf("the event %s was sent twice", e.ID)
			}
			seen[e.ID] = true
		}
		if err := daemon.drop(l, func(*counters) {}); err != nil {
			t.Error(err)
		}
	}
	for writing := true; writing; {
		select {
		case <-done:
			writing = false
		default:
		}
		collect()
	}
	for range 10 {
		collect()
	}
	if len(seen)+refused != 2*each {
		t.Errorf("%d of %d events arrived, and %d were refused", len(seen), 2*each, refused)
	}
}

// A deleted state directory is not recreated.
func TestDeletedDirectoryIsNotMadeAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if _, err := newSpool(newLockedDir(filepath.Join(dir, Dir))).add(ours, line(t)); err == nil {
		t.Error("the spool accepted an event without a state directory")
	}
	if err := newJournal(newLockedDir(filepath.Join(dir, Dir))).add(line(t)); err == nil {
		t.Error("the log accepted an event without a state directory")
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the state directory was recreated")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(line(f))
	f.Add([]byte("{\"id\":\n\x00"))
	f.Add([]byte(`{"id":"0190a1b2-0000-7000-8000-000000000000","at":"2026-01-02T03:04:05.000Z","name":"tool.called","fields":{"tool":"x","durationMs":1e3}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		events, _ := parse(data)
		for _, e := range events {
			if _, err := e.Record(); err != nil {
				t.Error(err)
			}
			out, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			if again, lost := parse(append(out, '\n')); len(again) != 1 || lost != 0 || fmt.Sprint(again[0].ID) != e.ID {
				t.Errorf("%s cannot be parsed again", out)
			}
		}
	})
}

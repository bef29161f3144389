package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/service-dev/service/glasses"
)

// openTestLog opens a log and runs its writer until the test ends, or until stop is called.
func openTestLog(t testing.TB, path string) (l *eventLog, stop func()) {
	t.Helper()
	l, err := openLog(path, func(glasses.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	l.written, l.broken = func([]entry) {}, func(error) {}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { l.serve(ctx) })
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return l, stop
}

func numbered(i int) glasses.Event {
	return glasses.Event{At: int64(i), Kind: glasses.KindEvent, Type: "x", ID: fmt.Sprint("a-", i),
		Sender: glasses.SenderApp, Payload: json.RawMessage(`{}`)}
}

// A log of any length can be read from any row, even after a restart, although only its end is in memory.
func TestLog_ReadsFromAnyRow(t *testing.T) {
	path := filepath.Join(t.TempDir(), eventsName)
	l, stop := openTestLog(t, path)
	const total = 5000
	for i := range total {
		if seq, ok := l.append(numbered(i), nil); !ok || seq != int64(i+1) {
			t.Fatalf("row %d was appended with seq %d, %v", i, seq, ok)
		}
	}
	check := func(l *eventLog) {
		t.Helper()
		if err := l.waitWritten(t.Context(), total); err != nil {
			t.Fatal(err)
		}
		if len(l.tail) > 2*tailRows {
			t.Errorf("%d rows in memory, want at most twice tailRows", len(l.tail))
		}
		for _, since := range []int64{0, 1, 255, 256, 257, 1000, 3975, 3976, 4999} {
			p, err := l.read(since, 3)
			if err != nil || len(p.rows) != int(min(3, total-since)) || p.more != (since+3 < total) || p.truncated {
				t.Fatalf("read since %d: %+v, %v", since, p, err)
			}
			var e glasses.Event
			if err := json.Unmarshal(p.rows[0], &e); err != nil || e.Seq != since+1 {
				t.Errorf("read since %d: first row %s, error %v; want the next seq", since, p.rows[0], err)
			}
		}
		if p, err := l.read(total, 3); len(p.rows) != 0 || p.more || p.next != total || err != nil {
			t.Errorf("read beyond the end: %+v, %v; want no rows", p, err)
		}
	}
	check(l)
	stop()
	again, _ := openTestLog(t, path)
	check(again)
}

// Regardless of what a killed daemon left at the end of the file, the rows before it are kept and the next row follows
// them.
func TestLog_CutsOffIncompleteEnd(t *testing.T) {
	for name, tail := range map[string]string{
		"half a row":  `{"seq":4,"at":1`,
		"no line end": `{"seq":4,"at":1,"kind":"event","type":"x","id":"a","sender":"app","payload":{}}`,
		"noise":       "\x00\x00\x00\n", "a wrong number": `{"seq":9}` + "\n", "nothing": "",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), eventsName)
			l, stop := openTestLog(t, path)
			for i := range 3 {
				l.append(numbered(i), nil)
			}
			stop()
			whole, _ := os.ReadFile(path)
			if err := os.WriteFile(path, append(bytes.Clone(whole), tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			l, stop = openTestLog(t, path)
			if seq, ok := l.append(numbered(3), nil); !ok || seq != 4 {
				t.Errorf("the next row has seq %d, %v; want 4", seq, ok)
			}
			stop()
			data, _ := os.ReadFile(path)
			if !bytes.HasPrefix(data, whole) || strings.Count(string(data), "\n") != 4 {
				t.Errorf("the file contains\n%s\nwant the whole rows and the new one", data)
			}
		})
	}
}

func TestLog_RefusesRowsWhenClosed(t *testing.T) {
	l, stop := openTestLog(t, filepath.Join(t.TempDir(), eventsName))
	stop()
	if _, ok := l.append(numbered(0), nil); ok {
		t.Error("a failed log accepted a row")
	}
	if err := l.waitWritten(t.Context(), 1); !errors.Is(err, errLogClosed) {
		t.Errorf("waiting: %v", err)
	}
}

// A session whose disk cannot be written stops. The next use continues from the files.
func TestLog_EndsSessionWhenWriteFails(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	o := start(t, m, LocalRequest{Project: "com.example.app"})
	a, p := admit(t, m, o, nil)
	send(t, a, glasses.TypeDisplayShow, "a-1", hello)
	p.result(t, "a-1")
	_ = rowsOf(t, m, o.SessionID) // waits until all rows are written
	r := m.local.find(o.SessionID)
	r.log.mu.Lock()
	r.log.pause = 0
	_ = r.log.file.Close()
	r.log.mu.Unlock()
	send(t, a, glasses.TypeDisplayClear, "a-2", `{}`)
	<-a.gone
	if p.mu.Lock(); p.code != glasses.CloseStore {
		t.Errorf("the app was disconnected with %d, want CloseStore", p.code)
	}
	p.mu.Unlock()
	r.wg.Wait()
	want := "glasses.attached app.attached display.show result glasses.attached"
	if _, err := m.local.ready(t.Context(), o.SessionID); err != nil {
		t.Fatal(err)
	}
	if got := types(rowsOf(t, m, o.SessionID)); got != want {
		t.Errorf("rows %s\nwant %s", got, want)
	}
}

// The log of an app that never stops writing keeps the latest rows, even after a restart, and reports older cursors as
// truncated.
func TestLog_TrimsOldestRows(t *testing.T) {
	for name, size := range map[string]int{"rows": 2, "bytes": 60_000} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), eventsName)
			l, stop := openTestLog(t, path)
			total := int64(MaxRows + 300)
			if size > 2 {
				total = int64(MaxLog/size + 20)
			}
			row := numbered(0)
			row.Payload = json.RawMessage(`"` + strings.Repeat("x", size-2) + `"`)
			for i := range total {
				row.ID = fmt.Sprint("a-", i)
				l.append(row, nil)
			}
			check := func(l *eventLog) {
				t.Helper()
				oldest := l.oldest()
				if kept := total - oldest + 1; oldest < 2 || l.size > MaxLog || kept > MaxRows || l.size < MaxLog/2 &&
					kept < MaxRows/2 {
					t.Errorf("kept %d rows with %d bytes, outside the limits", kept, l.size)
				}
				if info, err := os.Stat(path); err != nil || info.Size() != l.size || info.Mode().Perm()&0o077 != 0 {
					t.Errorf("the file is %v (error %v), want its mode private and its size as recorded", info, err)
				}
				for _, since := range []int64{0, oldest - 2, oldest - 1, oldest, oldest + 255, oldest + 256, total - 1} {
					p, err := l.read(since, 2)
					want := max(since+1, oldest)
					var e glasses.Event
					if err != nil || len(p.rows) == 0 || p.truncated != (since < oldest-1) || json.Unmarshal(p.rows[0], &e) != nil ||
						e.Seq != want ||
						p.next != want-1+int64(len(p.rows)) {
						t.Errorf("since %d: first row %d, next %d, truncated %v, error %v", since, e.Seq, p.next, p.truncated, err)
					}
				}
			}
			if err := l.waitWritten(t.Context(), total); err != nil {
				t.Fatal(err)
			}
			// The writer trims rows above the limit before it stops.
			stop()
			l, stop = openTestLog(t, path)
			check(l)
			if seq, ok := l.append(numbered(1), nil); !ok || seq != total+1 {
				t.Errorf("the next row has seq %d, %v; want the total plus one", seq, ok)
			}
			stop()
		})
	}
}

// An app that attaches with a cursor before the oldest row receives a welcome with truncated.
func TestAttach_ReportsTruncatedCursor(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	o := start(t, m, LocalRequest{Project: "com.example.app"})
	_ = rowsOf(t, m, o.SessionID)
	l := m.local.find(o.SessionID).log
	l.mu.Lock()
	l.first++
	l.mu.Unlock()
	for since, truncated := range map[int64]bool{0: true, 1: false} {
		a, _ := admit(t, m, o, &since)
		var w struct{ Payload glasses.Welcome }
		if err := json.Unmarshal(a.Welcome, &w); err != nil || w.Payload.Truncated != truncated {
			t.Errorf("since %d: welcome %s, error %v; want truncated only before the oldest row", since, a.Welcome, err)
		}
	}
}

func TestMedia_LimitsBytes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), mediaDir)
	var s mediaStore
	s.load(dir)
	big := make([]byte, MaxMedia/2)
	for i, name := range []string{"a.jpg", "b.jpg", "b.jpg", "c.jpg"} {
		dropped, err := s.put(name, big)
		if err != nil || (len(dropped) > 0) != (i == 3) {
			t.Fatalf("%s: dropped %v, error %v; want files dropped by the last one only", name, dropped, err)
		}
	}
	var again mediaStore
	again.load(dir)
	if len(again.files) != 2 || again.bytes != MaxMedia {
		t.Errorf("after reopening: %+v, want two files", again.files)
	}
	if _, err := os.Stat(filepath.Join(dir, "a.jpg")); !os.IsNotExist(err) {
		t.Errorf("the oldest file still exists: %v", err)
	}
}

// A log can be opened regardless of the file's contents.
func FuzzLog(f *testing.F) {
	f.Add([]byte(`{"seq":1,"at":0,"kind":"event","chip":"custom","type":"x","id":"a","sender":"app","payload":{}}` +
		"\n" + `{"seq":2`))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), eventsName)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		rows, last := int64(0), int64(0)
		l, err := openLog(path, func(e glasses.Event) {
			if rows++; e.Seq < 1 || rows > 1 && e.Seq != last+1 {
				t.Fatalf("row %d has seq %d, want consecutive ones", rows, e.Seq)
			}
			last = e.Seq
		})
		if err != nil {
			t.Fatal(err)
		}
		defer l.file.Close()
		if got, err := l.read(0, MaxLimit); err != nil || len(got.rows) != int(min(rows, MaxLimit)) {
			t.Fatalf("read %d rows, error %v; want every row, up to MaxLimit", len(got.rows), err)
		}
	})
}

func BenchmarkLog(b *testing.B) {
	l, _ := openTestLog(b, filepath.Join(b.TempDir(), eventsName))
	row := numbered(1)
	b.ReportAllocs()
	for b.Loop() {
		l.append(row, nil)
	}
	_ = l.waitWritten(context.Background(), l.newest())
}

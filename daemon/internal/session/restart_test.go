package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/proto/backendapi"
)

func TestManager_ContinuesAfterRestart(t *testing.T) {
	for _, how := range []string{"stopped", "killed"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			tr := &fakeTransports{}
			f := &fakeBackend{}
			m := New(Options{StateDir: dir, Backend: f, Transports: tr, Endpoints: fakeEndpoints{}})
			stop := serve(t, m)
			o := start(t, m, LocalRequest{Project: "com.example.app", Clock: "virtual"})
			before, err := os.ReadFile(filepath.Join(dir, Dir, o.SessionID, metaName))
			if err != nil {
				t.Fatal(err)
			}
			a, p := admit(t, m, o, nil)
			send(t, a, glasses.TypeDisplayShow, "a-1", hello)
			p.ack(t, "a-1")
			if _, _, err := m.Advance(t.Context(), o.SessionID, 1234); err != nil {
				t.Fatal(err)
			}
			tr.last().mu.Lock()
			tr.last().now = 1234
			tr.last().mu.Unlock()
			tr.last().emit(glasses.TypeBattery, glasses.Battery{Level: 7})
			p.wait(t, "the battery", func(f glasses.Frame) bool { return f.Type == glasses.TypeBattery })
			a.Leave()
			want := types(rowsOf(t, m, o.SessionID))
			stop()
			// session.json is old, and the last row is incomplete.
			if how == "killed" {
				write(t, filepath.Join(dir, Dir, o.SessionID, metaName), string(before))
				torn, err := os.OpenFile(filepath.Join(dir, Dir, o.SessionID, eventsName), os.O_APPEND|os.O_WRONLY, 0)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = torn.WriteString(`{"seq":9,"at":1234,"kind":"requ`)
				_ = torn.Close()
			}
			again := newLocal(t, dir, tr, nil)
			back := start(t, again, LocalRequest{Project: "com.example.app"})
			if back.Created || back.SessionID != o.SessionID || back.AppTokenFile != o.AppTokenFile || back.NowMs != 1234 {
				t.Fatalf("back %+v", back)
			}
			open := tr.opened[len(tr.opened)-1]
			if open.NowMs != 1234 || open.Snapshot == nil || open.Snapshot.State.Battery.Level != 7 ||
				open.Snapshot.View.Tree.Text != "hello" {
				t.Errorf("reopened with %+v, want the saved state", open)
			}
			b, p := admit(t, again, back, nil)
			send(t, b, glasses.TypeDisplayShow, "a-1", hello)
			if seq := p.ack(t, "a-1"); seq != 3 {
				t.Errorf("a frame repeated after the restart is row %d, want 3", seq)
			}
			want += " glasses.detached glasses.attached app.attached"
			if got := types(rowsOf(t, again, back.SessionID)); got != want {
				t.Errorf("rows %s\nwant %s", got, want)
			}
		})
	}
}

// A command that the glasses had not answered when the daemon was killed is handed to the glasses of the next daemon,
// and the app gets their result.
func TestManager_HandsOverTheCommandsOfAKilledDaemon(t *testing.T) {
	for _, clock := range []string{"real", "virtual"} {
		t.Run(clock, func(t *testing.T) {
			dir, tr, f := t.TempDir(), &fakeTransports{}, &fakeBackend{}
			m := New(Options{StateDir: dir, Backend: f, Transports: tr, Endpoints: fakeEndpoints{}})
			stop := serve(t, m)
			o := start(t, m, LocalRequest{Project: "com.example.app", Clock: clock})
			a, p := admit(t, m, o, nil)
			send(t, a, glasses.TypeDisplayShow, "a-1", hello)
			p.ack(t, "a-1")
			a.Leave()
			log := filepath.Join(dir, Dir, o.SessionID, eventsName)
			stop()
			removeRowsAfter(t, log, glasses.TypeDisplayShow)

			again := newLocal(t, dir, tr, nil)
			back := start(t, again, LocalRequest{Project: "com.example.app"})
			b, p := admit(t, again, back, new(int64))
			if err := b.Replay(t.Context(), func(frame []byte) error { p.SendText(frame); return nil }); err != nil {
				t.Fatal(err)
			}
			if res := p.result(t, "a-1"); !res.OK {
				t.Errorf("the result is %+v, want ok", res)
			}
		})
	}
}

// Commands that were left unanswered a day ago fail when the session is next used, however many there are.
func TestManager_FailsManyStaleCommandsOfAKilledDaemon(t *testing.T) {
	dir, tr := t.TempDir(), &fakeTransports{}
	m := New(Options{StateDir: dir, Backend: &fakeBackend{}, Transports: tr, Endpoints: fakeEndpoints{}})
	stop := serve(t, m)
	o := start(t, m, LocalRequest{Project: "com.example.app"})
	stop()
	const stale = maxWaiting + 100
	path := filepath.Join(dir, Dir, o.SessionID, eventsName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows, written := bytes.NewBuffer(data), bytes.Count(data, []byte("\n"))
	for i := range stale {
		fmt.Fprintf(rows, `{"seq":%d,"at":%d,"kind":"request","chip":"display","type":"display.clear","id":"a-%d",`+
			`"sender":"app","payload":{}}`+"\n", written+i+1, time.Now().Add(-24*time.Hour).UnixMilli(), i)
	}
	write(t, path, rows.String())

	again := newLocal(t, dir, tr, nil)
	s := again.local.find(o.SessionID)
	woken := make(chan error, 1)
	go func() { woken <- s.wake() }()
	select {
	case err := <-woken:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("wake did not return")
	}
	page, err := again.Since(t.Context(), backend.Target{}, o.SessionID, int64(written+stale), MaxLimit)
	if err != nil || len(page.Events) == 0 || !strings.Contains(string(page.Events[0]), glasses.CodeTimeout) {
		t.Errorf("after the commands: %s, error %v; want a timeout", page.Events, err)
	}
}

// removeRowsAfter removes the rows that follow the first row of this type from an event log, as if the daemon had been
// killed before it wrote them.
func removeRowsAfter(t *testing.T, log, typ string) {
	t.Helper()
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var kept strings.Builder
	for line := range strings.Lines(string(data)) {
		kept.WriteString(line)
		if strings.Contains(line, `"`+typ+`"`) {
			break
		}
	}
	write(t, log, kept.String())
}

// A daemon that is killed while writing leaves temporary files, which only the manager removes.
func TestManager_RemovesTheFilesOfKilledDaemons(t *testing.T) {
	dir := t.TempDir()
	f := &fakeBackend{}
	m := New(Options{StateDir: dir, Backend: f, Transports: &fakeTransports{},
		Endpoints: fakeEndpoints{}})
	stop := serve(t, m)
	o := start(t, m, LocalRequest{Project: "com.example.app"})
	stop()
	root, old := filepath.Join(dir, Dir), time.Now().Add(-time.Hour)
	left := []string{filepath.Join(root, ".latest.json.tmp-1"), filepath.Join(root, o.SessionID, ".session.json.tmp-2")}
	for _, path := range left {
		write(t, path, "half")
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	again := newLocal(t, dir, &fakeTransports{}, nil)
	if again.LocalCount() != 1 {
		t.Fatal("the session is not open after the restart")
	}
	for _, path := range left {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A daemon that is killed while it creates or removes a session leaves a folder without state, which the next one
// removes.
func TestManager_RemovesHalfSessionsOfKilledDaemons(t *testing.T) {
	dir := t.TempDir()
	created := filepath.Join(dir, Dir, "loc_aaaaaaaaaaaaaaaaaaaa")
	removed := filepath.Join(dir, Dir, "loc_bbbbbbbbbbbbbbbbbbbb")
	for _, path := range []string{created, removed} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(removed, eventsName), "{}\n")
	if n := newLocal(t, dir, &fakeTransports{}, nil).LocalCount(); n != 0 {
		t.Errorf("%d sessions are open, want 0", n)
	}
	for _, path := range []string{created, removed} {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Virtual time does not go back, even if nothing happened in the meantime.
func TestVirtualTime_SurvivesRestart(t *testing.T) {
	dir := t.TempDir()
	tr := &fakeTransports{}
	f := &fakeBackend{}
	m := New(Options{StateDir: dir, Backend: f, Transports: tr, Endpoints: fakeEndpoints{}})
	stop := serve(t, m)
	o := start(t, m, LocalRequest{Project: "com.example.app", Clock: "virtual"})
	// The session does this once a second.
	if err := m.local.find(o.SessionID).state.save(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.Advance(t.Context(), o.SessionID, 1234); err != nil {
		t.Fatal(err)
	}
	stop()
	again := newLocal(t, dir, tr, nil)
	if s, err := again.Get(t.Context(), backend.Target{}, o.SessionID); err != nil || s.NowMs != 1234 || s.LastSeq != 2 {
		t.Errorf("before its first use: at %d ms, row %d, error %v; want 1234 ms and row 2", s.NowMs, s.LastSeq, err)
	}
	if back := start(t, again, LocalRequest{Project: "com.example.app"}); back.SessionID != o.SessionID ||
		back.NowMs != 1234 {
		t.Errorf("after reopening: at %d ms, want no less than before", back.NowMs)
	}
}

// State that could not be saved is saved once the disk accepts it.
func TestSave_RetriesAfterFailure(t *testing.T) {
	dir := t.TempDir()
	m := newLocal(t, dir, &fakeTransports{}, nil)
	o := start(t, m, LocalRequest{Project: "com.example.app", Clock: "virtual"})
	state, path := m.local.find(o.SessionID).state, filepath.Join(dir, Dir, o.SessionID, metaName)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("elsewhere", path); err != nil { // save rejects symbolic links
		t.Skip("this file system has no symbolic links:", err)
	}
	if _, _, err := m.Advance(t.Context(), o.SessionID, 1234); err != nil {
		t.Fatal(err)
	}
	if state.save() == nil {
		t.Fatal("save wrote through a symbolic link")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := state.save(); err != nil {
		t.Fatal(err)
	}
	if kept, err := m.local.readMeta(o.SessionID); err != nil || kept.NowMs != 1234 {
		t.Errorf("kept %+v, %v", kept, err)
	}
}

func write(t *testing.T, path, body string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWait_ReturnsNewRows(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	o := start(t, m, LocalRequest{Project: "com.example.app"})
	got := make(chan backendapi.EventPage, 1)
	go func() {
		page, _ := m.Wait(context.Background(), backend.Target{}, o.SessionID, 1, 10, 30*time.Second)
		got <- page
	}()
	a, _ := admit(t, m, o, nil)
	if page := <-got; len(page.Events) != 1 || page.Next != 2 ||
		!strings.Contains(string(page.Events[0]), "app.attached") {
		t.Errorf("page %+v", page)
	}
	a.Leave()
	begin := time.Now()
	page, err := m.Wait(t.Context(), backend.Target{}, o.SessionID, 3, 10, 20*time.Millisecond)
	if err != nil || len(page.Events) != 0 || page.Next != 3 || time.Since(begin) > 20*time.Second {
		t.Errorf("nothing was written: page %+v, error %v; want an empty page", page, err)
	}
	go func() {
		page, _ := m.Wait(context.Background(), backend.Target{}, o.SessionID, 3, 10, 30*time.Second)
		got <- page
	}()
	if _, err := m.Close(t.Context(), backend.Target{}, o.SessionID); err != nil {
		t.Fatal(err)
	}
	// Closing the session ends the wait.
	<-got
	if _, err := os.Stat(filepath.Dir(o.AppTokenFile)); !os.IsNotExist(err) {
		t.Errorf("the folder still exists: %v", err)
	}
}

// An app that hangs delays only one call.
func TestSettle_WaitsOnceForHangingApp(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	o := start(t, m, LocalRequest{Project: "com.example.app", Clock: "virtual"})
	a, p := admit(t, m, o, nil)
	p.mu.Lock()
	p.app = nil
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	// The call either gave up or returned unsettled just in time.
	if _, settled, err := m.Advance(ctx, o.SessionID, 10); settled {
		t.Errorf("settled, %v", err)
	}
	a.isStuck.Store(true)
	base, settled, err := m.Advance(t.Context(), o.SessionID, 10)
	// The abandoned call may have moved the clock.
	if settled || err != nil || base != 10 && base != 20 {
		t.Errorf("now %d, settled %v, error %v; want it unsettled at 10 or 20", base, settled, err)
	}
	send(t, a, glasses.TypeDisplayShow, "a-1", hello)
	p.mu.Lock()
	p.app = a
	p.mu.Unlock()
	if now, settled, err := m.Advance(t.Context(), o.SessionID, 10); !settled || err != nil || now != base+10 {
		t.Errorf("after the app recovered: now %d after %d, settled %v, error %v; want 10 ms more", now, base, settled, err)
	}
	a.Leave()
}

// An app without barriers counts as settled after a moment without frames.
func TestWaitQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &App{active: make(chan struct{}), gone: make(chan struct{})}
		began := time.Now()
		go func() {
			for range 3 {
				time.Sleep(40 * time.Millisecond)
				a.noteActivity()
			}
		}()
		if !a.waitQuiet(t.Context()) || time.Since(began) != 170*time.Millisecond {
			t.Errorf("settled after %v, want 170 ms", time.Since(began))
		}
	})
}

package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
)

func rowsOf(t *testing.T, m *Manager, id string) []glasses.Event {
	t.Helper()
	page, err := m.Since(t.Context(), backend.Target{}, id, 0, MaxLimit)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]glasses.Event, 0, len(page.Events))
	for _, raw := range page.Events {
		var e glasses.Event
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, e)
	}
	return rows
}

func types(rows []glasses.Event) string {
	var words []string
	for _, e := range rows {
		words = append(words, e.Type)
	}
	return strings.Join(words, " ")
}

func TestStartLocal_FindsOrCreates(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	first := start(t, m, LocalRequest{Project: "com.example.app"})
	if !first.Created || !IsLocal(first.SessionID) || !localPattern.MatchString(first.SessionID) ||
		first.Transport != backend.TransportLocal ||
		first.Clock != backend.ClockReal || first.DeviceModel != glasses.DefaultDeviceModel ||
		!strings.HasSuffix(first.AppEndpoint, first.SessionID+"/app") {
		t.Errorf("opened %+v", first)
	}
	secret, err := os.ReadFile(first.AppTokenFile)
	if err != nil || !strings.HasPrefix(string(secret), "sst_") {
		t.Fatalf("secret %q, %v", secret, err)
	}
	if again := start(t, m, LocalRequest{Project: "com.example.app"}); again.Created ||
		again.SessionID != first.SessionID {
		t.Errorf("again: %+v", again)
	}
	if fresh := start(t, m, LocalRequest{Project: "com.example.app", Fresh: true, Clock: "virtual"}); !fresh.Created ||
		fresh.Clock != "virtual" {
		t.Errorf("fresh: %+v", fresh)
	}
	if got := types(rowsOf(t, m, first.SessionID)); got != "glasses.attached" {
		t.Errorf("rows %s", got)
	}
	closed, err := m.Close(t.Context(), backend.Target{}, first.SessionID)
	if err != nil || closed.State != "closed" {
		t.Errorf("closed %+v, error %v; want the state closed", closed, err)
	}
	if again, err := m.Close(t.Context(), backend.Target{}, first.SessionID); err != nil || again.State != "closed" {
		t.Errorf("closed again: %+v, error %v; want the state closed", again, err)
	}
	if list, _ := m.List(t.Context(), backend.Target{}); len(list) != 1 {
		t.Errorf("list %+v", list)
	}
}

func TestStartLocal_RefusesBadArguments(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	for name, req := range map[string]LocalRequest{
		"clock": {Clock: "lunar"}, "model": {DeviceModel: "monocle"}, "fixtures": {FixturesDir: "/no/such/folder"},
		"project": {Project: "x"},
	} {
		if _, err := m.StartLocal(t.Context(), from(""), req); code(err) != problem.CodeInvalidRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	tr := &fakeTransports{err: &problem.Error{Code: problem.CodeAdapterUnavailable, Message: "no adapter"}}
	m = newLocal(t, t.TempDir(), tr, nil)
	if _, err := m.StartLocal(t.Context(), caller.Caller{}, LocalRequest{}); code(err) != problem.CodeAdapterUnavailable {
		t.Errorf("without an adapter: %v, want adapter_unavailable", err)
	}
	if list, _ := m.List(t.Context(), backend.Target{}); len(list) != 0 {
		t.Errorf("sessions were left behind: %+v", list)
	}
}

func TestStartLocal_LimitsSessions(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	first := start(t, m, LocalRequest{Project: "com.example.app"})
	m.local.mu.Lock()
	for i := range MaxLocal - 1 {
		id := fmt.Sprintf("loc_%020d", i)
		m.local.open[id] = newLocalSession(m.local, meta{SessionID: id, LastActiveAt: time.Unix(int64(i), 0)})
	}
	m.local.mu.Unlock()
	if _, err := m.StartLocal(t.Context(), caller.Caller{},
		LocalRequest{Project: "com.example.other"}); code(err) != problem.CodeTooManySessions {
		t.Errorf("one session above the limit: %v, want too_many_sessions", err)
	}
	if again := start(t, m, LocalRequest{Project: "com.example.app"}); again.SessionID != first.SessionID {
		t.Errorf("at the limit, an existing session: %+v, want it returned", again)
	}
	if list, _ := m.List(t.Context(), backend.Target{}); len(list) != MaxLocal || list[0].SessionID != first.SessionID {
		t.Errorf("%d sessions, the first is %s; want MaxLocal and the last used first", len(list), list[0].SessionID)
	}
}

// Glasses that do not start in time are reported as a failure of their adapter, not as a cancelled call.
func TestStartLocal_ReportsHangingGlasses(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{err: context.DeadlineExceeded}, nil)
	_, err := m.StartLocal(t.Context(), caller.Caller{}, LocalRequest{Project: "com.example.app"})
	var p *problem.Error
	if !errors.As(err, &p) || p.Code != problem.CodeNotConnected || !p.Retryable {
		t.Errorf("got %v", err)
	}
}

// A session whose log fails while its glasses start is reported as restarting, not as a cancelled call.
func TestStartLocal_ReportsBrokenLog(t *testing.T) {
	tr := &fakeTransports{hang: make(chan struct{}, 1)}
	m := newLocal(t, t.TempDir(), tr, nil)
	got := make(chan error, 1)
	go func() {
		_, err := m.StartLocal(t.Context(), caller.Caller{}, LocalRequest{Project: "com.example.app"})
		got <- err
	}()
	<-tr.hang
	m.local.mu.Lock()
	open := slices.Collect(maps.Values(m.local.open))
	m.local.mu.Unlock()
	for _, r := range open {
		r.logBroken(errors.New("no space left on device"))
	}
	var p *problem.Error
	if err := <-got; !errors.As(err, &p) || p.Code != problem.CodeNotConnected || !p.Retryable {
		t.Errorf("got %v", err)
	}
}

// Where a sandbox forbids adapters, local sessions are refused and the sessions of another daemon stay unchanged.
func TestManager_WithoutTransports(t *testing.T) {
	dir := t.TempDir()
	o := start(t, newLocal(t, dir, &fakeTransports{}, nil), LocalRequest{Project: "com.example.app"})
	f := &fakeBackend{}
	m := New(Options{StateDir: dir, Backend: f,
		LocalRefused: &problem.Error{Code: problem.CodeSandboxBlocked, Message: "blocked"}})
	if _, err := m.StartLocal(t.Context(), caller.Caller{}, LocalRequest{}); code(err) != problem.CodeSandboxBlocked {
		t.Errorf("starting: %v", err)
	}
	if _, err := m.Control(t.Context(), backend.Target{}, o.SessionID, glasses.SimState, nil,
		nil); code(err) != problem.CodeSandboxBlocked {
		t.Errorf("using: %v", err)
	}
	if list, err := m.List(t.Context(), backend.Target{}); len(list) != 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}

// Sessions that were not used for a week also end while the daemon runs. Sessions with an app stay open.
func TestExpire_RemovesUnusedSessions(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	var passed atomic.Int64
	m := newLocal(t, dir, &fakeTransports{}, func() time.Time { return now.Add(time.Duration(passed.Load())) })
	idle := start(t, m, LocalRequest{Project: "com.example.idle"})
	used := start(t, m, LocalRequest{Project: "com.example.used"})
	admit(t, m, used, nil)
	passed.Store(int64(localLife))
	m.local.expire()
	if m.local.find(idle.SessionID) == nil {
		t.Error("a session ended less than a week after its last use")
	}
	passed.Store(int64(localLife + time.Hour))
	m.local.expire()
	if m.local.find(idle.SessionID) != nil || m.local.find(used.SessionID) == nil {
		t.Error("want the idle session ended and the other one open")
	}
	if _, err := os.Stat(filepath.Join(dir, Dir, idle.SessionID)); !os.IsNotExist(err) {
		t.Errorf("the idle session's folder still exists: %v", err)
	}
}

// Sessions that were not used for a week are removed, and so are week-old folders whose session cannot be read.
func TestLoad_RemovesExpiredSessions(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	m := newLocal(t, dir, &fakeTransports{}, nil)
	o := start(t, m, LocalRequest{Project: "com.example.app"})
	over, end := context.WithCancel(t.Context())
	end()
	// From here on, the session's folder is not written.
	m.local.serve(over)
	for name, age := range map[string]time.Duration{"loc_aaaaaaaaaaaaaaaaaaaa": 0,
		"loc_bbbbbbbbbbbbbbbbbbbb": 8 * 24 * time.Hour} {
		path := filepath.Join(dir, Dir, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(path, metaName), `{"ofAnotherVersion": true}`)
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		after time.Duration
		want  []bool
	}{{time.Hour, []bool{true, true, false}}, {8 * 24 * time.Hour, []bool{false, false, false}}} {
		after, want := c.after, c.want
		later := newLocal(t, dir, &fakeTransports{}, func() time.Time { return now.Add(after) })
		list, _ := later.List(t.Context(), backend.Target{})
		if (len(list) == 1) != want[0] {
			t.Errorf("after %v: %d sessions", after, len(list))
		}
		for i, name := range []string{o.SessionID, "loc_aaaaaaaaaaaaaaaaaaaa", "loc_bbbbbbbbbbbbbbbbbbbb"} {
			if _, err := os.Stat(filepath.Join(dir, Dir, name)); (err == nil) != want[i] {
				t.Errorf("after %v: stat %s: %v", after, name, err)
			}
		}
	}
}

func TestLatest_FollowsUse(t *testing.T) {
	dir, here := t.TempDir(), t.TempDir()
	m := newLocal(t, dir, &fakeTransports{}, nil)
	who := from(here)
	if id, ok := m.Latest(t.Context(), who); ok {
		t.Errorf("the directory already has the session %s", id)
	}
	first, err := m.StartLocal(t.Context(), who, LocalRequest{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := m.StartLocal(t.Context(), who, LocalRequest{Fresh: true})
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := m.Latest(t.Context(), who); !ok || id != second.SessionID {
		t.Errorf("latest %s", id)
	}
	if _, err := m.Control(caller.With(t.Context(), who), backend.Target{}, first.SessionID, glasses.SimState, nil,
		nil); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"ses_abcdefgh", "loc_aaaaaaaaaaaaaaaaaaaa"} {
		if _, err := m.Control(caller.With(t.Context(), who), backend.Target{}, wrong, glasses.SimState, nil,
			nil); code(err) != problem.CodeNotFound {
			t.Errorf("controlling %s: %v, want an error", wrong, err)
		}
		if id, ok := m.Latest(t.Context(), who); !ok || id != first.SessionID {
			t.Errorf("after a call with the unknown session %s: latest is %s", wrong, id)
		}
	}
	if id, ok := newLocal(t, dir, &fakeTransports{}, nil).Latest(t.Context(), who); !ok || id != first.SessionID {
		t.Errorf("after a restart: latest is %s, want the same session", id)
	}
	if _, err := m.Close(t.Context(), backend.Target{}, first.SessionID); err != nil {
		t.Fatal(err)
	}
	// The previous session counts again, even after a restart.
	for _, m := range []*Manager{m, newLocal(t, dir, &fakeTransports{}, nil)} {
		if id, ok := m.Latest(t.Context(), who); !ok || id != second.SessionID {
			t.Errorf("after the session closed: latest is %s, want the one before", id)
		}
	}
	if _, err := m.Close(t.Context(), backend.Target{}, second.SessionID); err != nil {
		t.Fatal(err)
	}
	if id, ok := m.Latest(t.Context(), who); ok {
		t.Errorf("after both sessions closed: latest is %s, want none", id)
	}
}

// A fresh session replaces the directory's previous session of the same kind and project, no matter which other
// sessions were used in between. A session that ends with the program that holds it is not replaced.
func TestClosePrevious_ClosesTheSessionThatIsReplaced(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	who := from(t.TempDir())
	open := func(project string) Opened {
		t.Helper()
		o, err := m.StartLocal(t.Context(), who, LocalRequest{Project: project, Fresh: true})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	replace := func(by Opened) Replaced { return m.ClosePrevious(t.Context(), backend.Target{}, who, by) }
	alone := open("com.example.app")
	if got := replace(alone); got.Closed != "" || !strings.Contains(got.WhyNot, "no other session that is open") {
		t.Errorf("without another session: %+v", got)
	}
	other := open("com.example.other")
	if got := replace(other); got.Closed != "" || !strings.Contains(got.WhyNot, alone.SessionID+" belongs to com.example.app") {
		t.Errorf("with a session of another project: %+v", got)
	}
	run := open("com.example.app") // as `servicectl session run` does
	m.Hold(run.SessionID)
	browser, err := m.Open(t.Context(), backend.Target{}, who, Request{Project: "com.example.app"})
	if err != nil {
		t.Fatal(err)
	}
	fresh := open("com.example.app")
	if got := replace(fresh); got.Closed != alone.SessionID || got.WhyNot != "" {
		t.Errorf("got %+v, want %s closed", got, alone.SessionID)
	}
	got := replace(fresh)
	if got.Closed != "" || !strings.Contains(got.WhyNot, run.SessionID+" ends with") ||
		!strings.Contains(got.WhyNot, browser.SessionID+" is of another kind") {
		t.Errorf("got %+v, want the reasons why none was closed", got)
	}
	if _, err := m.Close(t.Context(), backend.Target{}, run.SessionID); err != nil {
		t.Fatal(err)
	}
	if id, ok := m.Latest(t.Context(), who); !ok || id != fresh.SessionID {
		t.Errorf("after the run: latest is %s, want %s", id, fresh.SessionID)
	}
}

// The effects that a tool has reported must survive if the daemon is killed right afterwards, so they must be in the
// file.
func TestControl_ReturnsAfterWrite(t *testing.T) {
	for _, clock := range []string{backend.ClockReal, backend.ClockVirtual} {
		dir := t.TempDir()
		m := newLocal(t, dir, &fakeTransports{}, nil)
		s := start(t, m, LocalRequest{Project: "com.example.app", Clock: clock})
		for n := range 20 {
			tap(t, m, s.SessionID)
			written, err := os.ReadFile(filepath.Join(dir, Dir, s.SessionID, eventsName))
			if got := strings.Count(string(written), `"type":"input"`); err != nil || got != n+1 {
				t.Fatalf("%s: %d inputs were made, but %d are in the file (error %v)", clock, n+1, got, err)
			}
		}
	}
}

// blockedEndpoints is an app server that may not listen.
type blockedEndpoints struct{ fakeEndpoints }

func (blockedEndpoints) AppEndpoint(context.Context, string) (string, error) {
	return "", &net.OpError{Op: "listen", Net: "tcp4", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)},
		Err: os.NewSyscallError("socket", syscall.EPERM)}
}

func TestStartLocal_NamesTheSandboxThatForbidsLoopback(t *testing.T) {
	m := newLocal(t, t.TempDir(), &fakeTransports{}, nil)
	m.opts.Endpoints = blockedEndpoints{}
	_, err := m.StartLocal(t.Context(), from(""), LocalRequest{})
	var p *problem.Error
	if !errors.As(err, &p) || p.Code != problem.CodeLoopbackUnreachable || p.Retryable || !strings.Contains(p.Message,
		"127.0.0.1") ||
		!strings.Contains(p.Message, "not permitted") || !strings.Contains(p.FixHint, "sandbox") {
		t.Errorf("got %+v, want the address, the cause and the sandbox", err)
	}
}

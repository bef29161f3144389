package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
)

// append writes n rows with payloads of the given size to a session, at the fixture's current time.
func (f *sessionFixture) append(t *testing.T, id, prefix string, n, size int, q sessions.Quota) {
	t.Helper()
	var rows []sessions.Row
	for i := range n {
		r := row(id, fmt.Sprintf("%s-%d", prefix, i), "event", "x", false)
		r.Event.At = f.clock.now().UnixMilli()
		r.Event.Payload = []byte(`"` + strings.Repeat("x", size-2) + `"`)
		rows = append(rows, r)
	}
	fatal(t, f.store.AppendEvents(t.Context(), rows, q))
}

// stored counts a session's rows in the table, including rows that readers cannot see.
func (f *sessionFixture) stored(t *testing.T, id string) int {
	t.Helper()
	n := 0
	fatal(t, f.store.ExportAccount(t.Context(), "ada", func(section string, fields map[string]any) error {
		if section == "sessionEvents" && fields["session_id"] == id {
			n++
		}
		return nil
	}))
	return n
}

// accountBytes returns the stored size of the account's logs, and the actual size of its rows.
func (f *sessionFixture) accountBytes(t *testing.T) (counted, real int64) {
	t.Helper()
	fatal(t, f.store.ExportAccount(t.Context(), "ada", func(section string, fields map[string]any) error {
		switch section {
		case "sessionLogs":
			counted = fields["bytes"].(int64)
		case "sessionEvents":
			body := fmt.Sprint(fields["body"])
			if raw, ok := fields["body"].(interface{ MarshalJSON() ([]byte, error) }); ok {
				data, _ := raw.MarshalJSON()
				body = string(data)
			}
			r := sessions.Row{Event: glasses.Event{ID: fields["frame_id"].(string), Type: fields["type"].(string),
				Payload: []byte(body)}}
			real += r.Bytes()
		}
		return nil
	}))
	return counted, real
}

func (f *sessionFixture) counts(t *testing.T, when string) {
	t.Helper()
	if counted, real := f.accountBytes(t); counted != real {
		t.Errorf("%s: the counter has %d bytes, the rows have %d, want the same", when, counted, real)
	}
}

// page reads a page from a cursor and checks it.
func (f *sessionFixture) page(t *testing.T, id string, since, first, next int64, truncated bool) {
	t.Helper()
	p := must(f.Events(t.Context(), "ada", id, since, sessions.MaxEvents, 0))(t)
	got := next + 1 // the value if there are no rows
	if len(p.Events) > 0 {
		got = p.Events[0].Seq
	}
	if got != first || p.Next != next || p.Truncated != truncated {
		t.Errorf("after %d: got rows from %d, next %d, truncated %v; want %d, %d, %v", since, got, p.Next, p.Truncated, first,
			next, truncated)
	}
}

func sessionQuota(t *testing.T, f *sessionFixture) {
	s, _ := f.mint(t, f.ada, sessions.Request{})
	q := sessions.Quota{SessionRows: 200, SessionBytes: 1 << 20, AccountBytes: 1 << 30}
	shown := []sessions.Row{row(s.ID, "d", "request", "display.show", false), row(s.ID, "d", "result", "result", true)}
	shown[1].State = &sessions.State{Glasses: glasses.State{Battery: glasses.Battery{Level: 7}}}
	fatal(t, f.store.AppendEvents(t.Context(), shown, q))
	f.append(t, s.ID, "a", 198, 100, q)
	f.page(t, s.ID, 0, 1, 200, false)
	f.append(t, s.ID, "b", 50, 100, q)
	got, err := f.store.Session(t.Context(), s.ID)
	if err != nil || got.LastSeq != 250 || got.FirstSeq != 53 {
		t.Fatalf("got rows %d to %d, want 53 to 250: %v", got.FirstSeq, got.LastSeq, err) // 50 rows over the quota and 1%
	}
	if n := f.stored(t, s.ID); n != 198 {
		t.Errorf("%d rows are stored, want 198", n)
	}
	f.page(t, s.ID, 0, 53, 250, true)
	f.page(t, s.ID, 51, 53, 250, true)
	f.page(t, s.ID, 52, 53, 250, false)
	f.page(t, s.ID, 250, 251, 250, false)
	f.counts(t, "over the rows")
	if m, err := f.store.Memory(t.Context(), s.ID); err != nil || m.Display.ID != "d" || m.State == nil ||
		m.State.Glasses.Battery.Level != 7 {
		t.Errorf("after the rows were deleted: got %+v (error %v), want the last display and the state", m, err)
	}
	f.append(t, s.ID, "c", 20, 60_000, q) // 1.2 MB
	f.counts(t, "over the bytes")
	if _, real := f.accountBytes(t); real > q.SessionBytes || real < q.SessionBytes*9/10 {
		t.Errorf("%d bytes are stored with a quota of %d, want 90 to 100 %%", real, q.SessionBytes)
	}
	if got, err := f.store.Session(t.Context(), s.ID); err != nil || got.LastSeq != 270 {
		t.Errorf("the newest row is %d, want 270: %v", got.LastSeq, err)
	}
}

func accountQuota(t *testing.T, f *sessionFixture) {
	q := sessions.Quota{SessionRows: 1000, SessionBytes: 1 << 20, AccountBytes: 1 << 20}
	var ids []string
	for i := range 3 {
		s, _ := f.mint(t, f.ada, sessions.Request{Fresh: true})
		ids = append(ids, s.ID)
		f.append(t, s.ID, "a", 10, 30_000, q)
		f.clock.pass(time.Second)
		if got, err := f.store.Session(t.Context(), s.ID); err != nil || got.FirstSeq != 1 {
			t.Fatalf("session %d starts at row %d, want 1: %v", i, got.FirstSeq, err)
		}
	}
	f.append(t, ids[2], "b", 10, 30_000, q) // 1.2 MB
	f.counts(t, "over the account's bytes")
	if _, real := f.accountBytes(t); real > q.AccountBytes || real < q.AccountBytes*9/10 {
		t.Errorf("%d bytes are stored with a quota of %d, want 90 to 100 %%", real, q.AccountBytes)
	}
	for i, kept := range []int{4, 10, 20} { // the oldest rows were in the first session
		if n := f.stored(t, ids[i]); n != kept {
			t.Errorf("session %d has %d rows, want %d", i, n, kept)
		}
	}
	f.page(t, ids[0], 0, 7, 10, true)
	f.page(t, ids[1], 0, 1, 10, false)
	if err := f.store.SweepLogs(t.Context(), f.clock.now().Add(-time.Hour), f.clock.now().Add(-time.Hour),
		sessions.Quota{AccountBytes: 400_000}); err != nil {
		t.Fatal(err)
	}
	f.counts(t, "swept to a smaller quota")
	if n := f.stored(t, ids[0]) + f.stored(t, ids[1]); n != 0 {
		t.Errorf("%d rows of the older sessions remain, want none", n)
	}
}

func deletedLog(t *testing.T, f *sessionFixture) {
	s, _ := f.mint(t, f.ada, sessions.Request{})
	other, _ := f.mint(t, f.ada, sessions.Request{Fresh: true})
	for i := range 12 { // more than one purge deletes
		f.append(t, s.ID, fmt.Sprint(i), 500, 40, sessions.DefaultQuota)
	}
	f.append(t, other.ID, "a", 3, 40, sessions.DefaultQuota)
	must(f.Close(t.Context(), "ada", s.ID))(t)
	if n := f.stored(t, s.ID); n != 0 {
		t.Errorf("%d rows remain after the session was closed, want none", n)
	}
	f.page(t, s.ID, 0, 6001, 6000, true)
	f.page(t, s.ID, 6000, 6001, 6000, false)
	f.counts(t, "after the deletion")
	late := []sessions.Row{row(s.ID, "late", "event", "x", false)}
	if err := f.store.AppendEvents(t.Context(), late, sessions.DefaultQuota); err != nil || late[0].Event.Seq != 6001 {
		t.Errorf("a row in flight got the number %d, want 6001: %v", late[0].Event.Seq, err)
	}
	if n := f.stored(t, s.ID); n != 0 {
		t.Errorf("a row in flight was stored")
	}
	if n := f.stored(t, other.ID); n != 3 {
		t.Errorf("the other session has %d rows, want 3", n)
	}
}

func idleLog(t *testing.T, f *sessionFixture) {
	s, _ := f.mint(t, f.ada, sessions.Request{})
	f.append(t, s.ID, "a", 5, 40, sessions.DefaultQuota)
	f.clock.pass(sessions.IdleKept)
	used, _ := f.mint(t, f.ada, sessions.Request{})
	f.append(t, used.ID, "a", 5, 40, sessions.DefaultQuota)
	fatal(t, f.Sweep(t.Context()))
	if n := f.stored(t, s.ID); n != 5 {
		t.Errorf("%d rows remain on the last day, want 5", n)
	}
	f.clock.pass(time.Second)
	fatal(t, f.Sweep(t.Context()))
	if n, m := f.stored(t, s.ID), f.stored(t, used.ID); n != 0 || m != 5 {
		t.Errorf("%d rows of the idle session remain, want none; %d of the other, want 5", n, m)
	}
	got, err := f.Get(t.Context(), "ada", s.ID)
	if err != nil || got.LastSeq != 5 || !got.ClosedAt.IsZero() {
		t.Errorf("the idle session: got %+v (error %v), want it not closed and its numbers kept", got, err)
	}
	f.page(t, s.ID, 2, 6, 5, true)
	f.counts(t, "after the sweep")
}

func deletedProjectLog(t *testing.T, f *sessionFixture) {
	gone, _ := f.mint(t, f.ada, sessions.Request{Project: "com.example.gone"})
	kept, _ := f.mint(t, f.ada, sessions.Request{Project: "com.example.kept"})
	f.append(t, gone.ID, "a", 5, 40, sessions.DefaultQuota)
	f.append(t, kept.ID, "a", 5, 40, sessions.DefaultQuota)
	e := audit.New(f.clock.now(), "ada", audit.Person(), "project.deleted", "com.example.gone", "")
	must(f.store.DeleteProject(t.Context(), "ada", "com.example.gone", e))(t)
	if _, real := f.accountBytes(t); real == 0 {
		t.Error("no row remains")
	}
	f.counts(t, "after the project's deletion")
}

func pacedMints(t *testing.T, f *sessionFixture) {
	f.PerMinute = 5
	for range 5 {
		f.mint(t, f.ada, sessions.Request{Fresh: true})
		f.clock.pass(time.Second)
	}
	_, _, err := f.Mint(t.Context(), f.ada, sessions.Request{Project: "com.example.app", Fresh: true})
	var paced *sessions.PacedError
	if !errors.As(err, &paced) || paced.Wait != 55*time.Second {
		t.Fatalf("the sixth session within a minute: got %v, want a wait of 55 s", err)
	}
	if _, created := f.mint(t, f.ada, sessions.Request{}); created {
		t.Error("the current session was not resumed")
	}
	f.mint(t, sessions.Owner{AccountID: "bob", LinkID: "link-3"}, sessions.Request{Fresh: true})
	f.clock.pass(paced.Wait)
	f.mint(t, f.ada, sessions.Request{Fresh: true})
	if _, _, err := f.Mint(t.Context(), f.ada, sessions.Request{Project: "com.example.app", Fresh: true}); !errors.As(err,
		&paced) {
		t.Errorf("another one immediately afterwards: got %v, want a PacedError", err)
	}
}

func boundedSecrets(t *testing.T, f *sessionFixture) {
	s, _ := f.mint(t, f.ada, sessions.Request{})
	for i := range sessions.MaxSecrets + 3 {
		fatal(t, f.store.AddSessionSecret(t.Context(), s.ID, fmt.Sprint("hash-", i), f.clock.now()))
		f.clock.pass(time.Millisecond)
	}
	for i, is := range map[int]bool{0: false, 2: false, 3: true, sessions.MaxSecrets + 2: true} {
		if got, err := f.store.HasSessionSecret(t.Context(), s.ID, fmt.Sprint("hash-", i)); err != nil || got != is {
			t.Errorf("secret %d: got %v (error %v), want only the newest MaxSecrets to be valid", i, got, err)
		}
	}
}

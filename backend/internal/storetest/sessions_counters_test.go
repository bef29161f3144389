package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/sessions"
)

// countersHold tests that the account's log size stays correct and its logs have no gaps, despite concurrent writers
// over every quota, sweeps, a deleted session and a deleted project.
func countersHold(t *testing.T, f *sessionFixture) {
	q := sessions.Quota{SessionRows: 60, SessionBytes: 20_000, AccountBytes: 60_000}
	const projects, rounds = 3, 25
	var ids []string
	for i := range 2 * projects {
		s, _ := f.mint(t, f.ada, sessions.Request{Fresh: true, Project: fmt.Sprintf("com.example.p%d", i%projects)})
		ids = append(ids, s.ID)
	}
	idle := f.clock.now().Add(-sessions.IdleKept)
	var all sync.WaitGroup
	for writer := range 6 {
		all.Go(func() {
			for n := range rounds {
				// Two writers each send the same IDs, so one of the rows is a duplicate.
				rows := f.someRows(ids, fmt.Sprintf("%d-%d", writer%3, n))
				if err := f.store.AppendEvents(t.Context(), rows, q); err != nil && !errors.Is(err, sessions.ErrNotFound) {
					t.Errorf("append: got error %v, want none or ErrNotFound", err)
				}
			}
		})
	}
	all.Go(func() {
		for range rounds {
			want(t, "sweep", f.store.SweepLogs(t.Context(), idle, idle, q), nil)
		}
	})
	all.Go(func() {
		_, _, err := f.store.CloseSession(t.Context(), ids[0], f.clock.now())
		want(t, "close", err, nil)
		e := audit.New(f.clock.now(), "ada", audit.Person(), "project.deleted", "com.example.p1", "")
		want(t, "delete a project", errOf(f.store.DeleteProject(t.Context(), "ada", "com.example.p1", e)), nil)
	})
	all.Wait()
	want(t, "the last sweep", f.store.SweepLogs(t.Context(), idle, idle, q), nil)
	f.counts(t, "after all")
	for _, id := range ids {
		s, err := f.store.Session(t.Context(), id)
		if errors.Is(err, sessions.ErrNotFound) {
			continue
		}
		rows, listed := f.store.SessionEvents(t.Context(), id, 0, 10*int(q.SessionRows))
		if err != nil || listed != nil || int64(len(rows)) != s.LastSeq-s.FirstSeq+1 || int64(len(rows)) > q.SessionRows {
			t.Errorf("got %d rows, numbered %d to %d (errors %v, %v), want no gap and at most the quota", len(rows), s.FirstSeq,
				s.LastSeq, err, listed)
		}
	}
}

// someRows returns rows that alternate between two sessions, with payloads of various sizes.
func (f *sessionFixture) someRows(ids []string, prefix string) []sessions.Row {
	two := []string{ids[rand.IntN(len(ids))], ids[rand.IntN(len(ids))]}
	var rows []sessions.Row
	for i := range 1 + rand.IntN(20) {
		r := row(two[i%2], fmt.Sprintf("%s-%d", prefix, i), "event", "x", false)
		r.Event.At = f.clock.now().UnixMilli()
		r.Event.Payload = []byte(`"` + strings.Repeat("x", rand.IntN(600)) + `"`)
		rows = append(rows, r)
	}
	return rows
}

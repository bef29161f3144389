package api

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/proto/backendapi"
)

// An account may have any number of sessions. Only the rate of creating them is limited.
func TestSessions_AreRateLimited(t *testing.T) {
	w := newWorld(t)
	bearer := []string{"Authorization", "Bearer " + w.link()}
	const fresh = `{"project":"com.example.app","fresh":true}`
	for range sessions.DefaultPerMinute {
		w.call("POST", backendapi.PathSessions, fresh, bearer...).is(http.StatusCreated)
	}
	got := w.call("POST", backendapi.PathSessions, fresh, bearer...)
	p := got.problem(http.StatusTooManyRequests, backendapi.CodeRateLimited)
	wait, err := strconv.Atoi(got.header.Get("Retry-After"))
	if err != nil || wait < 1 || wait > 60 || !p.Retryable {
		t.Fatalf("got Retry-After %q, problem %+v, want 1 to 60 s and retryable", got.header.Get("Retry-After"), p)
	}
	w.call("POST", backendapi.PathSessions, `{"project":"com.example.app"}`, bearer...).is(http.StatusOK)
	w.pass(time.Duration(wait) * time.Second)
	w.call("POST", backendapi.PathSessions, fresh, bearer...).is(http.StatusCreated)
}

// A read with a cursor before the oldest row reports truncated once. The cursor it returns is after the gap.
func TestTruncatedCursor(t *testing.T) {
	w := newWorld(t)
	bearer := []string{"Authorization", "Bearer " + w.link()}
	var s backendapi.CreatedSession
	w.call("POST", backendapi.PathSessions, `{"project":"com.example.app"}`, bearer...).is(http.StatusCreated).into(&s)
	var rows []sessions.Row
	for i := range 30 {
		rows = append(rows, sessions.Row{SessionID: s.SessionID,
			Event: glasses.Event{Kind: glasses.KindEvent, Chip: glasses.ChipCustom,
				Type: "com.example.x", ID: fmt.Sprint("a", i), Sender: glasses.SenderApp, At: 1, Payload: []byte(`{}`)}})
	}
	q := sessions.DefaultQuota
	q.SessionRows = 10
	if err := w.store.AppendEvents(t.Context(), rows, q); err != nil {
		t.Fatal(err)
	}
	read := func(since int64) (page backendapi.EventPage) {
		w.call("GET", fmt.Sprintf("%s/%s/events?since=%d", backendapi.PathSessions, s.SessionID, since), "",
			bearer...).is(http.StatusOK).into(&page)
		return page
	}
	page := read(3)
	if !page.Truncated || len(page.Events) != 10 || page.Next != 30 {
		t.Errorf("read before the gap: got %d rows, next %d, truncated %v; want 10, 30, true", len(page.Events), page.Next,
			page.Truncated)
	}
	if page := read(20); page.Truncated || len(page.Events) != 10 {
		t.Errorf("read from the row before the oldest: got %+v, want 10 rows, not truncated", page)
	}
	w.call("DELETE", backendapi.PathSessions+"/"+s.SessionID, "", bearer...).is(http.StatusOK)
	if page := read(3); !page.Truncated || len(page.Events) != 0 || page.Next != 30 {
		t.Errorf("read after the deletion: got %+v, want no rows, next 30, truncated", page)
	}
	if page := read(30); page.Truncated {
		t.Errorf("read from after the gap: got %+v, want not truncated", page)
	}
}

// A link may create only a limited number of session secrets per minute.
func TestSessionSecrets_AreRateLimited(t *testing.T) {
	w := newWorld(t)
	bearer := []string{"Authorization", "Bearer " + w.link()}
	var s backendapi.CreatedSession
	w.call("POST", backendapi.PathSessions, `{"project":"com.example.app"}`, bearer...).is(http.StatusCreated).into(&s)
	path := backendapi.PathSessions + "/" + s.SessionID + "/secrets"
	for range secretsPerMinute {
		w.call("POST", path, "", bearer...).is(http.StatusCreated)
	}
	got := w.call("POST", path, "", bearer...)
	got.problem(http.StatusTooManyRequests, backendapi.CodeRateLimited)
	wait, err := strconv.Atoi(got.header.Get("Retry-After"))
	if err != nil || wait < 1 {
		t.Fatalf("got Retry-After %q, want at least 1 s", got.header.Get("Retry-After"))
	}
	w.pass(time.Duration(wait) * time.Second)
	w.call("POST", path, "", bearer...).is(http.StatusCreated)
}

// slowSessions delays every creation of a session of one account.
type slowSessions struct {
	Sessions
	account string
	started chan struct{}
	end     chan struct{}
}

func (s slowSessions) Mint(
	ctx context.Context, o sessions.Owner, r sessions.Request,
) (sessions.Session, bool, error) {
	if o.AccountID == s.account {
		s.started <- struct{}{}
		<-s.end
	}
	return s.Sessions.Mint(ctx, o, r)
}

// Only a few changes of one account run at the same time, so that it cannot hold all connections to the database. Reads
// and changes of other accounts do not wait for them.
func TestChanges_OfOneAccountHaveAShare(t *testing.T) {
	slow := slowSessions{started: make(chan struct{}, 100), end: make(chan struct{})}
	w := newWorld(t)
	slow.Sessions, slow.account = w.api.Sessions, w.ada.ID
	w.api.Sessions = slow
	bearer := []string{"Authorization", "Bearer " + w.link()}
	other := []string{"Authorization", "Bearer " + w.linkOf(w.person("7d1b0c58-6e5b-4c0e-8e11-0c6d9a1fb002", "bob"))}
	const body = `{"project":"com.example.app"}`
	var changes sync.WaitGroup
	for range changeBounds.RunningEach + changeBounds.WaitingEach {
		changes.Go(func() {
			if got := w.call("POST", backendapi.PathSessions, body, bearer...); got.status/100 != 2 {
				t.Errorf("a change that waited: got status %d, want success", got.status)
			}
		})
	}
	for range changeBounds.RunningEach {
		<-slow.started
	}
	for _, waiting := w.api.running.Used(); waiting < changeBounds.WaitingEach; _, waiting = w.api.running.Used() {
		runtime.Gosched()
	}
	w.call("POST", backendapi.PathSessions, body, bearer...).problem(http.StatusTooManyRequests, backendapi.CodeRateLimited)
	w.call("GET", backendapi.PathSessions, "", bearer...).is(http.StatusOK)
	w.call("POST", backendapi.PathSessions, body, other...).is(http.StatusCreated)
	if n := len(slow.started); n > 0 {
		t.Errorf("%d changes of one account ran at the same time, want %d", n+changeBounds.RunningEach, changeBounds.RunningEach)
	}
	close(slow.end)
	changes.Wait()
}

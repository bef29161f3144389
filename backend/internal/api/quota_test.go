package api

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/internal/problem"
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
	p := got.problem(http.StatusTooManyRequests, problem.CodeRateLimited)
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
	if err := sessions.NewStore(w.db).AppendEvents(t.Context(), rows, q); err != nil {
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
	got.problem(http.StatusTooManyRequests, problem.CodeRateLimited)
	wait, err := strconv.Atoi(got.header.Get("Retry-After"))
	if err != nil || wait < 1 {
		t.Fatalf("got Retry-After %q, want at least 1 s", got.header.Get("Retry-After"))
	}
	w.pass(time.Duration(wait) * time.Second)
	w.call("POST", path, "", bearer...).is(http.StatusCreated)
}

// slowBody is a request body that arrives only after end is closed.
type slowBody struct {
	io.Reader
	started chan<- struct{}
	end     <-chan struct{}
}

func (b *slowBody) Read(p []byte) (int, error) {
	b.started <- struct{}{}
	<-b.end
	return b.Reader.Read(p)
}

// Only a few changes of one account run at the same time, so that it cannot hold all connections to the database. Reads
// and changes of other accounts do not wait for them.
func TestChanges_OfOneAccountHaveAShare(t *testing.T) {
	w := newWorld(t)
	started, end := make(chan struct{}, 1000), make(chan struct{})
	bearer := []string{"Authorization", "Bearer " + w.link()}
	other := []string{"Authorization", "Bearer " + w.linkOf(w.person("7d1b0c58-6e5b-4c0e-8e11-0c6d9a1fb002", "bob"))}
	const body = `{"project":"com.example.app"}`
	var changes sync.WaitGroup
	for range changeBounds.RunningEach + changeBounds.WaitingEach {
		changes.Go(func() {
			r := httptest.NewRequest("POST", backendapi.PathSessions, &slowBody{strings.NewReader(body), started, end})
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set(bearer[0], bearer[1])
			rec := httptest.NewRecorder()
			if w.mux.ServeHTTP(rec, r); rec.Code/100 != 2 {
				t.Errorf("a change that waited: got status %d, want success", rec.Code)
			}
		})
	}
	for range changeBounds.RunningEach {
		<-started
	}
	for _, waiting := w.api.running.Used(); waiting < changeBounds.WaitingEach; _, waiting = w.api.running.Used() {
		runtime.Gosched()
	}
	w.call("POST", backendapi.PathSessions, body, bearer...).problem(http.StatusTooManyRequests, problem.CodeRateLimited)
	w.call("GET", backendapi.PathSessions, "", bearer...).is(http.StatusOK)
	w.call("POST", backendapi.PathSessions, body, other...).is(http.StatusCreated)
	if n := len(started); n > 0 {
		t.Errorf("%d changes of one account ran at the same time, want %d", n+changeBounds.RunningEach, changeBounds.RunningEach)
	}
	close(end)
	changes.Wait()
}

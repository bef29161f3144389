package api

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/proto/backendapi"
	"github.com/service-dev/service/proto/glasses"
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

package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
	"github.com/service-dev/service/proto/backendapi"
)

// Large rows are split into pages that clients accept: a client would refuse a page over 1 MB on every retry.
func TestEvents_LargeRowsArePaged(t *testing.T) {
	w := newWorld(t)
	bearer := "Bearer " + w.link()
	var s backendapi.CreatedSession
	w.call("POST", backendapi.PathSessions, `{"project":"com.example.app"}`, "Authorization",
		bearer).is(http.StatusCreated).into(&s)
	const n = 40
	rows := make([]sessions.Row, n)
	for i := range rows {
		payload := json.RawMessage(`{"text":"` + strings.Repeat("<", 60_000) + `"}`) // encoders may write \u003c
		rows[i] = sessions.Row{SessionID: s.SessionID, Event: glasses.Event{Kind: glasses.KindEvent, Chip: glasses.ChipCustom,
			Type: "com.example.big", ID: fmt.Sprint("a", i), Sender: glasses.SenderApp, At: 1, Payload: payload}}
	}
	if err := sessions.NewStore(w.db).AppendEvents(t.Context(), rows, sessions.DefaultQuota); err != nil {
		t.Fatal(err)
	}
	got, since := 0, int64(0)
	for more := true; more; {
		var page backendapi.EventPage
		answer := w.call("GET", fmt.Sprintf("%s/%s/events?since=%d&limit=500", backendapi.PathSessions, s.SessionID, since),
			"", "Authorization", bearer).is(http.StatusOK)
		answer.into(&page)
		if size := len(answer.body); size > 1<<20 || len(page.Events) == 0 {
			t.Fatalf("got a page of %d rows and %d bytes, want 1 or more rows and at most 1 MB", len(page.Events), size)
		}
		got, since, more = got+len(page.Events), page.Next, page.More
	}
	if got != n || since != n {
		t.Errorf("got %d rows, the last with cursor %d, want %d", got, since, n)
	}
}

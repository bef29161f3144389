package app

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/backendapi"
)

// A waiting poll returns as soon as the first new row exists.
func TestEvents_Wait(t *testing.T) {
	b := startBackend(t)
	var s backendapi.Session
	b.call("POST", backendapi.PathSessions, `{"project":"com.example.hello"}`, &s)
	events := backendapi.PathSessions + "/" + s.SessionID + "/events"
	poll := func(query string) <-chan backendapi.EventPage {
		done := make(chan backendapi.EventPage, 1)
		go func() {
			var page backendapi.EventPage
			b.call("GET", events+query, "", &page)
			done <- page
		}()
		return done
	}
	within := func(done <-chan backendapi.EventPage) backendapi.EventPage {
		t.Helper()
		select {
		case page := <-done:
			return page
		case <-time.After(15 * time.Second): // the poll itself may wait for 25 s
			t.Fatal("poll did not return within 15 s")
		}
		return backendapi.EventPage{}
	}
	start := time.Now()
	if page := within(poll("?waitMs=50")); len(page.Events) != 0 || time.Since(start) < 50*time.Millisecond {
		t.Errorf("poll returned after %v with %+v, want no rows after 50 ms", time.Since(start), page)
	}
	waiting := poll("?waitMs=25000")
	attachApp(t, b, s)
	if page := within(waiting); len(page.Events) != 1 || page.Next != 1 {
		t.Errorf("got %+v, want the row that the app caused", page)
	}
	// Existing rows are returned without waiting.
	if page := within(poll("?waitMs=25000")); len(page.Events) != 1 {
		t.Errorf("poll with an existing row: got %+v, want the row immediately", page)
	}
}

// When a client logs out, it revokes its link, and the open streams of the link end.
func TestRevokeOwnLink_EndsItsStreams(t *testing.T) {
	b := startBackend(t)
	var s backendapi.Session
	b.call("POST", backendapi.PathSessions, `{"project":"com.example.hello"}`, &s)
	closed := attachApp(t, b, s)
	if status := b.call("DELETE", backendapi.PathAccountLink, "", nil); status != http.StatusNoContent {
		t.Fatalf("revoke the link: got status %d, want 204", status)
	}
	select {
	case <-closed:
	case <-time.After(15 * time.Second): // the next periodic check would end it after 30 s
		t.Fatal("the app's stream is still open after 15 s")
	}
	var p backendapi.AuthRequired
	if status := b.call("GET", backendapi.PathSessions, "", &p); status != http.StatusUnauthorized ||
		p.Code != problem.CodeAuthRequired {
		t.Errorf("next call: got %d %+v, want 401 auth_required", status, p)
	}
}

// attachApp attaches an app that does nothing. The returned channel is closed when the app's stream ends.
func attachApp(t *testing.T, b *backendUnderTest, s backendapi.Session) <-chan struct{} {
	t.Helper()
	var minted backendapi.SessionSecret
	b.call("POST", backendapi.PathSessions+"/"+s.SessionID+"/secrets", "", &minted)
	ws, _, err := websocket.Dial(t.Context(), s.AppEndpoint, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.CloseNow() })
	hello := `{"v":1,"type":"hello","id":"h1","at":1,"payload":{"secret":"` + minted.AppSecret +
		`","app":{"name":"Quiet"}}}`
	if err := ws.Write(t.Context(), websocket.MessageText, []byte(hello)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ws.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for err == nil {
			_, _, err = ws.Read(context.Background())
		}
	}()
	return closed
}

func TestControlRefusals(t *testing.T) {
	b := startBackend(t)
	var s backendapi.Session
	b.call("POST", backendapi.PathSessions, `{"project":"com.example.hello"}`, &s)
	control := backendapi.PathSessions + "/" + s.SessionID + "/control"
	var bad backendapi.Controlled
	if status := b.call("POST", control, `{"type":"sim.input","payload":{"kind":"wink"}}`,
		&bad); status != http.StatusOK || len(bad.Result) == 0 {
		t.Errorf("unknown kind of input: got %d %s, want 200 with the error in the result", status, bad.Result)
	}
	for _, c := range []struct {
		path, body string
		status     int
		code       string
	}{
		{control, `{"type":"sim.state"}`, http.StatusConflict, problem.CodeNotConnected},
		{control, `{"type":"sim.state","colour":1}`, http.StatusBadRequest, problem.CodeInvalidRequest},
		{control, `{"type":"sim.camera","payload":{},"media":"!"}`, http.StatusBadRequest, problem.CodeInvalidRequest},
		{backendapi.PathSessions + "/ses_missing/control", `{"type":"sim.state"}`, http.StatusNotFound,
			problem.CodeNotFound},
	} {
		var p backendapi.Problem
		if status := b.call("POST", c.path, c.body, &p); status != c.status || p.Code != c.code || p.FixHint == "" {
			t.Errorf("%s: got %d %+v, want the problem in the table with a hint", c.body, status, p)
		}
	}
	var closed backendapi.Session
	b.call("DELETE", backendapi.PathSessions+"/"+s.SessionID, "", &closed)
	var p backendapi.Problem
	if status := b.call("POST", control, `{"type":"sim.state"}`, &p); status != http.StatusConflict ||
		p.Code != problem.CodeConflict {
		t.Errorf("control of a closed session: got %d %+v, want 409 conflict", status, p)
	}
	var page backendapi.EventPage
	if status := b.call("GET", backendapi.PathSessions+"/"+s.SessionID+"/events?since=99&waitMs=25000", "",
		&page); status != http.StatusOK {
		t.Errorf("poll of a closed session: got status %d, want 200", status)
	}
}

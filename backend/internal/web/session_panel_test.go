package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/dbtest"
	"github.com/service-dev/service/backend/internal/limit"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
)

// Pictures of one account leave room for other accounts. If the browser disconnects while its request waits, no picture
// is drawn.
func TestPanels_AreLimitedPerAccount(t *testing.T) {
	const eve = "eve@example.org"
	h := newDashboardWorld(t)
	dbtest.AddProject(t, h.db, "id-"+eve, foreign)
	h.addSessionOf("id-"+eve, foreign, "ses_eve", "rayban_display", 0)
	inner := dashboardSite(t, h)
	asked, hold := make(chan struct{}, 10), make(chan struct{})
	// The service reads the clock once for each picture, after it has read the session.
	h.sessions.Now = func() time.Time {
		asked <- struct{}{}
		<-hold
		return h.now()
	}
	arrived, ended := make(chan struct{}, 100), make(chan struct{}, 100)
	site := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		inner.Config.Handler.ServeHTTP(rw, r)
		if r.Context().Err() != nil {
			ended <- struct{}{}
		}
	}))
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(func() { release(); site.Close() })
	statuses := make(chan int, 10)
	ask := func(ctx context.Context, v *visitor, id string) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, site.URL+sessionsPath+"/"+id+"/panel", nil)
		if err != nil {
			t.Error(err)
			return
		}
		response, err := v.client.Do(req)
		if err != nil {
			statuses <- 0
			return
		}
		response.Body.Close()
		statuses <- response.StatusCode
	}
	next := func() {
		t.Helper()
		select {
		case <-asked:
		case <-time.After(10 * time.Second):
			t.Fatal("no picture was drawn")
		}
	}
	first, other := signedIn(t, site, ada), signedIn(t, site, eve)
	go ask(t.Context(), first, "ses_one")
	next()
	for len(arrived) > 0 {
		<-arrived
	}
	ctx, leave := context.WithCancel(t.Context())
	go ask(ctx, first, "ses_one")
	<-arrived
	go ask(t.Context(), other, "ses_eve")
	next() // the other account's picture, if the second one of the first account waits
	leave()
	if got := <-statuses; got != 0 {
		t.Errorf("a request that was still waiting got status %d", got)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the server has not noticed that the browser left")
	}
	release()
	for range 2 {
		if got := <-statuses; got != http.StatusOK {
			t.Errorf("got status %d, want 200", got)
		}
	}
	if len(asked) != 0 {
		t.Error("a picture was drawn for a browser that had left")
	}
}

func TestPanels_TooManyAreRefused(t *testing.T) {
	usual := drawingBounds
	drawingBounds = limit.Bounds{}
	t.Cleanup(func() { drawingBounds = usual })
	site := dashboardSite(t, newDashboardWorld(t))
	v := signedIn(t, site, ada).get(sessionsPath+"/ses_one/panel").want(http.StatusTooManyRequests, "at the same time")
	if v.header.Get("Retry-After") == "" {
		t.Error("got no Retry-After")
	}
}

func TestDrawPanel_StopsWhenTheBrowserLeaves(t *testing.T) {
	m := sessions.Memory{Display: glasses.Event{Type: glasses.TypeDisplayShow, Payload: []byte(homeTree)}}
	ctx, leave := context.WithCancel(t.Context())
	if drawPanel(ctx, "even_g1", m) == nil {
		t.Fatal("got no picture")
	}
	leave()
	if drawPanel(ctx, "even_g1", m) != nil {
		t.Error("got a picture although the browser had left")
	}
}

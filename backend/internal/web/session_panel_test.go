package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/limit"
	"github.com/service-dev/service/backend/internal/sessions"
	"github.com/service-dev/service/glasses"
)

// heldSessions reports each request for the content of a session, and blocks it.
type heldSessions struct {
	fakeSessions
	asked chan string // receives the account
	hold  chan struct{}
}

func (s heldSessions) Shown(ctx context.Context, account, id string) (sessions.Session, sessions.Memory, error) {
	s.asked <- account
	<-s.hold
	return s.fakeSessions.Shown(ctx, account, id)
}

// Pictures of one account leave room for other accounts. If the browser disconnects while its request waits, no picture
// is drawn.
func TestPanels_AreLimitedPerAccount(t *testing.T) {
	const eve = "eve@example.org"
	h := newFakeDashboard()
	h.sessions[2].Owner.AccountID, h.sessions[2].DeviceModel = "id-"+eve, h.sessions[0].DeviceModel
	held := heldSessions{fakeSessions{h}, make(chan string, 10), make(chan struct{})}
	inner, _ := dashboardSite(t, h, func(o *Options) { o.Dashboard.Sessions = held })
	arrived, ended := make(chan struct{}, 100), make(chan struct{}, 100)
	site := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		inner.Config.Handler.ServeHTTP(rw, r)
		if r.Context().Err() != nil {
			ended <- struct{}{}
		}
	}))
	release := sync.OnceFunc(func() { close(held.hold) })
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
	next := func() string {
		t.Helper()
		select {
		case account := <-held.asked:
			return account
		case <-time.After(10 * time.Second):
			t.Fatal("no picture was drawn")
			return ""
		}
	}
	first, other := signedIn(t, site, ada), signedIn(t, site, eve)
	go ask(t.Context(), first, "ses_one")
	if got := next(); got != adaID {
		t.Fatalf("the first picture is for %s", got)
	}
	for len(arrived) > 0 {
		<-arrived
	}
	ctx, leave := context.WithCancel(t.Context())
	go ask(ctx, first, "ses_one")
	<-arrived
	go ask(t.Context(), other, "ses_far")
	if got := next(); got != "id-"+eve {
		t.Errorf("the second picture is for %s, want another account's", got)
	}
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
	if len(held.asked) != 0 {
		t.Error("a picture was drawn for a browser that had left")
	}
}

func TestPanels_TooManyAreRefused(t *testing.T) {
	usual := drawingBounds
	drawingBounds = limit.Bounds{}
	t.Cleanup(func() { drawingBounds = usual })
	site, _ := dashboardSite(t, newFakeDashboard())
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

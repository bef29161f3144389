package api

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/credential"
)

// busyLinks accepts one code. It blocks polls until they are released, and counts the concurrent ones.
type busyLinks struct {
	Links
	known     string
	hold      chan struct{}
	entered   chan struct{}
	mu        sync.Mutex
	in, most  int
	throttled int
}

func (l *busyLinks) Poll(ctx context.Context, code string) (link.Poll, error) {
	l.mu.Lock()
	l.in++
	l.most = max(l.most, l.in)
	l.mu.Unlock()
	if l.hold != nil {
		l.entered <- struct{}{}
		<-l.hold
	}
	l.mu.Lock()
	l.in--
	l.mu.Unlock()
	if code == l.known {
		return link.Poll{Interval: 5 * time.Second}, nil
	}
	return link.Poll{}, link.ErrUnknown
}

func (l *busyLinks) Throttled(context.Context) { l.throttled++ }

// A client that polls unknown codes always gets the response for an unknown code, and delays no other client. Above a
// limit, only two of its polls run at a time; once its queue is full, further polls are told to retry later. A known
// code is never reported as unknown.
func TestGuessedDeviceCodes_QueuePerAddress(t *testing.T) {
	l := &busyLinks{known: secret.New(credential.DeviceCode)}
	w := newWorld(t, func(o *Options) { l.Links, o.Links = o.Links, l })
	poll := func(code, ip string) answer {
		return w.call("POST", "/api/auth/device/token", `{"deviceCode":"`+code+`"}`, ipHeader, ip)
	}
	first := poll(secret.New(credential.DeviceCode), "192.0.2.1")
	for range 2 * guessesPerMinute {
		if got := poll(secret.New(credential.DeviceCode), "192.0.2.1"); got.status != http.StatusNotFound ||
			string(got.body) != string(first.body) {
			t.Fatalf("got %d %s, want the same 404 as for the first code", got.status, got.body)
		}
	}
	if l.throttled == 0 {
		t.Error("got no Throttled call, want the throttling recorded")
	}
	poll(l.known, "192.0.2.1").is(http.StatusOK)

	l.hold, l.entered = make(chan struct{}), make(chan struct{}, 200)
	answers := make(chan answer, 200)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() { answers <- poll(l.known, "192.0.2.1") })
		if i < guessBounds.RunningEach {
			<-l.entered
		}
	}
	for range 100 - guessBounds.WaitingEach - guessBounds.RunningEach { // the remaining calls find the queue full
		if got := <-answers; got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
			t.Errorf("got %d %s, want 429 with Retry-After", got.status, got.body)
		}
	}
	other := make(chan answer, 1)
	go func() { other <- poll(l.known, "192.0.2.2") }()
	<-l.entered                  // calls from another address are not affected
	for range guessesPerMinute { // nor is another address that guesses: it has its own queue
		w.api.guesses.Take("192.0.2.3")
	}
	third := make(chan answer, 1)
	go func() { third <- poll(l.known, "192.0.2.3") }()
	<-l.entered
	close(l.hold)
	(<-other).is(http.StatusOK)
	(<-third).is(http.StatusOK)
	wg.Wait()
	close(answers)
	for got := range answers {
		if got.status != http.StatusOK || !strings.Contains(string(got.body), "pending") {
			t.Errorf("got %d %s, want 200 and pending", got.status, got.body)
		}
	}
	if l.most != guessBounds.RunningEach+2 {
		t.Errorf("%d polls ran concurrently, want as many as the two addresses may run", l.most)
	}
	if running, waiting := w.api.guessQueue.Used(); running+waiting != 0 {
		t.Errorf("%d polls run and %d wait, want none", running, waiting)
	}
}

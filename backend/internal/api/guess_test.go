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
)

// busyLinks counts how many polls are in the machine at once, holds them there until they may go, and knows one code.
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

// Who polls codes that nobody knows gets the answer of an unknown code however often, but holds up nobody else: beyond
// a number its polls go two at a time, and beyond a queue they are told to come back. A known code is never taken for
// an unknown one.
func TestGuessedDeviceCodesQueueApart(t *testing.T) {
	l := &busyLinks{known: secret.New(secret.DeviceCode)}
	w := newWorld(t, func(o *Options) { l.Links, o.Links = o.Links, l })
	poll := func(code, ip string) answer {
		return w.call("POST", "/api/auth/device/token", `{"deviceCode":"`+code+`"}`, ipHeader, ip)
	}
	first := poll(secret.New(secret.DeviceCode), "192.0.2.1")
	for range 2 * guessesPerMinute {
		if got := poll(secret.New(secret.DeviceCode), "192.0.2.1"); got.status != http.StatusNotFound || string(got.body) != string(first.body) {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	if l.throttled == 0 {
		t.Error("the trail was not told")
	}
	poll(l.known, "192.0.2.1").is(http.StatusOK)

	l.hold, l.entered = make(chan struct{}), make(chan struct{}, 200)
	answers := make(chan answer, 200)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() { answers <- poll(l.known, "192.0.2.1") })
		if i < cap(w.api.aside.passing) {
			<-l.entered
		}
	}
	for range 100 - cap(w.api.aside.waiting) - cap(w.api.aside.passing) { // the rest finds the queue full
		if got := <-answers; got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	other := make(chan answer, 1)
	go func() { other <- poll(l.known, "192.0.2.2") }()
	<-l.entered // another address is let in beside them
	close(l.hold)
	(<-other).is(http.StatusOK)
	wg.Wait()
	close(answers)
	for got := range answers {
		if got.status != http.StatusOK || !strings.Contains(string(got.body), "pending") {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if l.most != 3 {
		t.Errorf("%d polls at once", l.most)
	}
}

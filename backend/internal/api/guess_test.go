package api

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/service-dev/service/backend/internal/audit"
	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/internal/credential"
)

// A client that polls unknown codes always gets the response for an unknown code, and delays no other client. Above a
// limit, only two of its polls run at a time; once its queue is full, further polls are told to retry later. A known
// code is never reported as unknown.
func TestGuessedDeviceCodes_QueuePerAddress(t *testing.T) {
	w := newWorld(t)
	poll := func(code, ip string) answer {
		return w.call("POST", "/api/auth/device/token", `{"deviceCode":"`+code+`"}`, ipHeader, ip)
	}
	codes := make([]string, 103) // one for each poll, so that none is polled too soon
	for i := range codes {
		codes[i] = w.issue(ipHeader, fmt.Sprintf("198.51.100.%d", i)).DeviceCode
	}
	known := func() (code string) { code, codes = codes[0], codes[1:]; return code }
	first := poll(secret.New(credential.DeviceCode), "192.0.2.1")
	for range 2 * guessesPerMinute {
		if got := poll(secret.New(credential.DeviceCode), "192.0.2.1"); got.status != http.StatusNotFound ||
			string(got.body) != string(first.body) {
			t.Fatalf("got %d %s, want the same 404 as for the first code", got.status, got.body)
		}
	}
	if lines, err := w.links.Trail(t.Context(), link.Asked{Address: "192.0.2.1"}); err != nil || len(lines) != 1 ||
		lines[0].Action != audit.TrailThrottle {
		t.Errorf("trail: got %+v (error %v), want the throttling recorded", lines, err)
	}
	poll(known(), "192.0.2.1").is(http.StatusOK)

	hold, entered := make(chan struct{}), make(chan struct{}, 200)
	var in, most atomic.Int32
	w.onLink = func() { // only polls of known codes read the clock
		now := in.Add(1)
		for was := most.Load(); now > was && !most.CompareAndSwap(was, now); was = most.Load() {
		}
		entered <- struct{}{}
		<-hold
		in.Add(-1)
	}
	answers := make(chan answer, 200)
	var wg sync.WaitGroup
	for i := range 100 {
		code := known()
		wg.Go(func() { answers <- poll(code, "192.0.2.1") })
		if i < guessBounds.RunningEach {
			<-entered
		}
	}
	for range 100 - guessBounds.WaitingEach - guessBounds.RunningEach { // the remaining calls find the queue full
		if got := <-answers; got.status != http.StatusTooManyRequests || got.header.Get("Retry-After") == "" {
			t.Errorf("got %d %s, want 429 with Retry-After", got.status, got.body)
		}
	}
	other, code := make(chan answer, 1), known()
	go func() { other <- poll(code, "192.0.2.2") }()
	<-entered                    // calls from another address are not affected
	for range guessesPerMinute { // nor is another address that guesses: it has its own queue
		w.api.guesses.Take("192.0.2.3")
	}
	third, last := make(chan answer, 1), known()
	go func() { third <- poll(last, "192.0.2.3") }()
	<-entered
	close(hold)
	(<-other).is(http.StatusOK)
	(<-third).is(http.StatusOK)
	wg.Wait()
	close(answers)
	for got := range answers {
		if got.status != http.StatusOK || !strings.Contains(string(got.body), "pending") {
			t.Errorf("got %d %s, want 200 and pending", got.status, got.body)
		}
	}
	if n := int(most.Load()); n != guessBounds.RunningEach+2 {
		t.Errorf("%d polls ran concurrently, want as many as the two addresses may run", n)
	}
	if running, waiting := w.api.guessQueue.Used(); running+waiting != 0 {
		t.Errorf("%d polls run and %d wait, want none", running, waiting)
	}
}

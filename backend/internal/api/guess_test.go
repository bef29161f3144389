package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/link"
	"github.com/service-dev/service/backend/internal/secret"
	"github.com/service-dev/service/proto/credential"
)

// busyLinks knows one code. It blocks polls until they are released, and counts the concurrent ones.
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
// limit, two of its polls run at a time; once its queue is full, further polls are told to retry later. A known code
// is never reported as unknown.
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
		if i < runningPerAddress {
			<-l.entered
		}
	}
	for range 100 - waitingPerAddress - runningPerAddress { // the remaining calls find the queue full
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
	if l.most != runningPerAddress+2 {
		t.Errorf("%d polls ran concurrently, want as many as the two addresses may run", l.most)
	}
	if len(w.api.guessQueue.addresses) != 0 {
		t.Errorf("%d addresses left in the queue, want none", len(w.api.guessQueue.addresses))
	}
}

// The addresses that guess also share one limit on running and one on queued polls. An IPv6 network counts as one
// address.
func TestAddressQueue_IsBoundedInTotal(t *testing.T) {
	all := newAddressQueue()
	var leaves []func()
	for i := range runningInTotal {
		leave, err := all.enter(t.Context(), netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}).String())
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leave)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	errs := make(chan error, 2*waitingInTotal)
	for i := range waitingInTotal {
		wg.Go(func() {
			_, err := all.enter(ctx, netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}).String())
			errs <- err
		})
	}
	for len(all.waiting) < waitingInTotal {
		runtime.Gosched()
	}
	if _, err := all.enter(ctx, "203.0.113.1"); !errors.As(err, new(*Refusal)) {
		t.Errorf("call above the limit: got %v, want a Refusal", err)
	}
	cancel()
	wg.Wait()
	close(errs)
	for err := range errs {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	for _, leave := range leaves {
		leave()
	}
	if len(all.addresses) != 0 || len(all.waiting) != 0 || len(all.running) != 0 {
		t.Errorf("left: %d addresses, %d waiting, %d running calls; want none", len(all.addresses), len(all.waiting),
			len(all.running))
	}
	for i := range runningPerAddress {
		if _, err := all.enter(t.Context(), fmt.Sprintf("2001:db8::%d", i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := all.enter(ctx, "2001:db8::ffff"); !errors.Is(err, context.Canceled) || len(all.addresses) != 1 {
		t.Errorf("another address of the same network: error %v, %d addresses, want context.Canceled and 1", err,
			len(all.addresses))
	}
}

package gateway

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/test/llmtest"
)

// latePurse returns from the first renewal only after the call has ended.
type latePurse struct {
	*memoryPurse
	renewing chan string
	ended    chan struct{}
	late     atomic.Bool
}

func (p *latePurse) Renew(_ context.Context, id string) error {
	p.renewing <- id
	<-p.ended
	if p.late.CompareAndSwap(false, true) {
		return credit.ErrHoldEnded
	}
	return nil
}

// errorLog fails the test for every error that is logged.
type errorLog struct {
	slog.Handler
	t *testing.T
}

func (l errorLog) Enabled(context.Context, slog.Level) bool { return true }
func (l errorLog) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		l.t.Errorf("logged error %q, want none", r.Message)
	}
	return nil
}

// A call that ends while its hold is being renewed is not logged as a failure.
func TestService_RenewsWhileACallEnds(t *testing.T) {
	purse := &latePurse{renewing: make(chan string, 1000), ended: make(chan struct{})}
	w := newWorld(t, credit.USD, Limits{Renew: time.Millisecond}, func(o *Options) {
		purse.memoryPurse, _ = o.Purse.(*memoryPurse)
		o.Purse, o.Log = purse, slog.New(errorLog{slog.DiscardHandler, t})
	})
	w.add(llmtest.WaitsInside)
	call := func() (done chan error) {
		done = make(chan error, 1)
		go func() { done <- w.do(context.Background(), body(llmtest.WaitsInside, ""), newRecorder()) }()
		return done
	}
	first := call()
	<-purse.renewing
	w.provider.Continue()
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	second := call()
	close(purse.ended) // the first call's renewal returns, and then the second call's begins
	<-purse.renewing
	w.provider.Continue()
	<-second
}

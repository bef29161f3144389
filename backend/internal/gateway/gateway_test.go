package gateway

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/packaging/llmtest"
)

// memoryPurse is a ledger of one account that can be told to fail.
type memoryPurse struct {
	mu      sync.Mutex
	posted  credit.Amount
	holds   map[string]credit.Amount
	next    int
	rows    []credit.Call
	charged []credit.Amount
	renewed chan string
	renew   error
	settled chan struct{} // receives one value for each counted call
}

func newPurse(posted credit.Amount) *memoryPurse {
	return &memoryPurse{posted: posted, holds: map[string]credit.Amount{}, renewed: make(chan string, 1000),
		settled: make(chan struct{}, 1000)}
}

func (p *memoryPurse) Hold(_ context.Context, r credit.HoldRequest) (credit.Hold, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var held credit.Amount
	for _, h := range p.holds {
		held += h
	}
	if r.Amount > p.posted {
		return credit.Hold{}, &credit.NoCredit{Needed: r.Amount, Available: p.posted - held}
	}
	if r.Amount > p.posted-held {
		return credit.Hold{}, &credit.Reserved{Needed: r.Amount, Available: p.posted - held}
	}
	p.next++
	id := string(rune('a' + p.next))
	p.holds[id] = r.Amount
	return credit.Hold{ID: id, Amount: r.Amount}, nil
}

func (p *memoryPurse) Renew(_ context.Context, id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.renewed <- id
	return p.renew
}

func (p *memoryPurse) Settle(_ context.Context, id string, charge credit.Amount, call credit.Call) (credit.Amount, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	charge = min(charge, p.holds[id])
	delete(p.holds, id)
	p.posted -= charge
	p.rows, p.charged = append(p.rows, call), append(p.charged, charge)
	p.settled <- struct{}{}
	return charge, nil
}

func (p *memoryPurse) Release(ctx context.Context, id string, call credit.Call) error {
	_, err := p.Settle(ctx, id, 0, call)
	return err
}

func (p *memoryPurse) Record(_ context.Context, call credit.Call) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows, p.charged = append(p.rows, call), append(p.charged, 0)
	p.settled <- struct{}{}
	return nil
}

// last waits for the next counted call and returns it, with its charge and what is still held.
func (p *memoryPurse) last() (call credit.Call, charged credit.Amount, holds int) {
	<-p.settled
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rows[len(p.rows)-1], p.charged[len(p.charged)-1], len(p.holds)
}

// recorder is an app.
type recorder struct {
	mu    sync.Mutex
	text  bytes.Buffer
	wrote chan struct{}
}

func newRecorder() *recorder { return &recorder{wrote: make(chan struct{}, 1000)} }

func (r *recorder) Begin(bool) {}
func (r *recorder) Write(p []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text.Write(p)
	r.wrote <- struct{}{}
	return nil
}

// world is a service with a fake provider.
type world struct {
	*Service
	purse    *memoryPurse
	provider *llmtest.Provider
}

var prices = wire.Prices{In: 2_000_000, Cached: 1_000_000, Out: 10_000_000}

func newWorld(t *testing.T, posted credit.Amount, limits Limits) *world {
	t.Helper()
	checkLeaks := goleak.IgnoreCurrent()
	w := &world{purse: newPurse(posted), provider: llmtest.Start()}
	w.Service = New(Options{Purse: w.purse, Catalogue: Catalogue{byID: map[string]*Model{}}, Log: slog.New(slog.DiscardHandler), Limits: limits})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		w.provider.Close()
		goleak.VerifyNone(t, checkLeaks)
	})
	return w
}

// add offers a model of the fake provider.
func (w *world) add(id string) {
	p := &Provider{ID: "fake", base: w.provider.URL, key: newKey(llmtest.Key), header: "Authorization", prefix: "Bearer "}
	m := &Model{ID: id, Provider: p, API: wire.Chat, Prices: prices, upstream: id,
		outputField: "max_completion_tokens", context: 2000, output: 500, defaultOutput: 100}
	w.Catalogue.Models, w.Catalogue.byID[id] = append(w.Catalogue.Models, m), m
}

func body(model, more string) []byte {
	return []byte(`{"model":"` + model + `","stream":true,"messages":[{"role":"user","content":"Hello"}]` + more + `}`)
}

func (w *world) do(ctx context.Context, text []byte, to Sink) error {
	return w.Do(ctx, Caller{"acc", "com.example.app"}, wire.Chat, text, to)
}

func codeOf(err error) string {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return ""
}

func TestService_CancelsAnAnswerThatNobodyReadsAfterTheDrain(t *testing.T) {
	w := newWorld(t, credit.USD, Limits{Drain: time.Millisecond})
	w.add(llmtest.HangsInside)
	ctx, leave := context.WithCancel(t.Context())
	app := newRecorder()
	go func() {
		<-app.wrote
		leave()
	}()
	if err := w.do(ctx, body(llmtest.HangsInside, ""), app); err != nil {
		t.Errorf("an app that has left gets %v", err)
	}
	row, charged, holds := w.purse.last()
	if row.Outcome != "cancelled" || !row.Estimated || charged == 0 || charged > 2*300+10*100 || holds != 0 {
		t.Errorf("%+v, charged %d, %d holds", row, charged, holds)
	}
}

// An answer is cancelled at once if its app leaves while every place for a drain is taken.
func TestService_BoundsTheDrains(t *testing.T) {
	w := newWorld(t, credit.USD, Limits{Drains: 1, Drain: time.Hour})
	w.add(llmtest.WaitsInside)
	leaveAfterTheFirstEvent := func() <-chan error {
		ctx, leave := context.WithCancel(context.Background())
		app, done := newRecorder(), make(chan error, 1)
		go func() { done <- w.do(ctx, body(llmtest.WaitsInside, ""), app) }()
		<-app.wrote
		leave()
		return done
	}
	w.drains <- struct{}{}
	<-leaveAfterTheFirstEvent()
	if row, _, _ := w.purse.last(); row.Outcome != "cancelled" || !row.Estimated {
		t.Errorf("%+v", row)
	}
	<-w.drains
	done := leaveAfterTheFirstEvent()
	w.provider.Continue()
	<-done
	if row, _, holds := w.purse.last(); row.Estimated || row.TextOut != 9 || holds != 0 || len(w.drains) != 0 {
		t.Errorf("%+v, %d holds, %d drains", row, holds, len(w.drains))
	}
}

func TestService_RefusesIfTheProviderDoesNotAnswerInTime(t *testing.T) {
	w := newWorld(t, credit.USD, Limits{FirstByte: time.Millisecond})
	w.add(llmtest.Hangs)
	if code := codeOf(w.do(t.Context(), body(llmtest.Hangs, ""), newRecorder())); code != CodeProviderTimeout {
		t.Error(code)
	}
	if row, charged, holds := w.purse.last(); row.Outcome != "failed" || charged != 0 || holds != 0 {
		t.Errorf("%+v %d", row, charged)
	}
}

func TestService_BreaksOffIfTheProviderStopsSending(t *testing.T) {
	w := newWorld(t, credit.USD, Limits{Idle: 2 * time.Second}) // long enough for the first event on a busy machine
	w.add(llmtest.HangsInside)
	if err := w.do(t.Context(), body(llmtest.HangsInside, ""), newRecorder()); !errors.Is(err, ErrBroken) {
		t.Error(err)
	}
	if row, charged, holds := w.purse.last(); row.Outcome != "failed" || !row.Estimated || charged == 0 || holds != 0 {
		t.Errorf("%+v %d", row, charged)
	}
}

func TestService_SettlesWhatRunsWhenItStops(t *testing.T) {
	w := newWorld(t, credit.USD, Limits{})
	w.add(llmtest.HangsInside)
	app := newRecorder()
	done := make(chan error, 1)
	go func() { done <- w.do(context.Background(), body(llmtest.HangsInside, ""), app) }()
	<-app.wrote
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := w.Serve(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, ErrBroken) {
		t.Error(err)
	}
	if row, _, holds := w.purse.last(); row.Outcome != "failed" || holds != 0 {
		t.Errorf("%+v, %d holds", row, holds)
	}
	if code := codeOf(w.do(t.Context(), body("good", ""), app)); code != CodeUnavailable {
		t.Error(code)
	}
}

func TestService_RenewsHoldsAndCutsWhatIsNoLongerCovered(t *testing.T) {
	w := newWorld(t, credit.USD, Limits{Renew: time.Millisecond})
	w.add(llmtest.HangsInside)
	done := make(chan error, 1)
	go func() { done <- w.do(context.Background(), body(llmtest.HangsInside, ""), newRecorder()) }()
	<-w.purse.renewed
	w.purse.mu.Lock()
	w.purse.renew = credit.ErrHoldEnded
	w.purse.mu.Unlock()
	if err := <-done; err == nil {
		t.Error("the call ended well")
	}
}

// The credit bounds an answer for which the app asked no bound; one that was asked for is refused with the number.
func TestService_BoundsTheAnswerByTheCredit(t *testing.T) {
	w := newWorld(t, 1200, Limits{})
	w.add("good")
	if err := w.do(t.Context(), body("good", ""), newRecorder()); err != nil {
		t.Fatal(err)
	}
	asked, _ := w.provider.Book()[0].Body["max_completion_tokens"].(float64)
	if asked < minShrunk || asked >= 100 {
		t.Errorf("asked for %v tokens", asked)
	}
	w.purse.last()
	err := w.do(t.Context(), body("good", `,"max_tokens":500`), newRecorder())
	var refusal *Refusal
	if !errors.As(err, &refusal) || refusal.Code != CodeRequestTooLarge || refusal.Money["affordableOutputTokens"] == nil {
		t.Errorf("%+v", err)
	}
}

func TestService_HidesAModelWithBadReceipts(t *testing.T) {
	w := newWorld(t, credit.USD, Limits{})
	w.add(llmtest.UsageStrings)
	w.add("good")
	for range maxBadReceipts {
		if err := w.do(t.Context(), body(llmtest.UsageStrings, ""), newRecorder()); err != nil {
			t.Fatal(err)
		}
	}
	if code := codeOf(w.do(t.Context(), body(llmtest.UsageStrings, ""), newRecorder())); code != CodeModelNotFound {
		t.Error(code)
	}
	models, _, err := w.Offered(t.Context(), Caller{})
	if err != nil || len(models) != 1 || models[0].ID != "good" {
		t.Errorf("%v %v", models, err)
	}
}

// A connection that the provider closed while it was idle fails without a written byte, and the call succeeds on a new
// one. A request that was read is never sent twice.
func TestService_RetriesOnlyWhatWasNeverWritten(t *testing.T) {
	w := newWorld(t, credit.USD, Limits{})
	w.add("good")
	w.add(llmtest.DropsAfterRead)
	dials := 0
	dialer := &net.Dialer{}
	w.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials++; dials == 1 {
			return nil, errors.New("connection refused")
		}
		conn, err := dialer.DialContext(ctx, network, address)
		return &countedConn{Conn: conn}, err
	}
	if err := w.do(t.Context(), body("good", ""), newRecorder()); err != nil || dials != 2 {
		t.Errorf("%v after %d dials", err, dials)
	}
	if code := codeOf(w.do(t.Context(), body(llmtest.DropsAfterRead, ""), newRecorder())); code != CodeProviderUnavailable {
		t.Error(code)
	}
	if n := len(w.provider.Book()); n != 2 {
		t.Errorf("the provider received %d requests", n)
	}
}

// Many calls at once on little money: the balance never falls below zero, and when all have ended a call succeeds.
func TestService_NeverSpendsMoreThanThereIs(t *testing.T) {
	w := newWorld(t, 20_000, Limits{})
	w.add("good")
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			err := w.do(context.Background(), body("good", `,"max_tokens":100`), newRecorder())
			if code := codeOf(err); err != nil && code != CodeCreditReserved && code != CodeNoCredit && code != CodeRequestTooLarge {
				t.Errorf("%s: %v", code, err)
			}
		})
	}
	calls.Wait()
	if w.purse.posted < 0 || len(w.purse.holds) != 0 || w.Running() != 0 {
		t.Errorf("%d left, %d holds, %d calls", w.purse.posted, len(w.purse.holds), w.Running())
	}
	if err := w.do(t.Context(), body("good", `,"max_tokens":100`), newRecorder()); err != nil {
		t.Error(err)
	}
}

func TestService_RefusesMoreCallsThanItsBound(t *testing.T) {
	w := newWorld(t, credit.USD, Limits{Calls: 1})
	w.add(llmtest.WaitsInside)
	app := newRecorder()
	done := make(chan error, 1)
	go func() { done <- w.do(context.Background(), body(llmtest.WaitsInside, ""), app) }()
	<-app.wrote
	if code := codeOf(w.do(t.Context(), body(llmtest.WaitsInside, ""), app)); code != CodeTooManyCalls {
		t.Error(code)
	}
	w.provider.Continue()
	if err := <-done; err != nil || !strings.HasSuffix(app.text.String(), "[DONE]\n\n") {
		t.Error(err)
	}
}

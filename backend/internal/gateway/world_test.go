package gateway

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/test/llmtest"
)

// memoryPurse is an in-memory ledger of one account that fails on demand.
type memoryPurse struct {
	mu      sync.Mutex
	posted  credit.Amount
	holds   map[string]credit.Amount
	next    int
	rows    []credit.Call
	charged []credit.Amount
	carried credit.Amount // paid by the operator, for calls that are not charged
	renewed chan string
	renew   error
	capped  error         // the error of holds that the balance covers
	settled chan struct{} // receives one value per counted call
	panics  atomic.Bool   // whether Hold panics
}

func newPurse(posted credit.Amount) *memoryPurse {
	return &memoryPurse{posted: posted, holds: map[string]credit.Amount{}, renewed: make(chan string, 1000),
		settled: make(chan struct{}, 1000)}
}

func (p *memoryPurse) Hold(ctx context.Context, r credit.HoldRequest) (credit.Hold, error) {
	if err := ctx.Err(); err != nil {
		return credit.Hold{}, err
	}
	if p.panics.Load() {
		panic("the ledger has a bug")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var held credit.Amount
	for _, h := range p.holds {
		held += h
	}
	if r.Amount > p.posted {
		return credit.Hold{}, &credit.NoCredit{Needed: r.Amount, Available: p.posted - held, Held: held}
	}
	if r.Amount <= p.posted-held && p.capped != nil {
		return credit.Hold{}, p.capped
	}
	if r.Amount > p.posted-held {
		return credit.Hold{}, &credit.Reserved{Needed: r.Amount, Available: p.posted - held}
	}
	p.next++
	id := string(rune('a' + p.next))
	p.holds[id] = r.Amount
	return credit.Hold{ID: id, Amount: r.Amount}, nil
}

// held returns the sum of the open holds.
func (p *memoryPurse) held() (sum credit.Amount) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.holds {
		sum += h
	}
	return sum
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

func (p *memoryPurse) Carry(ctx context.Context, id string, cost credit.Amount, call credit.Call) error {
	p.carried += cost
	return p.Release(ctx, id, call)
}

func (p *memoryPurse) Record(_ context.Context, call credit.Call) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows, p.charged = append(p.rows, call), append(p.charged, 0)
	p.settled <- struct{}{}
	return nil
}

// last waits for the next counted call. It returns the call, its charge and the number of holds left.
func (p *memoryPurse) last() (call credit.Call, charged credit.Amount, holds int) {
	<-p.settled
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rows[len(p.rows)-1], p.charged[len(p.charged)-1], len(p.holds)
}

// liveKeys holds the keys that are not revoked.
type liveKeys struct{ live sync.Map }

func (k *liveKeys) LiveKeys(_ context.Context, ids []string) (live []string, _ error) {
	for _, id := range ids {
		if _, ok := k.live.Load(id); ok {
			live = append(live, id)
		}
	}
	return live, nil
}

// recorder acts as an app and records the answer.
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

func (r *recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// world is a gateway service with a fake provider.
type world struct {
	*Service
	purse    *memoryPurse
	keys     *liveKeys
	provider *llmtest.Provider
}

var prices = wire.Prices{In: 2_000_000, Cached: 1_000_000, Out: 10_000_000}

func newWorld(t *testing.T, posted credit.Amount, limits Limits, change ...func(*Options)) *world {
	t.Helper()
	checkLeaks := goleak.IgnoreCurrent()
	w := &world{purse: newPurse(posted), keys: &liveKeys{}, provider: llmtest.Start()}
	w.keys.live.Store("key", true)
	o := Options{Purse: w.purse, Keys: w.keys, Catalogue: Catalogue{byID: map[string]*Model{}}, Log: slog.New(slog.DiscardHandler), Limits: limits}
	for _, f := range change {
		f(&o)
	}
	w.Service = New(o)
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

// add offers another model of the fake provider.
func (w *world) add(id string) { w.addAt(id, w.provider.URL) }

func (w *world) addAt(id, base string) {
	p := &Provider{ID: "fake", base: base, key: newKey(llmtest.Key), header: "Authorization", prefix: "Bearer "}
	m := &Model{ID: id, Provider: p, API: wire.Chat, Prices: prices, upstream: id,
		outputField: "max_completion_tokens", context: 2000, output: 500, defaultOutput: 100}
	w.Catalogue.Models, w.Catalogue.byID[id] = append(w.Catalogue.Models, m), m
}

func body(model, more string) []byte {
	return []byte(`{"model":"` + model + `","stream":true,"messages":[{"role":"user","content":"Hello"}]` + more + `}`)
}

func (w *world) do(ctx context.Context, text []byte, to Sink) error {
	return w.Do(ctx, Caller{Account: "acc", Project: "com.example.app", Key: "key"}, wire.Chat, text, to)
}

func codeOf(err error) string {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return ""
}

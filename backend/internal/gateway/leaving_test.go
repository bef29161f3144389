package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/internal/problem"
)

// reasoningProvider sends a first event, then nothing for a while, like a model with hidden reasoning, and at the end a
// report of many tokens. If it has no report, it stops sending. It uses no socket, so that the test's clock advances
// while calls wait for it.
type reasoningProvider struct {
	silent  time.Duration // before the first event
	reasons time.Duration
	report  bool
}

const reasonedTokens = 90

// receive reads a request like a provider's connection.
func receive(r *http.Request) error {
	conn := &countedConn{}
	httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{Conn: conn})
	n, err := io.Copy(io.Discard, r.Body)
	conn.written.Add(n)
	return err
}

func (p reasoningProvider) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := receive(r); err != nil {
		return nil, err
	}
	if err := wait(r.Context(), p.silent); err != nil {
		return nil, err
	}
	read, written := io.Pipe()
	go func() {
		_, err := io.WriteString(written, `data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}`+"\n\n")
		if err == nil {
			err = wait(r.Context(), p.reasons)
		}
		if err == nil && !p.report {
			err = wait(r.Context(), time.Hour)
		}
		if err == nil {
			_, err = fmt.Fprintf(written,
				"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":%d}}\n\n"+
					"data: [DONE]\n\n", reasonedTokens)
		}
		_ = written.CloseWithError(err)
	}()
	header := http.Header{"Content-Type": {"text/event-stream"}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: read, Request: r}, nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leavingWorld returns a service in front of the provider. Call it in a synctest bubble.
func leavingWorld(t *testing.T, provider http.RoundTripper, limits Limits) *world {
	t.Helper()
	w := &world{purse: newPurse(credit.USD), keys: &liveKeys{}}
	w.keys.live.Store("key", true)
	w.Service = New(Options{Purse: w.purse, Keys: w.keys, Catalogue: Catalogue{byID: map[string]*Model{}},
		Log: slog.New(slog.DiscardHandler), Limits: limits})
	w.client = &http.Client{Transport: provider}
	w.addAt("good", "http://provider.invalid/v1")
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- w.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return w
}

// receipt is the cost of the reported tokens in micro-USD, with the prices of world.
const receipt = 7*2 + reasonedTokens*10

// wholeHold is the maximum cost of the call in the tests.
func (w *world) wholeHold(t *testing.T) credit.Amount {
	t.Helper()
	w.purse.mu.Lock()
	defer w.purse.mu.Unlock()
	for _, amount := range w.purse.holds {
		return amount
	}
	t.Fatal("the call has no hold")
	return 0
}

// An app that disconnects pays for the usage that the provider reports, even if the report is late, or the whole hold
// if there is no report within the limits of the call. The result does not depend on when the app disconnects, or on
// whether its key is revoked instead.
func TestLeaving_PaysTheReceiptOrTheHold(t *testing.T) {
	limits := Limits{Idle: 10 * time.Minute}
	for name, c := range map[string]struct {
		provider reasoningProvider
		revoke   bool
		after    time.Duration // when the app leaves
		full     bool          // no more answers can be drained
		want     credit.Amount // 0: the hold
	}{
		"while the model reasons": {reasoningProvider{0, 5 * time.Minute, true}, false, time.Second, false, receipt},
		"before the first byte": {reasoningProvider{30 * time.Second, time.Minute, true}, false, time.Second, false,
			receipt},
		"without a receipt":          {reasoningProvider{0, time.Minute, false}, false, time.Second, false, 0},
		"without an answer":          {reasoningProvider{time.Hour, 0, false}, false, time.Second, false, 0},
		"while too many are drained": {reasoningProvider{0, time.Minute, true}, false, time.Second, true, 0},
		"its key revoked": {reasoningProvider{0, 5 * time.Minute, true}, true, time.Second, false,
			receipt},
		"its key revoked, no receipt":   {reasoningProvider{0, time.Minute, false}, true, time.Second, false, 0},
		"its key revoked, no answer":    {reasoningProvider{time.Hour, 0, false}, true, time.Second, false, 0},
		"after the whole answer (kept)": {reasoningProvider{0, 0, true}, false, time.Minute, false, receipt},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := leavingWorld(t, c.provider, limits)
				ctx, leave := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- w.do(ctx, body("good", ""), newRecorder()) }()
				synctest.Wait()
				want := c.want
				if want == 0 {
					want = w.wholeHold(t)
				}
				for c.full && func() bool { _, err := w.drains.Enter(ctx, "acc"); return err == nil }() {
					continue
				}
				time.Sleep(c.after)
				left := time.Now()
				if c.revoke {
					w.keys.live.Delete("key")
				} else {
					leave()
				}
				err := <-done
				if took := time.Since(left); took > time.Second {
					t.Errorf("the call returned %s after the app left, want at most 1 s", took)
				}
				if c.revoke && !errors.Is(err, ErrBroken) && codeOf(err) != problem.CodeInvalidKey {
					t.Errorf("call of a revoked key: got %v, want ErrBroken or CodeInvalidKey", err)
				}
				row, charged, holds := w.purse.last()
				if charged != want || holds != 0 || row.Estimated != (c.want == 0) {
					t.Errorf("charged %d, want %d; %d holds left; estimated %t", charged, want, holds, row.Estimated)
				}
				if took := time.Since(left); took > w.Limits.Total {
					t.Errorf("the call was settled after %s, over its limit", took)
				}
				leave()
				synctest.Wait()
				if n := w.Running(); !c.full && n != 0 {
					t.Errorf("%d calls are still counted", n)
				}
			})
		})
	}
}

// A server that stops cuts off the answers that it reads for apps whose connections it has closed. The operator pays
// for them, not the account.
func TestLeaving_PaysNothingIfTheServerStops(t *testing.T) {
	for name, silent := range map[string]time.Duration{"inside an answer": 0, "before an answer": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := leavingWorld(t, reasoningProvider{silent, 5 * time.Minute, true}, Limits{})
				ctx, leave := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- w.do(ctx, body("good", ""), newRecorder()) }()
				synctest.Wait()
				leave()
				<-done
				stopped, stop := context.WithCancel(t.Context())
				stop()
				if err := w.Serve(stopped); err != nil {
					t.Fatal(err)
				}
				if _, charged, holds := w.purse.last(); charged != 0 || holds != 0 || w.purse.carried == 0 {
					t.Errorf("charged %d, the operator pays %d, %d holds left; want only the operator to pay", charged,
						w.purse.carried, holds)
				}
			})
		})
	}
}

// panickingProvider panics while its answer is read.
type panickingProvider struct{}

func (panickingProvider) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(panickingReader{}), Request: r}, nil
}

type panickingReader struct{}

func (panickingReader) Read([]byte) (int, error) { panic("a bug") }

// A panic while an answer is read fails only the affected call.
func TestService_SurvivesAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := leavingWorld(t, panickingProvider{}, Limits{})
		if code := codeOf(w.do(t.Context(), body("good", ""), newRecorder())); code != problem.CodeUnavailable {
			t.Errorf("got code %q, want CodeUnavailable", code)
		}
		if _, charged, holds := w.purse.last(); charged != 0 || holds != 0 {
			t.Errorf("charged %d, %d holds left, want neither", charged, holds)
		}
	})
}

// One account can use only its share of the running calls, and of the answers that are read without an app.
func TestService_SharesCallsBetweenAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := leavingWorld(t, reasoningProvider{0, time.Minute, true},
			Limits{Calls: 16, Share: 8, Drains: 16, Idle: 10 * time.Minute})
		w.purse.posted = 1000 * credit.USD
		call := func(account string) <-chan error {
			done := make(chan error, 1)
			go func() {
				done <- w.Do(t.Context(), Caller{Account: account, Project: "com.example.app", Key: "key"}, wire.Chat,
					body("good", ""), newRecorder())
			}()
			synctest.Wait()
			return done
		}
		first, second := call("greedy"), call("greedy")
		if code := codeOf(<-call("greedy")); code != problem.CodeTooManyCalls {
			t.Errorf("call beyond the account's share: got code %q, want CodeTooManyCalls", code)
		}
		other := call("other")
		for _, done := range []<-chan error{first, second, other} {
			if err := <-done; err != nil {
				t.Errorf("call within the share: %v", err)
			}
		}
	})
}

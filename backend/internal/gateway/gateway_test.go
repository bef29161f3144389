package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/test/llmtest"
)

func TestService_RefusesIfTheProviderDoesNotAnswerInTime(t *testing.T) {
	w := newWorld(t, credit.USD, Limits{FirstByte: time.Millisecond})
	w.add(llmtest.Hangs)
	if code := codeOf(w.do(t.Context(), body(llmtest.Hangs, ""), newRecorder())); code != problem.CodeProviderTimeout {
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
		t.Errorf("got %+v and %d holds left, want a failed call and no holds", row, holds)
	}
	if code := codeOf(w.do(t.Context(), body("good", ""), app)); code != problem.CodeUnavailable {
		t.Error(code)
	}
}

// The lease check must end the call before its limits do. A limit would cause a different refusal.
func TestService_RenewsHoldsAndCutsWhatIsNoLongerCovered(t *testing.T) {
	w := newWorld(t, credit.USD, Limits{Renew: time.Millisecond, FirstByte: time.Minute})
	w.add(llmtest.Hangs)
	done := make(chan error, 1)
	go func() { done <- w.do(context.Background(), body(llmtest.Hangs, ""), newRecorder()) }()
	<-w.purse.renewed
	w.purse.mu.Lock()
	w.purse.renew = credit.ErrHoldEnded
	w.purse.mu.Unlock()
	if code := codeOf(<-done); code != problem.CodeUnavailable {
		t.Errorf("call whose hold ended: got code %q, want CodeUnavailable", code)
	}
	if row, charged, holds := w.purse.last(); row.Outcome != outcomeFailed || charged != 0 || holds != 0 {
		t.Errorf("got %+v, charged %d, %d holds left; want a failed call without a charge", row, charged, holds)
	}
}

// A call ends for the app when its key is revoked, whether or not its answer has begun. The account is charged.
func TestService_CutsCallsOfARevokedKey(t *testing.T) {
	w := newWorld(t, credit.USD, Limits{KeyCheck: time.Millisecond, FirstByte: 2 * time.Second, Idle: 2 * time.Second})
	w.add(llmtest.HangsInside)
	w.add(llmtest.Hangs)
	w.add("good")
	app, begun, silent := newRecorder(), make(chan error, 1), make(chan error, 1)
	go func() { begun <- w.do(context.Background(), body(llmtest.HangsInside, ""), app) }()
	for !strings.Contains(app.String(), "Grüße") {
		<-app.wrote
	}
	go func() { silent <- w.do(context.Background(), body(llmtest.Hangs, ""), newRecorder()) }()
	w.keys.live.Delete("key")
	if err := <-begun; !errors.Is(err, ErrBroken) {
		t.Errorf("stream that has begun: got %v, want ErrBroken", err)
	}
	if code := codeOf(<-silent); code != problem.CodeInvalidKey {
		t.Errorf("call without an answer yet: got %q, want CodeInvalidKey", code)
	}
	w.purse.last()
	if _, _, holds := w.purse.last(); holds != 0 || len(w.kept()) != 0 || w.purse.posted == credit.USD {
		t.Errorf("%d holds and %d calls left, balance %s; want none left and a charge", holds, len(w.kept()), w.purse.posted)
	}
	w.keys.live.Store("key", true)
	if err := w.do(t.Context(), body("good", ""), newRecorder()); err != nil {
		t.Errorf("call with a valid key: got error %v, want none", err)
	}
}

// If an app requests no maximum length, the credit limits the answer. If the requested maximum exceeds the credit, the
// call is refused, and the refusal contains the number of tokens that the credit covers.
func TestService_BoundsTheAnswerByTheCredit(t *testing.T) {
	w := newWorld(t, 1200, Limits{})
	w.add("good")
	if err := w.do(t.Context(), body("good", ""), newRecorder()); err != nil {
		t.Fatal(err)
	}
	asked, _ := w.provider.Book()[0].Body["max_completion_tokens"].(float64)
	if asked < minShrunk || asked >= 100 {
		t.Errorf("the provider was asked for %v tokens, want a limit set by the credit", asked)
	}
	w.purse.last()
	err := w.do(t.Context(), body("good", `,"max_tokens":500`), newRecorder())
	var refusal *Refusal
	if !errors.As(err, &refusal) || refusal.Code != problem.CodeRequestTooLarge ||
		refusal.Money["affordableOutputTokens"] == nil {
		t.Errorf("%+v", err)
	}
}

func TestService_HidesAModelWithBadReceipts(t *testing.T) {
	began, passed := time.Now(), atomic.Int64{} // the service reads the clock in the background
	w := newWorld(t, credit.USD, Limits{}, func(o *Options) {
		o.Now = func() time.Time { return began.Add(time.Duration(passed.Load())) }
	})
	w.add(llmtest.UsageStrings)
	w.add("good")
	for range maxBadReceipts {
		if err := w.do(t.Context(), body(llmtest.UsageStrings, ""), newRecorder()); err != nil {
			t.Fatal(err)
		}
	}
	if code := codeOf(w.do(t.Context(), body(llmtest.UsageStrings, ""),
		newRecorder())); code != problem.CodeModelNotFound {
		t.Error(code)
	}
	models, err := w.Available(t.Context(), Caller{})
	if err != nil || len(models) != 3 || models[1].ID != llmtest.UsageStrings ||
		models[1].Why == "" || models[2].Why != "" {
		t.Errorf("%+v %v", models, err)
	}
	for range 2 { // the model is offered again, and a single impossible report hides it again
		passed.Add(int64(hiddenFor))
		if err := w.do(t.Context(), body(llmtest.UsageStrings, ""), newRecorder()); err != nil {
			t.Errorf("call after %s, when the model is offered again: got error %v, want none", hiddenFor, err)
		}
		if code := codeOf(w.do(t.Context(), body(llmtest.UsageStrings, ""),
			newRecorder())); code != problem.CodeModelNotFound {
			t.Errorf("after another impossible report: got %q, want CodeModelNotFound", code)
		}
	}
}

// Usage reports that an app can cause, such as missing ones or ones above the bound, do not hide the model.
func TestService_OffersAModelWithPossibleReceipts(t *testing.T) {
	w := newWorld(t, credit.USD, Limits{})
	for _, model := range []string{llmtest.UsageNone, llmtest.AboveMax} {
		w.add(model)
		for range maxBadReceipts + 1 {
			if err := w.do(t.Context(), body(model, `,"max_tokens":2`), newRecorder()); err != nil {
				t.Errorf("%s: %v", model, err)
			}
		}
	}
}

// A connection that the provider closed while it was idle fails before a byte is written, and the call succeeds on a
// new connection. A request that the provider has read is never sent twice.
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
		t.Errorf("got error %v after %d connections, want success with the second", err, dials)
	}
	if code := codeOf(w.do(t.Context(), body(llmtest.DropsAfterRead, ""),
		newRecorder())); code != problem.CodeProviderUnavailable {
		t.Error(code)
	}
	if n := len(w.provider.Book()); n != 2 {
		t.Errorf("the provider received %d requests, want 2", n)
	}
}

// With many concurrent calls and little credit, the balance never falls below zero, and another call succeeds once all
// have ended.
func TestService_NeverSpendsMoreThanThereIs(t *testing.T) {
	w := newWorld(t, 20_000, Limits{})
	w.add("good")
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			err := w.do(context.Background(), body("good", `,"max_tokens":100`), newRecorder())
			if code := codeOf(err); err != nil && code != problem.CodeCreditReserved && code != problem.CodeNoCredit &&
				code != problem.CodeRequestTooLarge {
				t.Errorf("%s: %v", code, err)
			}
		})
	}
	calls.Wait()
	if w.purse.posted < 0 || len(w.purse.holds) != 0 || w.Running() != 0 {
		t.Errorf("balance %d, %d holds and %d calls left; want no negative balance and none left", w.purse.posted,
			len(w.purse.holds), w.Running())
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
	if code := codeOf(w.do(t.Context(), body(llmtest.WaitsInside, ""), app)); code != problem.CodeTooManyCalls {
		t.Error(code)
	}
	w.provider.Continue()
	if err := <-done; err != nil || !strings.HasSuffix(app.text.String(), "[DONE]\n\n") {
		t.Error(err)
	}
}

// If an app disconnects while its call is being admitted, the call is counted as cancelled, not as a failure of the
// server.
func TestService_CountsAnAppThatLeavesBeforeAdmission(t *testing.T) {
	w := newWorld(t, credit.USD, Limits{}, func(o *Options) { o.Log = slog.New(errorLog{slog.DiscardHandler, t}) })
	w.add("good")
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if err := w.do(ctx, body("good", ""), newRecorder()); err == nil {
		t.Error("call of an app that disconnected: got no error, want one")
	}
	if row, charged, holds := w.purse.last(); row.Outcome != outcomeCancelled || charged != 0 || holds != 0 {
		t.Errorf("got %+v, charged %d, %d holds left; want a cancelled call without a charge", row, charged, holds)
	}
}

// If the credit covers a call once the calls in flight have ended, the refusal tells the app to try again.
func TestService_AsksToTryAgainIfOtherCallsHoldTheCredit(t *testing.T) {
	w := newWorld(t, 1200, Limits{})
	w.add("good")
	w.purse.holds["another call"] = 1190
	if code := codeOf(w.do(t.Context(), body("good", ""), newRecorder())); code != problem.CodeCreditReserved {
		t.Errorf("call without a maximum that the credit covers in part: got %q, want CodeCreditReserved", code)
	}
	if code := codeOf(w.do(t.Context(), body("good", `,"max_tokens":500`), newRecorder())); code != problem.CodeNoCredit {
		t.Errorf("call that the credit never covers: got %q, want CodeNoCredit", code)
	}
}

// The refusal contains the number of answer tokens that the remainder of a cap covers.
func TestService_NamesTheAnswerThatTheRestOfACapCovers(t *testing.T) {
	w := newWorld(t, credit.USD, Limits{})
	w.add("good")
	for _, c := range []struct {
		used    credit.Amount
		covers  bool
		message string
	}{{1000, true, "does not cover this call"}, {1999, false, "does not cover this call"}, {2000, false, "is reached"}} {
		w.purse.capped = &credit.CapReached{Cap: credit.CapDay, Of: credit.OfProject, Limit: 2000, Used: c.used}
		err := w.do(t.Context(), body("good", ""), newRecorder())
		var refusal *Refusal
		if !errors.As(err, &refusal) || refusal.Code != problem.CodeCapReached || !strings.Contains(refusal.Message,
			c.message) ||
			refusal.Money["affordableOutputTokens"] != nil != c.covers {
			t.Errorf("with %s of the cap used: got %+v, want CodeCapReached", c.used, refusal)
		}
	}
}

// The refusal by the allowance of project keys names what helps, and does not advise to wait if no day's allowance
// covers the call.
func TestService_NamesWhatHelpsOverTheAllowance(t *testing.T) {
	w := newWorld(t, credit.USD, Limits{})
	w.add("good")
	for _, c := range []struct {
		needed, limit, used credit.Amount
		covers              bool
		has, lacks          string
	}{
		{1500, 2000, 1000, true, "output tokens, or wait: the allowance resets at 00:00 UTC", "is used"},
		{1500, 2000, 2000, false, "is used: attest the install at POST /v1/attest/challenge and use the token, or wait:",
			"output tokens"},
		{5000, 2000, 1000, true, "use the token, or request at most", "resets"},
		{5000, 2000, 1999, false, "output tokens when the allowance resets at 00:00 UTC", "or wait"},
		{5000, 0, 0, false, "use the token; the project's owner can raise the allowance", " or "},
	} {
		w.purse.capped = &credit.AttestationRequired{Needed: c.needed, Limit: c.limit, Used: c.used}
		err := w.do(t.Context(), body("good", ""), newRecorder())
		var refusal *Refusal
		if !errors.As(err, &refusal) || refusal.Code != problem.CodeAttestationRequired ||
			!strings.Contains(refusal.Message, c.has) || strings.Contains(refusal.Message, c.lacks) ||
			refusal.Money["affordableOutputTokens"] != nil != c.covers || refusal.Money["needed"] != c.needed {
			t.Errorf("%+v: got %+v, want CodeAttestationRequired", c, refusal)
		}
	}
}

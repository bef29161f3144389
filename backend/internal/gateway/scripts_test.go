package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/backend/internal/credit"
	"github.com/service-dev/service/backend/internal/gateway/wire"
	"github.com/service-dev/service/glasses/assistantscript"
	"github.com/service-dev/service/internal/problem"
)

// slowScript answers questions after a minute and greetings immediately.
type slowScript struct{ script *assistantscript.Script }

func (s slowScript) Script(context.Context, string) (*assistantscript.Script, error) {
	return s.script, nil
}
func (slowScript) LogAssistant(context.Context, string, string, any) {}

// scriptedService returns a service whose sessions have a slowScript. Call it in a synctest bubble.
func scriptedService(t *testing.T) (s *Service, keys *liveKeys) {
	t.Helper()
	script, err := assistantscript.Parse([]byte(`{"rules":[{"when":{"contains":"Hello"},"reply":{"text":"Hi."}},
		{"when":{"always":true},"reply":{"text":"At last.","delayMs":60000}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	keys = &liveKeys{}
	s = New(Options{Purse: newPurse(credit.USD), Keys: keys, Sessions: slowScript{script},
		Catalogue: Catalogue{byID: map[string]*Model{}}, Log: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s, keys
}

const slowQuestion = `{"model":"script","messages":[{"role":"user","content":"How deep is the lake?"}]}`

// ask sends a call to a session's script and returns a channel that receives the error with which the call ends.
func ask(ctx context.Context, s *Service, keys *liveKeys, session, body string) <-chan error {
	keys.live.LoadOrStore(session, true)
	done := make(chan error, 1)
	go func() {
		done <- s.Do(ctx, Caller{Account: "acc", Project: "com.example.app", Key: session, Session: session}, wire.Chat,
			[]byte(body), newRecorder())
	}()
	return done
}

// When a session ends, its waiting answers end immediately, not a minute later.
func TestScript_WaitingAnswerIsCutWhenItsSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, keys := scriptedService(t)
		cut, other := ask(t.Context(), s, keys, "ended", slowQuestion), ask(t.Context(), s, keys, "open", slowQuestion)
		time.Sleep(5 * time.Second)
		if len(cut)+len(other) > 0 {
			t.Fatal("got an answer within 5 s, want both calls still waiting")
		}
		keys.live.Delete("ended")
		ended := time.Now()
		var refusal *Refusal
		if err := <-cut; !errors.As(err, &refusal) || refusal.Code != problem.CodeInvalidKey {
			t.Errorf("call of the ended session: got %v, want CodeInvalidKey", err)
		}
		if took := time.Since(ended); took > time.Second {
			t.Errorf("the call ended %s after its session, want at most 1 s", took)
		}
		if err := <-other; err != nil {
			t.Errorf("call of the open session: got error %v, want none", err)
		}
	})
}

// The waiting answers of one session count neither against other sessions nor against answers without a delay.
func TestScript_BoundsTheWaitingAnswersOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, keys := scriptedService(t)
		left, leave := context.WithCancel(t.Context())
		var waiting []<-chan error
		for range maxScriptCalls - 1 {
			waiting = append(waiting, ask(t.Context(), s, keys, "full", slowQuestion))
		}
		gone := ask(left, s, keys, "full", slowQuestion)
		synctest.Wait()
		refused := func() {
			t.Helper()
			var refusal *Refusal
			if err := <-ask(t.Context(), s, keys, "full", slowQuestion); !errors.As(err, &refusal) ||
				refusal.Code != problem.CodeTooManyCalls || refusal.RetryAfter == 0 {
				t.Errorf("call above the limit: got %v, want CodeTooManyCalls with a retry time", err)
			}
		}
		refused()
		if err := <-ask(t.Context(), s, keys, "full", string(body("script", ""))); err != nil {
			t.Errorf("answer that need not wait: got error %v, want none", err)
		}
		waiting = append(waiting, ask(t.Context(), s, keys, "empty", slowQuestion))
		leave()
		if err := <-gone; err != nil {
			t.Errorf("call of an app that disconnected: got error %v, want none", err)
		}
		waiting = append(waiting, ask(t.Context(), s, keys, "full", slowQuestion)) // takes the place of the call that ended
		synctest.Wait()
		refused()
		for _, done := range waiting {
			if err := <-done; err != nil {
				t.Errorf("call within the limit: got error %v, want none", err)
			}
		}
		if n, _ := s.scripts.Used(); n != 0 {
			t.Errorf("%d waiting calls still counted, want none", n)
		}
	})
}

// The waiting answers of one account, in any number of sessions, leave room for other accounts. They count only as
// waiting answers, not as running calls.
func TestScript_BoundsTheWaitingAnswersOfAnAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, keys := scriptedService(t)
		share := s.Limits.Scripts / s.Limits.Share
		var waiting []<-chan error
		for i := range share {
			waiting = append(waiting, ask(t.Context(), s, keys, fmt.Sprint("session", i/maxScriptCalls), slowQuestion))
		}
		synctest.Wait()
		if running, _ := s.running.Used(); running != 0 || s.Running() != share {
			t.Errorf("%d running and %d unsettled calls, want 0 and %d", running, s.Running(), share)
		}
		var refusal *Refusal
		if err := <-ask(t.Context(), s, keys, "another session", slowQuestion); !errors.As(err, &refusal) ||
			refusal.Code != problem.CodeTooManyCalls {
			t.Errorf("beyond the account's share: got %v, want CodeTooManyCalls", err)
		}
		other := make(chan error, 1)
		keys.live.Store("other", true)
		go func() {
			other <- s.Do(t.Context(), Caller{Account: "other", Key: "other", Session: "other"}, wire.Chat,
				[]byte(slowQuestion), newRecorder())
		}()
		for _, done := range append(waiting, other) {
			if err := <-done; err != nil {
				t.Errorf("within the share: %v", err)
			}
		}
	})
}

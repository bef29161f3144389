package telemetry

import (
	"strings"
	"sync"
	"testing"

	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/consent"
	"github.com/service-dev/service/daemon/internal/identity"
)

// Exactly one of many concurrent calls shows the notice. A call whose client disconnected releases its claim.
func TestNoticeIsToldOnce(t *testing.T) {
	w := newWorld(t)
	for _, quiet := range []string{"SERVICE_TELEMETRY=0", "DO_NOT_TRACK=1", "CI=1"} {
		if _, _, ok := w.Take(shell(quiet)); ok {
			t.Errorf("the notice was shown although %s is set", quiet)
		}
	}
	var wg sync.WaitGroup
	claims := make(chan func(bool), 10)
	for range 10 {
		wg.Go(func() {
			if text, done, ok := w.Take(shell()); ok {
				for _, says := range []string{"Usage telemetry is on", "decline-privacy", "SERVICE_TELEMETRY=0",
					"DO_NOT_TRACK=1"} {
					if !strings.Contains(strings.ToLower(text), strings.ToLower(says)) {
						t.Errorf("the notice does not say %s: %s", says, text)
					}
				}
				claims <- done
			}
		})
	}
	wg.Wait()
	if len(claims) != 1 {
		t.Fatalf("%d calls got the notice, want 1", len(claims))
	}
	(<-claims)(false)
	if !w.install.NoticeShownAt(identity.Agents).IsZero() {
		t.Error("the notice counts as shown although no response was sent")
	}
	_, done, ok := w.Take(shell())
	if !ok {
		t.Fatal("the claim on the notice was not released")
	}
	done(true)
	if _, _, ok := w.again().Take(shell()); ok || w.install.NoticeShownAt(identity.Agents).IsZero() {
		t.Error("the notice was shown twice")
	}
}

// A command on a terminal also shows the notice, and agents still get it. Either of the two permits uploads.
func TestNoticeForAgentsAndTerminals(t *testing.T) {
	type take = func(*Recorder, caller.Caller) (string, func(bool), bool)
	for name, order := range map[string][2]take{
		"terminal first": {(*Recorder).TakeForTerminal, (*Recorder).Take},
		"agent first":    {(*Recorder).Take, (*Recorder).TakeForTerminal},
	} {
		w := newWorld(t)
		first, second := order[0], order[1]
		_, done, ok := first(w.Recorder, shell())
		if !ok {
			t.Fatalf("%s: no notice", name)
		}
		if allowed, by := w.Gate(shell()); allowed || by != ByNotice {
			t.Errorf("%s: before the answer was written: allowed %v by %s", name, allowed, by)
		}
		done(true)
		if allowed, _ := w.Gate(shell()); !allowed || w.Status(shell()).NoticeAt.IsZero() {
			t.Errorf("%s: no upload although the person was told", name)
		}
		told := w.Status(shell()).NoticeAt
		_, done, ok = second(w.again(), shell())
		if !ok {
			t.Fatalf("%s: the other audience got no notice", name)
		}
		done(true)
		if at := w.Status(shell()).NoticeAt; !at.Equal(told) {
			t.Errorf("%s: told at %v, then at %v; want the first time", name, told, at)
		}
		for _, again := range order {
			if _, _, ok := again(w.again(), shell()); ok {
				t.Errorf("%s: an audience got the notice twice", name)
			}
		}
	}
}

func TestDecisionMakesTheNoticeUnnecessary(t *testing.T) {
	for _, state := range []consent.State{consent.Accepted, consent.Declined} {
		w := newWorld(t)
		if err := w.consent.Set(state); err != nil {
			t.Fatal(err)
		}
		if _, _, ok := w.Take(shell()); ok {
			t.Error(state)
		}
	}
}

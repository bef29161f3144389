package tools

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-dev/service/daemon/internal/link"
	"github.com/service-dev/service/internal/problem"
)

func TestElicit_ContinuesAfterApproval(t *testing.T) {
	w := newWorld()
	asked := ""
	io := IO{Elicit: func(_ context.Context, message, url string) (bool, error) {
		asked = message + " " + url
		return true, nil
	}}
	_, fields := w.call(t, "createSimulatorSession", `{"openBrowser":false}`, io)
	if fields["status"] != "active" || !strings.Contains(asked, testUser) || !strings.Contains(asked, testURL) {
		t.Errorf("asked %q, answered %v; want the code, the page and an active session", asked, fields)
	}
	if w.wait.Max > 50*time.Second || w.wait.Max < 49*time.Second || len(w.browsed) != 0 {
		t.Errorf("a call without progress waits %v, opened %v; want 50 s and no page", w.wait.Max, w.browsed)
	}

	w = newWorld()
	io.Progress = func(float64, float64, string) {}
	w.call(t, "createSimulatorSession", `{}`, io)
	if w.wait.Max > 600*time.Second || w.wait.Max < 599*time.Second {
		t.Errorf("a call with progress waits %v, want 600 s", w.wait.Max)
	}
}

func TestElicit_WithoutALink(t *testing.T) {
	for name, elicit := range map[string]func() (bool, error){
		"declined":  func() (bool, error) { return false, nil },
		"broken":    func() (bool, error) { return false, errors.New("no answer") },
		"timed out": func() (bool, error) { return true, nil },
	} {
		w := newWorld()
		w.complete = func(context.Context, link.Wait) error {
			return &problem.Error{Code: problem.CodeAuthTimeout, Message: "nobody approved", Retryable: true}
		}
		result, fields := w.call(t, "createSimulatorSession", `{}`,
			IO{Elicit: func(context.Context, string, string) (bool, error) { return elicit() }})
		if result.IsError || fields["status"] != "auth_required" {
			t.Errorf("%s: %v", name, fields)
		}
		if opened := len(w.browsed) == 1; opened != (name == "broken") {
			t.Errorf("%s: opened %v", name, w.browsed)
		}
	}
	w := newWorld()
	result, _ := w.call(t, "createSimulatorSession", `{}`,
		IO{Elicit: func(context.Context, string, string) (bool, error) { return false, ErrDeferred }})
	if result.Outcome != OutcomeDeferred || len(w.browsed) != 0 {
		t.Errorf("deferred: %+v", result)
	}
}

// A page that the client opened, or that the user declined to open, is not opened by the daemon afterwards.
func TestElicit_DecidesAboutThePage(t *testing.T) {
	for name, test := range map[string]struct {
		agreed bool
		err    error
		want   int
	}{"agreed": {true, nil, 0}, "declined": {false, nil, 0}, "deferred": {false, ErrDeferred, 1}} {
		w := newWorld()
		w.complete = func(context.Context, link.Wait) error {
			return &problem.Error{Code: problem.CodeAuthTimeout, Message: "nobody approved", Retryable: true}
		}
		w.call(t, "createSimulatorSession", `{}`,
			IO{Elicit: func(context.Context, string, string) (bool, error) { return test.agreed, test.err }})
		w.call(t, "completeAuthLink", `{"deviceCode":"`+testDevice+`"}`, IO{})
		if len(w.browsed) != test.want {
			t.Errorf("%s: opened %v, want %d pages", name, w.browsed, test.want)
		}
	}
}

func TestElicit_WithoutAnAnswer(t *testing.T) {
	silent := func(ctx context.Context, _, _ string) (bool, error) {
		<-ctx.Done()
		return false, ctx.Err()
	}
	for _, test := range []struct {
		name     string
		progress bool
		takes    time.Duration
		beats    int
	}{{"without progress", false, 50 * time.Second, 0}, {"with progress", true, 600 * time.Second, 59}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			beats, last := 0, -1.0
			io := IO{Elicit: silent}
			if test.progress {
				io.Progress = func(done, _ float64, _ string) {
					if beats++; done <= last {
						t.Errorf("%s: progress %v after %v, want it to grow", test.name, done, last)
					}
					last = done
				}
			}
			start := time.Now()
			result, fields := w.call(t, "createSimulatorSession", `{}`, io)
			if took := time.Since(start); took != test.takes || beats < test.beats {
				t.Errorf("%s: took %v with %d progress reports", test.name, took, beats)
			}
			if result.IsError || fields["status"] != "auth_required" || len(w.browsed) != 0 {
				t.Errorf("%s: %v, opened %v; want auth_required and no page", test.name, fields, w.browsed)
			}
		})
	}
}

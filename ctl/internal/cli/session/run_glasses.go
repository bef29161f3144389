package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/internal/problem"
)

// realDevice is the transport of real glasses.
const realDevice = "realdevice"

// Intervals between checks of glasses that are not connected. The interval doubles from the first value to the second.
const (
	firstLook = 500 * time.Millisecond
	lastLook  = 4 * time.Second
)

// followGlasses reports why real glasses are not connected to the run's session. It reports each change of the reason
// until the glasses are connected or stop is called. stop checks once more, so that the reason is reported even if
// the app exits immediately.
func (r *scenarioRun) followGlasses(ctx context.Context) (stop func()) {
	if r.transport != realDevice {
		return func() {}
	}
	f := &glassesFollower{run: r}
	following, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for wait := firstLook; f.look(following); wait = min(2*wait, lastLook) {
			select {
			case <-time.After(wait):
			case <-following.Done():
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		cancel()
		<-done
		if ctx.Err() == nil && !f.isConnected {
			f.look(ctx)
		}
	})
}

// glassesRunWait is the maximum time that the run of a scenario waits for real glasses.
const glassesRunWait = 30 * time.Second

// awaitGlasses waits until the real glasses of a scenario's run are connected, so that the app finds them connected
// like simulated glasses. While it waits, it reports why they are not connected, like followGlasses. If the output is
// for a program, only the error contains the reason.
func (r *scenarioRun) awaitGlasses(ctx context.Context) error {
	if r.transport != realDevice {
		return nil
	}
	f, late := &glassesFollower{run: r, isQuiet: r.program.PrintsJSON}, time.Now().Add(glassesRunWait)
	for wait := firstLook; f.look(ctx); wait = min(2*wait, lastLook) {
		left := time.Until(late)
		if left <= 0 {
			return f.problem()
		}
		select {
		case <-time.After(min(wait, left)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return context.Cause(ctx)
}

// glassesFollower tracks the latest report about the glasses of a run.
type glassesFollower struct {
	run         *scenarioRun
	said        string
	now         client.GlassesState
	isConnected bool
	isQuiet     bool // check the glasses without printing
}

// problem returns the error for glasses that were not connected in time.
func (f *glassesFollower) problem() error {
	e := &problem.Error{Code: problem.CodeNotConnected, Retryable: true,
		Message: fmt.Sprintf("the glasses were not connected within %s", glassesRunWait),
		FixHint: "Take them out of their case, close to this computer, and run it again."}
	if p := f.now.Problem; p != nil {
		e.Message, e.FixHint = e.Message+": "+p.Message, p.FixHint+" Then run it again."
	}
	return e
}

// look reports changes since the last call, and reports whether the glasses must be checked again.
func (f *glassesFollower) look(ctx context.Context) bool {
	var answer struct {
		Session struct{ Glasses json.RawMessage }
	}
	args := map[string]any{"sessionId": f.run.opened.SessionID}
	if _, err := command.CallTool(ctx, f.run.client, "getSessionStatus", args, &answer); err != nil {
		return ctx.Err() == nil // the run itself reports that its session has ended
	}
	var now client.GlassesState
	if json.Unmarshal(answer.Session.Glasses, &now) != nil || len(now.Links) == 0 {
		return true // the state is not known yet
	}
	f.isConnected = !slices.ContainsFunc(now.Links, func(l client.GlassesLink) bool { return l.State != "up" })
	f.now = now
	if text := fmt.Sprint(f.isConnected, now.URL, now.Problem); text != f.said && !f.isQuiet {
		f.said = text
		f.run.program.sayGlasses(f.run.opened.SessionID, f.isConnected, now, answer.Session.Glasses)
	}
	return !f.isConnected
}

// sayGlasses prints the state of a run's glasses: the full result for a program, the next step for a user.
func (p *program) sayGlasses(session string, isConnected bool, now client.GlassesState, full json.RawMessage) {
	switch {
	case p.PrintsJSON:
		_ = p.Line(map[string]any{"sessionId": session, "glasses": full}) // the run continues without output
	case isConnected:
		p.RunGlassesConnected(now.Name)
	case now.URL != "":
		p.GlassesPage(now.URL, now.Steps)
	case now.Problem != nil:
		p.RunGlassesMissing(now.Problem.Message, now.Problem.FixHint)
	}
}

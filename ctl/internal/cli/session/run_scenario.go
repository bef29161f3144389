package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/glasses/scenario"
	"github.com/service-dev/service/internal/problem"
)

// attachHint is the next step for an app that does not attach.
const attachHint = "Let the app attach to SERVICE_GLASSES_URL with the secret in the file " +
	"SERVICE_GLASSES_SECRET_FILE, and stay."

// attachWait is the maximum time for an app to attach.
const attachWait = 30 * time.Second

// scenarioRun is the run of one scenario on one session.
type scenarioRun struct {
	program *program
	client  *client.Client
	options reportOptions
	project string
	// transport is the name of the session's transport; empty for the default.
	transport string
	command   []string // the app's command; empty to use the scenario's

	file     string // absolute path of the scenario
	scenario scenario.Scenario
	opened   localSession
	output   *outputTail // the app's output; nil before the app starts
	left     string      // how the app exited, if it exited early without failing; otherwise ""

	endSession func() // makes the daemon close the session
}

// localSession is the result of startLocalSimulation.
type localSession struct {
	SessionID, DeviceModel, AppEndpoint, AppTokenFile string
}

// do opens the session, starts the app and runs the steps. When it returns, the app has exited and the session is
// closed.
func (r *scenarioRun) do(ctx context.Context) (*report, error) {
	if len(r.command) == 0 && (r.scenario.App == nil || len(r.scenario.App.Command) == 0) {
		return nil, &problem.Error{Code: problem.CodeNoApp, Message: "the scenario specifies no app",
			FixHint: "Add the app's command after --, or \"app\":{\"command\":[...]} to the scenario."}
	}
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	defer r.close(ctx)
	if err := r.awaitGlasses(ctx); err != nil {
		return nil, err
	}
	child, err := r.startApp()
	if err != nil {
		return nil, err
	}
	defer child.end()
	if err := r.awaitApp(ctx, child); err != nil {
		return nil, err
	}
	report, err := replay(ctx, r.client, r.file, r.options)
	left := child.ended()
	child.end() // end the app now, because the report includes its last output
	if err != nil {
		return nil, err
	}
	report.output = r.output.String()
	switch {
	case left && (child.failed() || report.AppLeft != ""):
		report.appFailed(child.how())
	case left:
		r.left = child.how()
	}
	return report, nil
}

func (r *scenarioRun) start(ctx context.Context) error {
	args := map[string]any{"fresh": true, "clock": "virtual"}
	if r.scenario.Clock != "" {
		args["clock"] = r.scenario.Clock
	}
	model := cmp.Or(r.options.model, r.scenario.DeviceModel)
	for name, value := range map[string]string{"deviceModel": model, "project": r.project,
		"transport": r.transport, "fixturesDir": r.beside(r.scenario.FixturesDir), "assistantScript": r.script()} {
		if value != "" {
			args[name] = value
		}
	}
	text, err := json.Marshal(args)
	if err != nil {
		return err
	}
	answer, end, err := r.client.OpenLocalSession(ctx, string(text))
	if err != nil {
		return err
	}
	if _, err := command.DecodeResult("startLocalSimulation", answer, &r.opened); err != nil {
		end()
		return err
	}
	r.endSession, r.options.session = end, r.opened.SessionID
	if err := reachApps(ctx, r.opened.AppEndpoint); err != nil {
		r.close(ctx)
		return err
	}
	return nil
}

// script returns the path of the scenario if it contains a script for the app's assistant.
func (r *scenarioRun) script() string {
	if r.scenario.Assistant == nil {
		return ""
	}
	return r.file
}

// beside resolves a path relative to the scenario's directory. It returns "" for an empty path.
func (r *scenarioRun) beside(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(r.file), path)
}

// close closes the session, even after Ctrl-C.
func (r *scenarioRun) close(ctx context.Context) {
	defer r.endSession()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	var closed struct{}
	if _, err := command.CallTool(ctx, r.client, "closeSession", map[string]any{"sessionId": r.opened.SessionID},
		&closed); err != nil {
		r.program.Remark("failed to close the session: %v", err)
	}
}

// awaitApp waits until the app has attached. It fails immediately if the app exits.
func (r *scenarioRun) awaitApp(ctx context.Context, child *child) error {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	gone := errors.New("the app exited before it attached")
	watched := make(chan struct{})
	go func() { // ends with the app or the wait; awaitApp waits for it
		defer close(watched)
		select {
		case <-child.done:
			cancel(gone)
		case <-waiting.Done():
		}
	}()
	var answer struct{ Status string }
	_, err := command.CallTool(waiting, r.client, "waitForEvent", map[string]any{
		"sessionId": r.opened.SessionID, "type": "app.attached", "since": 0, "timeoutSeconds": int(attachWait.Seconds()),
	}, &answer)
	ended := errors.Is(context.Cause(waiting), gone)
	cancel(nil)
	<-watched
	switch {
	case err == nil && answer.Status == "found":
		return nil
	case ended:
		return &problem.Error{Code: problem.CodeNoApp, Message: fmt.Sprintf("%v (%s)", gone, child.how()),
			FixHint: attachHint}
	case err != nil:
		return err
	}
	return &problem.Error{Code: problem.CodeNoApp, Message: fmt.Sprintf("the app did not attach within %s", attachWait),
		FixHint: attachHint}
}

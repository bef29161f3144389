package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/junit"
	"github.com/service-dev/service/proto/glasses/scenario"
)

// Codes of runs that could not be made.
const (
	codeInvalidScenario = "invalid_scenario"
	codeNoApp           = "no_app"
)

// attachHint is the next step for an app that does not attach.
const attachHint = "the app must attach to SERVICE_GLASSES_URL with the secret in the file " +
	"SERVICE_GLASSES_SECRET_FILE, and stay"

// attachWait is how long an app may take to attach.
const attachWait = 30 * time.Second

func (a *app) sessionRun() *cobra.Command {
	var o reportOptions
	var project string
	cmd := &cobra.Command{
		Use: "run FILE [-- COMMAND...]", Short: "Run a scenario headless: session, app, steps, report",
		Args: cobra.MinimumNArgs(1),
		Long: "Opens a local session (in virtual time unless the scenario says real), starts the app, runs the steps, " +
			"prints the report, ends the\n" +
			"app and closes the session. The app is COMMAND, else app.command of the scenario; it gets SERVICE_GLASSES_URL,\n" +
			"SERVICE_GLASSES_SECRET_FILE and SERVICE_GLASSES_TRANSPORT. Needs no account, network or window.\n" +
			"Exit code: 0 passed, 1 failed, 2 could not be run.",
		Example: "  servicectl session run scenario.json --junit report.xml -- node app.js",
		RunE: func(cmd *cobra.Command, args []string) error {
			if at := cmd.ArgsLenAtDash(); at > 1 || at < 0 && len(args) > 1 {
				return errors.New("one FILE, then -- and the command of the app")
			}
			run := scenarioRun{app: a, options: o, project: project, command: args[1:]}
			err := run.do(cmd.Context(), args[0])
			run.note(err)
			return err
		},
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&project, "project", "", "app id of the session (default: that of the directory)")
	return cmd
}

// scenarioRun is one `session run`.
type scenarioRun struct {
	app     *app
	options reportOptions
	project string
	command []string

	file     string // of the scenario, absolute
	scenario scenario.Scenario
	opened   localSession
	client   *client.Client
	output   *outputTail
	reported bool

	endSession func() // lets the daemon close the session
}

// localSession is what startLocalSimulation answers.
type localSession struct {
	SessionID, AppEndpoint, AppTokenFile string
}

func (r *scenarioRun) do(ctx context.Context, file string) error {
	if err := r.load(file); err != nil {
		return err
	}
	c, err := r.app.open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	r.client = c
	if err := r.start(ctx); err != nil {
		return err
	}
	defer r.close(ctx)
	child, err := r.startApp()
	if err != nil {
		return err
	}
	defer child.end()
	if err := r.awaitApp(ctx, child); err != nil {
		r.app.AppOutput(r.output.String())
		return err
	}
	report, err := replay(ctx, c, r.file, r.options)
	left := child.ended()
	child.end() // its last words belong to the report
	if err != nil {
		r.app.AppOutput(r.output.String())
		return err
	}
	report.output = r.output.String()
	if report.Verdict != "pass" {
		if left {
			r.app.Remark("the app ended before the run did (%s)", child.how())
		}
		r.app.AppOutput(report.output)
	}
	r.reported = true
	return r.app.printReport(report, r.options)
}

// load reads the scenario. A folder is a recording.
func (r *scenarioRun) load(file string) error {
	path, err := absolute(file)
	if err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "scenario.json")
	}
	invalid := func(err error) error {
		return &client.Error{Code: codeInvalidScenario, Message: fmt.Sprintf("reading %s: %v", path, err),
			FixHint: "`servicectl tool call searchDocs --arg query=\"scenario files\"` tells the format"}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return invalid(err)
	}
	if r.scenario, err = scenario.Parse(data); err != nil {
		return invalid(err)
	}
	r.file = path
	if len(r.command) == 0 && (r.scenario.App == nil || len(r.scenario.App.Command) == 0) {
		return &client.Error{Code: codeNoApp, Message: "the scenario names no app",
			FixHint: "add the app's command after --, or \"app\":{\"command\":[...]} to the scenario"}
	}
	return nil
}

func (r *scenarioRun) start(ctx context.Context) error {
	args := map[string]any{"fresh": true, "clock": "virtual"}
	if r.scenario.Clock != "" {
		args["clock"] = r.scenario.Clock
	}
	for name, value := range map[string]string{"deviceModel": r.scenario.DeviceModel, "project": r.project,
		"fixturesDir": r.beside(r.scenario.FixturesDir)} {
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
	if _, err := decodeResult("startLocalSimulation", answer, &r.opened); err != nil {
		end()
		return err
	}
	r.endSession, r.options.session = end, r.opened.SessionID
	return nil
}

// beside resolves a path relative to the scenario's folder. An empty path stays empty.
func (r *scenarioRun) beside(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(r.file), path)
}

// close ends the session, also after Ctrl-C.
func (r *scenarioRun) close(ctx context.Context) {
	defer r.endSession()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	var closed struct{}
	if _, err := ask(ctx, r.client, "closeSession", map[string]any{"sessionId": r.opened.SessionID}, &closed); err != nil {
		r.app.Remark("closing the session: %v", err)
	}
}

// awaitApp waits until the app has attached and fails as soon as the app ends.
func (r *scenarioRun) awaitApp(ctx context.Context, child *child) error {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	gone := errors.New("the app ended before it attached")
	watched := make(chan struct{})
	go func() { // ends with the app or with the wait; awaitApp waits for it
		defer close(watched)
		select {
		case <-child.done:
			cancel(gone)
		case <-waiting.Done():
		}
	}()
	var answer struct{ Status string }
	_, err := ask(waiting, r.client, "waitForEvent", map[string]any{
		"sessionId": r.opened.SessionID, "type": "app.attached", "since": 0, "timeoutSeconds": int(attachWait.Seconds()),
	}, &answer)
	ended := errors.Is(context.Cause(waiting), gone)
	cancel(nil)
	<-watched
	switch {
	case err == nil && answer.Status == "found":
		return nil
	case ended:
		return &client.Error{Code: codeNoApp, Message: fmt.Sprintf("%v (%s)", gone, child.how()),
			FixHint: attachHint}
	case err != nil:
		return err
	}
	return &client.Error{Code: codeNoApp, Message: fmt.Sprintf("the app did not attach within %s", attachWait),
		FixHint: attachHint}
}

// note writes a JUnit file for a run that could not be made, so that CI shows the reason.
func (r *scenarioRun) note(err error) {
	if err == nil || r.reported || r.options.junit == "" {
		return
	}
	suite := junit.Suite{Name: r.scenario.Name, Error: problemOf(err).Message}
	if suite.Name == "" {
		suite.Name = "scenario"
	}
	if r.output != nil {
		suite.Output = r.output.String()
	}
	if err := os.WriteFile(r.options.junit, junit.Encode(suite), 0o644); err != nil {
		r.app.Remark("writing the JUnit report: %v", err)
	}
}

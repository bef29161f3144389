package session

import (
	"context"

	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/glasses/scenario"
)

// runApp runs a command as an app on its own session until the command exits. Meanwhile steps can run on the session,
// because it is the most recently used one of this directory.
func (p *program) runApp(ctx context.Context, o runOptions, appCommand []string) error {
	c, err := p.OpenClient(ctx)
	if err != nil {
		return err
	}
	defer p.CloseClient(c)
	run := scenarioRun{program: p, client: c, options: o.reportOptions, project: o.project,
		transport: o.transport, command: appCommand,
		scenario: scenario.Scenario{Clock: o.clock}, output: &outputTail{also: term.Stream(p.Err)}}
	if o.clock == "" {
		run.scenario.Clock = "real"
	}
	run.options.model = command.FirstArg(o.models)
	if err := run.start(ctx); err != nil {
		return err
	}
	closed := false
	end := func() {
		if !closed {
			closed = true
			run.close(ctx)
		}
	}
	defer end()
	child, err := run.startApp()
	if err != nil {
		return err
	}
	defer child.end()
	if p.PrintsJSON {
		if err := p.Line(map[string]any{"sessionId": run.opened.SessionID, "deviceModel": run.opened.DeviceModel,
			"clock": run.scenario.Clock, "appEndpoint": run.opened.AppEndpoint}); err != nil {
			return err
		}
	} else if !o.quiet {
		p.AppRuns(run.opened.SessionID, run.opened.DeviceModel, run.scenario.Clock)
	}
	stop := run.followGlasses(ctx)
	defer stop()
	select {
	case <-ctx.Done():
		return context.Canceled
	case <-child.done:
	}
	stop()
	end()
	if !o.quiet {
		p.AppEnded(child.how())
	}
	if child.failed() {
		return command.ExitNo
	}
	return nil
}

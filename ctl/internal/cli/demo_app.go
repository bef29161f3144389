package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/procgroup"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/internal/mcpclient"
	"github.com/service-dev/service/internal/programpath"
)

// demoApp runs the example app on the session until Ctrl-C, or until the app or the daemon exits.
func (a *app) demoApp(ctx context.Context, agent *mcpclient.Client, s simulatorSession) error {
	path, err := programpath.Beside("hello-glasses")
	if err != nil {
		return err
	}
	servicectl, err := programpath.Beside("servicectl")
	if err != nil {
		return err
	}
	a.DemoSimulator(s.SessionURL, s.Status)
	if _, err := os.Stat(path); err != nil {
		a.DemoNoApp(path)
		a.DemoAttach(servicectl)
		return stay(ctx, agent.Done(), nil)
	}
	cmd := exec.CommandContext(ctx, path, "-endpoint", s.AppEndpoint, "-token-file", s.AppTokenFile)
	out := term.Stream(a.Err)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	procgroup.EndWithParent(cmd)
	if err := cmd.Start(); ctx.Err() != nil {
		return nil
	} else if err != nil {
		return fmt.Errorf("start the example app: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	a.DemoApp(path)
	a.DemoAttach(servicectl)
	err = stay(ctx, agent.Done(), ended)
	if ctx.Err() != nil {
		<-ended //nolint:errcheck // Ctrl-C reached it too, so its exit code does not matter
	} else if err != nil {
		_ = cmd.Process.Kill()
	}
	return err
}

// stay waits for Ctrl-C, which is the normal end of the demo.
func stay(ctx context.Context, agent <-chan struct{}, app <-chan error) error {
	select {
	case <-ctx.Done():
		return nil
	case <-agent:
		return errors.New("service-mcp exited unexpectedly")
	case err := <-app:
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			return errors.New("the example app exited unexpectedly")
		}
		return fmt.Errorf("run the example app: %w", err)
	}
}

// endDemo stops the demo's daemon, even after Ctrl-C.
func (a *app) endDemo(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	c, err := client.Open(ctx, client.Options{Program: a.Name, Running: true, AnyProtocol: true})
	if err != nil {
		return // no daemon to stop
	}
	defer c.Close()
	if pid, err := c.Stop(ctx); err == nil {
		err = awaitGone(ctx, c.Daemon, pid)
		if err == nil {
			a.DemoEnd()
			return
		}
	}
	a.Remark("failed to stop the demo's daemon: it does not respond")
}

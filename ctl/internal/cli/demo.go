package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/procgroup"
	"github.com/service-dev/service/internal/mcpclient"
	"github.com/service-dev/service/internal/programpath"
)

// demoProject is the app ID of the demo's simulator session.
const demoProject = "com.example.hello"

func (a *app) demo() *cobra.Command {
	var dir string
	cmd := command.New("demo", "Walk through the main workflow as an agent would",
		"Runs a daemon in a new directory, links an account, opens a simulator and runs an example app on it.\n"+
			"Runs until Ctrl-C and leaves only that directory behind.",
		func(ctx context.Context) error { return a.runDemo(ctx, dir) })
	cmd.Flags().StringVar(&dir, "dir", "./.run", "the state directory")
	return cmd
}

// simulatorSession is the result of createSimulatorSession; its status is auth_required, active or resumed.
type simulatorSession struct {
	Status          string `json:"status"`
	DeviceCode      string `json:"deviceCode"`
	UserCode        string `json:"userCode"`
	VerificationURL string `json:"verificationUrl"`
	ExpiresIn       int    `json:"expiresInSeconds"`
	SignInWord      string `json:"signInWord"`

	SessionID    string `json:"sessionId"`
	SessionURL   string `json:"sessionUrl"`
	AppEndpoint  string `json:"appEndpoint"`
	AppTokenFile string `json:"appTokenFile"`
	DeviceModel  string `json:"deviceModel"`
}

// linkedResult is the result of completeAuthLink.
type linkedResult struct {
	Linked    bool            `json:"linked"`
	AccountID string          `json:"accountId"`
	Retried   json.RawMessage `json:"retried"`
}

func (a *app) runDemo(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create the demo's directory: %w", err)
	}
	if err := os.Setenv("SERVICE_CONFIG_DIR", dir); err != nil {
		return err
	}
	shim, err := programpath.Beside("service-mcp")
	if err != nil {
		return err
	}
	a.DemoIntro(dir, shim)
	defer a.endDemo(ctx)
	cmd := exec.Command(shim) //nolint:noctx // it exits when its input closes
	cmd.Stderr = a.Err
	procgroup.Separate(cmd) // Ctrl-C at the terminal must not end it
	agent, err := mcpclient.Start(ctx, cmd, mcpclient.Options{Name: "servicectl-demo"})
	if err != nil {
		return err
	}
	defer func() { _ = agent.Close(5 * time.Second) }()
	s, err := a.demoSession(ctx, agent)
	if err != nil {
		return err
	}
	return a.demoApp(ctx, agent, s)
}

// demoSession creates a simulator session, after linking an account if none is linked.
func (a *app) demoSession(ctx context.Context, agent *mcpclient.Client) (simulatorSession, error) {
	s, err := createSession(ctx, agent)
	if err != nil || s.Status != "auth_required" {
		return s, err
	}
	a.DemoCode(s.UserCode, s.VerificationURL, max(s.ExpiresIn, 0), s.SignInWord)
	stop := a.Countdown(time.Duration(s.ExpiresIn) * time.Second)
	var linked linkedResult
	err = callTool(ctx, agent, "completeAuthLink", map[string]any{"deviceCode": s.DeviceCode}, &linked,
		a.demoProgress(s.ExpiresIn))
	stop()
	if err != nil {
		return s, loginError(err)
	}
	a.DemoLinked(linked.AccountID)
	var retried simulatorSession
	if json.Unmarshal(linked.Retried, &retried) == nil && retried.SessionURL != "" {
		return retried, nil
	}
	return createSession(ctx, agent)
}

func createSession(ctx context.Context, agent *mcpclient.Client) (simulatorSession, error) {
	var s simulatorSession
	err := callTool(ctx, agent, "createSimulatorSession", map[string]any{"project": demoProject}, &s, nil)
	return s, err
}

// demoProgress prints the remaining time about twice a minute if no live countdown is shown.
func (a *app) demoProgress(seconds int) func(mcpclient.Progress) {
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	var refused time.Time
	return func(mcpclient.Progress) {
		if a.Moves || time.Since(refused) < 30*time.Second {
			return
		}
		refused = time.Now()
		a.DemoWaiting(time.Until(end))
	}
}

// callTool calls a tool and decodes its result. If the tool fails, the error contains the next step.
func callTool(ctx context.Context, agent *mcpclient.Client, name string, args, into any,
	progress func(mcpclient.Progress)) error {
	r, err := agent.Call(ctx, name, args, progress)
	if err != nil {
		if ctx.Err() != nil {
			return context.Canceled
		}
		return fmt.Errorf("call %s: %w", name, err)
	}
	if r.IsError {
		return command.ToolError(name, r.Structured)
	}
	if err := json.Unmarshal(r.Structured, into); err != nil {
		return fmt.Errorf("read the result of %s: %w", name, err)
	}
	return nil
}

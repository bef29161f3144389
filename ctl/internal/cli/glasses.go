package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/glasses/uncleared"
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/proto/control"
)

// Default and maximum values of the flags --seconds and --timeout.
const (
	glassesScan    = 10
	glassesWait    = 20
	maxGlassesTime = 60
)

func (a *app) glasses() *cobra.Command {
	disconnect := &cobra.Command{
		Use: "disconnect", Short: "Close this directory's session of real glasses", Args: cobra.NoArgs,
		Long: "Clears the glasses and frees them. The session's log is deleted.",
		RunE: a.RunWithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			ids, err := c.DisconnectGlasses(ctx)
			if err != nil {
				return err
			}
			return a.Print(map[string]any{"sessionIds": append([]string{}, ids...)}, func() { a.GlassesDisconnected(ids) })
		}),
	}
	return command.Group("glasses", "Connect real glasses over Bluetooth",
		"Finds real glasses with this computer's Bluetooth and connects them to a local session. No account is needed.",
		a.glassesList(), a.glassesConnect(), a.glassesCheck(), a.glassesBench(), disconnect,
		a.glassesForget(), a.glassesConformance())
}

func (a *app) glassesList() *cobra.Command {
	var seconds int
	var known bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the remembered glasses and those in range", Args: cobra.NoArgs,
		Long: "Searches for glasses in range, unless you pass --known.\n" +
			"Exit code: 0 listed, 1 Bluetooth cannot be used until you change something, 2 it failed otherwise.",
		RunE: a.RunWithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			if err := checkSeconds("--seconds", seconds); err != nil {
				return err
			}
			if known {
				seconds = 0
			}
			done := a.countdown("looking for glasses", seconds)
			list, err := c.Glasses(ctx, seconds)
			done()
			var problem *problem.Error
			if err != nil && !errors.As(err, &problem) {
				return err
			}
			if a.PrintsJSON {
				out := map[string]any{"glasses": glassesOf(list), "looked": !known && err == nil}
				if err != nil {
					out["error"] = command.ProblemOf(err)
				}
				return errors.Join(a.JSON(out), outcomeOf(err))
			}
			if err == nil || len(list) > 0 {
				a.showGlasses(list, !known && err == nil)
			}
			return err
		}),
	}
	cmd.Flags().IntVar(&seconds, "seconds", glassesScan, "how many seconds to search, from 1 to 60")
	cmd.Flags().BoolVar(&known, "known", false, "list only the remembered glasses")
	return cmd
}

// outcomeOf returns the exit code for an error that was already printed.
func outcomeOf(err error) error {
	if err == nil {
		return nil
	}
	return exitOf(command.ProblemOf(err).Code)
}

func checkSeconds(flag string, seconds int) error {
	if seconds < 1 || seconds > maxGlassesTime {
		return fmt.Errorf("%[1]s must be from 1 to %[3]d, not %[2]d", flag, seconds, maxGlassesTime)
	}
	return nil
}

// countdown shows what the command is doing, and for how long, on a terminal that can overwrite lines. The
// returned function stops the countdown and waits until it has stopped.
func (a *app) countdown(doing string, seconds int) (done func()) {
	if a.PrintsJSON || !a.Moves || seconds == 0 {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	begin := time.Now()
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			a.RunProgress(fmt.Sprintf("%s, %d of %d s", doing, min(seconds, int(time.Since(begin).Seconds())), seconds))
			select {
			case <-tick.C:
			case <-stop:
				a.RunProgress("")
				return
			}
		}
	}()
	return func() { close(stop); <-stopped }
}

// glassesOf returns what is printed of each pair as JSON.
func glassesOf(list []client.Glasses) []control.Glasses {
	out := make([]control.Glasses, 0, len(list))
	for _, g := range list {
		out = append(out, g.Glasses)
	}
	return out
}

func (a *app) showGlasses(list []client.Glasses, looked bool) {
	rows := make([]term.Glasses, 0, len(list))
	for _, g := range list {
		row := term.Glasses{
			Name: g.Name, Model: g.DeviceModel, UsedMs: g.UsedMs, Session: g.SessionID,
		}
		for _, p := range g.Parts {
			arm := term.Arm{Key: p.Key, State: "missing", Signal: p.RSSI}
			if p.Found {
				arm.State = "found"
			}
			row.Arms = append(row.Arms, arm)
		}
		rows = append(rows, row)
	}
	a.Glasses(rows, looked, time.Now())
	a.Needs(unclearedNeeds(list))
}

// unclearedNeeds returns the next steps for glasses that may still show a picture of an earlier session.
func unclearedNeeds(list []client.Glasses) (needs []term.Need) {
	for _, g := range list {
		if g.Uncleared {
			needs = append(needs, term.Need{What: uncleared.Notice(g.Name), Next: uncleared.Next})
		}
	}
	return needs
}

// connectedGlasses is the result of connectRealDevice.
type connectedGlasses struct {
	Status, SessionID, DeviceModel, AppEndpoint, AppTokenFile string

	Glasses client.GlassesState
}

func (a *app) glassesConnect() *cobra.Command {
	var model, via string
	var timeout int
	var yes bool
	cmd := &cobra.Command{
		Use: "connect [NAME]", Short: "Connect glasses to a session of this directory", Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: a.Complete(knownGlasses),
		Long: "NAME is a name from `glasses list`. Without it, the command uses the most recently used glasses, or the\n" +
			"only ones in range. If they are not connected in time, the session connects them later by itself.\n" +
			"On a terminal, it shows a test picture on new glasses and asks two questions (see `glasses check`).\n" +
			"Exit code: 0 connected, 1 not connected yet, 2 could not be run.",
		RunE: a.RunWithClient(func(ctx context.Context, c *client.Client, args []string) error {
			if err := checkSeconds("--timeout", timeout); err != nil {
				return err
			}
			wanted := map[string]string{"deviceModel": model, "name": command.FirstArg(args), "via": via}
			answer, err := a.connectGlasses(ctx, c, wanted, timeout)
			if err != nil || a.PrintsJSON || yes || !a.TTY || !term.CanConfirm(a.In) {
				return err
			}
			return a.checkNewPanel(ctx, c, answer)
		}),
	}
	cmd.Flags().StringVar(&via, "via", "auto", "`auto`, bluez or browser")
	cmd.Flags().StringVar(&model, "model", "", "a device model such as even_g1")
	cmd.Flags().IntVar(&timeout, "timeout", glassesWait, "how many seconds to wait, from 1 to 60")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask about the panel of new glasses")
	return cmd
}

// connectGlasses connects glasses and prints the outcome. See awaitGlasses for its arguments.
func (a *app) connectGlasses(ctx context.Context, c *client.Client, wanted map[string]string, timeout int) (
	answer connectedGlasses, err error) {
	answer, raw, err := a.awaitGlasses(ctx, c, wanted, timeout)
	if err == nil {
		err = a.reportConnection(answer, raw)
	}
	return answer, err
}

// awaitGlasses connects glasses. While a browser page waits for the user, it shows the page's address and calls the
// tool again until the time is up. wanted holds arguments of connectRealDevice; empty ones are omitted. raw is the
// tool's complete result.
func (a *app) awaitGlasses(ctx context.Context, c *client.Client, wanted map[string]string, timeout int) (
	answer connectedGlasses, raw json.RawMessage, err error) {
	request := map[string]any{}
	for key, value := range wanted {
		if value != "" {
			request[key] = value
		}
	}
	end := time.Now().Add(time.Duration(timeout) * time.Second)
	for page, waits := "", true; waits; page = answer.Glasses.URL {
		request["timeoutSeconds"] = max(1, int(time.Until(end).Seconds()))
		answer = connectedGlasses{}
		done := a.countdown("connecting the glasses", timeout)
		raw, err = command.CallTool(ctx, c, "connectRealDevice", request, &answer)
		done()
		if err != nil {
			return answer, raw, err
		}
		waits = answer.Glasses.URL != "" && answer.Glasses.URL != page && time.Now().Before(end)
		if waits && !a.PrintsJSON {
			a.GlassesPage(answer.Glasses.URL, answer.Glasses.Steps)
		}
	}
	return answer, raw, nil
}

// reportConnection prints whether the glasses are connected. The error is command.ExitNo if they are not connected yet.
func (a *app) reportConnection(answer connectedGlasses, raw json.RawMessage) error {
	err := a.Print(raw, func() {
		a.GlassesConnection(answer.connection())
		if notice := answer.Glasses.Notice; notice != "" {
			a.GlassesNotice(notice)
		}
	})
	if err == nil && answer.Status != "connected" {
		err = command.ExitNo
	}
	return err
}

func (g connectedGlasses) connection() term.Connection {
	c := term.Connection{
		Name: g.Glasses.Name, Model: g.DeviceModel, Session: g.SessionID, IsConnected: g.Status == "connected",
	}
	for _, l := range g.Glasses.Links {
		c.Arms = append(c.Arms, term.Arm{Key: l.Key, State: l.State, Signal: l.RSSI, Battery: l.BatteryPercent})
	}
	if p := g.Glasses.Problem; p != nil {
		c.Problem, c.Next = p.Message, p.FixHint
	}
	return c
}

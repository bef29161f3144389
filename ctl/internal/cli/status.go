package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/reach"
	"github.com/service-dev/service/ctl/internal/term"
)

func (a *app) status() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show what the daemon is doing", Args: cobra.NoArgs,
		Long: "Shows the daemon, its sockets, the link, the backend and the adapters. It starts nothing.\n" +
			"Exit code: 0 running, 1 not running, 2 cannot tell.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runStatus(cmd.Context()) },
	}
}

func (a *app) runStatus(ctx context.Context) error {
	c, err := client.Open(ctx, client.Options{Program: a.name, Running: true})
	if errors.Is(err, reach.ErrNotRunning) {
		return a.notRunning()
	}
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := c.Status(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return a.JSON(statusJSON(s))
	}
	a.showStatus(s)
	return nil
}

func (a *app) notRunning() error {
	daemon, err := reach.Find()
	if err != nil {
		return err
	}
	if a.json {
		if err := a.JSON(map[string]any{"running": false, "configDir": daemon.Paths.Dir, "controlSocket": daemon.Paths.Control, "mcpSocket": daemon.Paths.MCP}); err != nil {
			return err
		}
		return exit(exitNo)
	}
	a.Table([][]string{{"daemon", "not running"}, {"directory", daemon.Paths.Dir}, {"control socket", daemon.Paths.Control}, {"agents' socket", daemon.Paths.MCP}})
	a.Remark("  next: nothing; an agent or any other command starts it")
	return exit(exitNo)
}

func statusJSON(s *client.Status) map[string]any {
	l, b, consent := s.GetLink(), s.GetBackend(), s.GetConsent()
	return map[string]any{
		"running": true, "version": s.GetVersion(), "pid": s.GetPid(), "uptimeMs": s.GetUptimeMs(), "managed": s.GetManaged(),
		"configDir": s.GetConfigDir(), "controlSocket": s.GetControlSocket(), "mcpSocket": s.GetMcpSocket(),
		"mcpClients": s.GetMcpClients(), "installId": s.GetInstallId(),
		"link": map[string]any{
			"state": l.GetState(), "accountId": l.GetAccountId(), "tier": l.GetTier(), "linkedAt": l.GetLinkedAt(),
			"expiresAt": l.ExpiresAt, "backendUrl": l.GetBackendUrl(), "verifiedAgeMs": l.GetVerifiedAgeMs(), "detail": l.GetDetail(),
		},
		"consent": map[string]any{"state": consent.GetState(), "uploadAllowed": consent.GetUploadAllowed(), "decidedBy": consent.GetDecidedBy()},
		"backend": map[string]any{"kind": b.GetKind(), "url": b.GetUrl(), "chosenBy": b.GetChosenBy(), "state": b.GetState(), "detail": b.GetDetail(), "dashboardUrl": b.GetDashboardUrl()},
		"plugins": pluginsJSON(s.GetPlugins()),
	}
}

func (a *app) showStatus(s *client.Status) {
	l, b := s.GetLink(), s.GetBackend()
	kind := "stops when idle"
	if s.GetManaged() {
		kind = "managed by the system"
	}
	a.Table([][]string{
		{"daemon", fmt.Sprintf("running, pid %d, up %s, %s", s.GetPid(), term.Span(time.Duration(s.GetUptimeMs())*time.Millisecond), kind)},
		{"version", s.GetVersion()},
		{"directory", s.GetConfigDir()},
		{"control socket", s.GetControlSocket()},
		{"agents' socket", fmt.Sprintf("%s (%d connected)", s.GetMcpSocket(), s.GetMcpClients())},
		{"install id", s.GetInstallId()},
		{"account", accountLine(l)},
		{"backend", fmt.Sprintf("%s %s (chosen by %s, %s)", b.GetKind(), term.Dash(b.GetUrl()), b.GetChosenBy(), b.GetState())},
		{"dashboard", term.Dash(b.GetDashboardUrl())},
		{"telemetry", telemetryLine(s.GetConsent())},
	})
	if len(s.GetPlugins()) > 0 {
		a.Say("")
		a.showPlugins(s.GetPlugins())
	}
	if next := term.NextStep(l.GetState()); next != "" {
		a.Remark("  next: %s", next)
	}
}

func accountLine(l *client.Link) string {
	text := term.LinkState(l.GetState())
	if l.GetAccountId() != "" {
		text += fmt.Sprintf(", %s (%s), checked %s", l.GetAccountId(), term.Dash(l.GetTier()), term.Ago(l.GetVerifiedAgeMs()))
	}
	return text
}

func telemetryLine(c *client.Consent) string {
	word := "local log only"
	if c.GetUploadAllowed() {
		word = "local log only, for this version uploads nothing"
	}
	return fmt.Sprintf("%s (consent %s, decided by %s)", word, c.GetState(), c.GetDecidedBy())
}

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-dev/service/ctl/internal/client"
	"github.com/service-dev/service/ctl/internal/reach"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/proto/buildinfo"
	"github.com/service-dev/service/proto/rendezvous"
)

func (a *app) status() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show what the daemon is doing", Args: cobra.NoArgs,
		Long: "Shows the daemon, its sockets, versions, the link, the backend, telemetry and the adapters, and what is wrong with them.\n" +
			"It starts nothing and asks nobody but the daemon. Exit code: 0 running, 1 not running, 2 cannot tell.",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runStatus(cmd.Context()) },
	}
}

// answerWait is how long a daemon that runs may take to tell of itself; it does so from memory.
const answerWait = 5 * time.Second

// glance is how long status looks whether a daemon without sockets holds the directory.
const glance = 300 * time.Millisecond

func (a *app) runStatus(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	if d, err := reach.Find(); err == nil && idleSockets(d) {
		return a.notRunning()
	}
	// Lean: a daemon that speaks another protocol is told of, not refused.
	c, err := client.Open(ctx, client.Options{Program: a.name, Running: true, Lean: true})
	if errors.Is(err, reach.ErrNotRunning) {
		if err := unreachable(ctx, glance); err != nil {
			return err
		}
		return a.notRunning()
	}
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := c.Status(ctx)
	if err != nil {
		return silent(err, c.Daemon)
	}
	wrong := needs(s)
	if a.json {
		return a.JSON(statusJSON(s, wrong))
	}
	a.showStatus(s)
	a.Needs(wrong)
	return nil
}

// idleSockets tells that there are sockets and no daemon: to connect to the service manager's would start one.
func idleSockets(d reach.Daemon) bool {
	_, err := os.Lstat(d.Paths.Control)
	return err == nil && !d.Held()
}

// silent names the process that took the connection and did not answer.
func silent(err error, d reach.Daemon) error {
	var e *client.Error
	if !errors.As(err, &e) || e.Code != client.CodeNoAnswer {
		return err
	}
	return client.NotResponding(d)
}

func (a *app) notRunning() error {
	daemon, err := reach.Find()
	if err != nil {
		return err
	}
	if a.json {
		out := map[string]any{
			"running": false, "configDir": daemon.Paths.Dir, "controlSocket": daemon.Paths.Control, "mcpSocket": daemon.Paths.MCP,
			"client": clientJSON(),
		}
		if err := a.JSON(out); err != nil {
			return err
		}
		return exit(exitNo)
	}
	a.Facts([]term.Fact{
		{Name: "daemon", Lead: term.Cell{Text: "not running", Mood: term.Doubtful}},
		fact("directory", daemon.Paths.Dir), fact("control socket", daemon.Paths.Control), fact("agents' socket", daemon.Paths.MCP),
	})
	a.Remark("  next: nothing; an agent or any other command starts it")
	return exit(exitNo)
}

func clientJSON() map[string]any {
	return map[string]any{"version": buildinfo.Version, "protocolMin": rendezvous.ProtocolMin, "protocolMax": rendezvous.ProtocolMax}
}

func statusJSON(s *client.Status, wrong []term.Need) map[string]any {
	l, b, consent := s.GetLink(), s.GetBackend(), s.GetConsent()
	return map[string]any{
		"running": true, "version": s.GetVersion(), "pid": s.GetPid(), "uptimeMs": s.GetUptimeMs(), "managed": s.GetManaged(),
		"protocolMin": s.GetProtocolMin(), "protocolMax": s.GetProtocolMax(), "client": clientJSON(),
		"program": s.GetProgram(), "replaced": s.GetReplaced(), "socketActivated": s.GetSocketActivated(),
		"configDir": s.GetConfigDir(), "controlSocket": s.GetControlSocket(), "mcpSocket": s.GetMcpSocket(),
		"mcpClients": s.GetMcpClients(), "sessions": s.GetSessions(), "polling": s.GetPolling(), "installId": s.GetInstallId(),
		"link": map[string]any{
			"state": l.GetState(), "accountId": l.GetAccountId(), "tier": l.GetTier(), "linkedAt": l.GetLinkedAt(),
			"expiresAt": l.ExpiresAt, "backendUrl": l.GetBackendUrl(), "verifiedAgeMs": l.GetVerifiedAgeMs(), "detail": l.GetDetail(),
		},
		"consent":  map[string]any{"state": consent.GetState(), "uploadAllowed": consent.GetUploadAllowed(), "decidedBy": consent.GetDecidedBy()},
		"backend":  map[string]any{"kind": b.GetKind(), "url": b.GetUrl(), "chosenBy": b.GetChosenBy(), "state": b.GetState(), "detail": b.GetDetail(), "dashboardUrl": b.GetDashboardUrl()},
		"plugins":  pluginsJSON(s.GetPlugins()),
		"problems": wrong,
	}
}

func (a *app) showStatus(s *client.Status) {
	allowed, by := s.GetConsent().GetUploadAllowed(), s.GetConsent().GetDecidedBy()
	telemetry, why := term.Uploading(allowed, by)
	a.Facts([]term.Fact{
		{Name: "daemon", Lead: term.Cell{Text: "running", Mood: term.Good}, Rest: daemonLine(s)},
		{Name: "version", Lead: term.Cell{Text: s.GetVersion()}, Rest: versionLine(s)},
		programFact(s),
		fact("directory", s.GetConfigDir()),
		fact("control socket", s.GetControlSocket()),
		fact("agents' socket", s.GetMcpSocket()),
		fact("at work", workLine(s)),
		{},
		fact("install id", s.GetInstallId()),
		accountFact(s.GetLink()),
		backendFact(s.GetBackend()),
		fact("dashboard", s.GetBackend().GetDashboardUrl()),
		{Name: "telemetry", Lead: telemetry, Rest: why},
	})
	if len(s.GetPlugins()) > 0 {
		a.Say("")
		a.showPlugins(s.GetPlugins())
	}
}

func fact(name, value string) term.Fact {
	return term.Fact{Name: name, Lead: term.Cell{Text: term.Dash(value)}}
}

func daemonLine(s *client.Status) string {
	kind := "stops when idle"
	if s.GetManaged() {
		kind = "managed by the system"
	}
	if s.GetSocketActivated() {
		kind += ", which holds its sockets"
	}
	return fmt.Sprintf(", pid %d, up %s, %s", s.GetPid(), term.Span(time.Duration(s.GetUptimeMs())*time.Millisecond), kind)
}

// versionLine tells both ends when they differ.
func versionLine(s *client.Status) string {
	text := ", protocol " + protocols(s.GetProtocolMin(), s.GetProtocolMax())
	if s.GetVersion() != buildinfo.Version || !understood(s) {
		text += fmt.Sprintf("; this program is %s, protocol %s", buildinfo.Version, protocols(rendezvous.ProtocolMin, rendezvous.ProtocolMax))
	}
	return text
}

// protocols names a range; a daemon of before it was told spoke 1.
func protocols(lo, hi uint32) string {
	lo, hi = max(lo, 1), max(hi, 1)
	if lo == hi {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}

// understood tells whether the ranges of both ends meet.
func understood(s *client.Status) bool {
	return max(s.GetProtocolMax(), 1) >= rendezvous.ProtocolMin && max(s.GetProtocolMin(), 1) <= rendezvous.ProtocolMax
}

func programFact(s *client.Status) term.Fact {
	f := fact("program", s.GetProgram())
	if s.GetReplaced() {
		f.Lead, f.Rest = term.Cell{Text: "replaced", Mood: term.Doubtful}, " since it started, "+s.GetProgram()
	}
	return f
}

func workLine(s *client.Status) string {
	var parts []string
	for _, p := range []struct {
		n    uint32
		noun string
	}{{s.GetMcpClients(), "agent"}, {s.GetSessions(), "local session"}, {s.GetPolling(), "login"}} {
		if p.n > 0 {
			parts = append(parts, term.Count(int(p.n), p.noun))
		}
	}
	if len(parts) == 0 {
		return "nothing to do"
	}
	return strings.Join(parts, ", ")
}

func accountFact(l *client.Link) term.Fact {
	f := term.Fact{Name: "account", Lead: term.Cell{Text: term.LinkState(l.GetState())}}
	switch l.GetState() {
	case "linked":
		f.Lead.Mood = term.Good
	case "not_linked":
	default:
		f.Lead.Mood = term.Doubtful
	}
	if l.GetAccountId() != "" {
		f.Rest = fmt.Sprintf(", %s (%s), %s", l.GetAccountId(), term.Dash(l.GetTier()), term.Checked(l.GetVerifiedAgeMs()))
	}
	return f
}

func backendFact(b *client.Backend) term.Fact {
	f := term.Fact{Name: "backend", Lead: term.Cell{Text: b.GetState()}}
	switch b.GetState() {
	case "reachable":
		f.Lead.Mood = term.Good
	case "unreachable":
		f.Lead.Mood = term.Bad
	default:
		f.Lead = term.Cell{Text: "not asked yet"}
	}
	f.Rest = fmt.Sprintf(", %s, chosen by %s", backendName(b), term.Dash(b.GetChosenBy()))
	if b.GetKind() == "embedded" && b.GetUrl() == "" {
		f.Lead.Text, f.Rest = "embedded", ", starts when it is first needed, chosen by "+term.Dash(b.GetChosenBy())
	}
	return f
}

// backendName is the backend's address as people read it; a backend without a kind has none that can be used.
func backendName(b *client.Backend) string {
	if b.GetKind() == "" {
		return term.Dash(b.GetUrl())
	}
	return term.BackendName(b.GetUrl())
}

// versionNeed is what to do when the two ends do not fit together or one is older; nil when there is nothing to do. The newer
// end stays: a restart is advised only where it brings a newer daemon.
func versionNeed(s *client.Status) *term.Need {
	const restart = "run `servicectl daemon restart`; connected agents go on with the new one"
	switch {
	case !understood(s) && max(s.GetProtocolMax(), 1) < rendezvous.ProtocolMin:
		return &term.Need{What: fmt.Sprintf("the daemon (%s) is too old for this program (%s)", s.GetVersion(), buildinfo.Version), Next: restart}
	case !understood(s):
		return &term.Need{What: fmt.Sprintf("this program (%s) is too old for the daemon (%s)", buildinfo.Version, s.GetVersion()), Next: "upgrade this program"}
	case older(buildinfo.Version, s.GetVersion()):
		return &term.Need{What: fmt.Sprintf("this program (%s) is older than the daemon (%s)", buildinfo.Version, s.GetVersion()), Next: "upgrade this program"}
	case s.GetReplaced():
		return &term.Need{What: fmt.Sprintf("another serviced lies at %s since the daemon (%s) started", s.GetProgram(), s.GetVersion()), Next: restart}
	case older(s.GetVersion(), buildinfo.Version):
		return &term.Need{What: fmt.Sprintf("the daemon (%s) is older than this program (%s)", s.GetVersion(), buildinfo.Version), Next: restart}
	}
	return nil
}

// older reports whether version a comes before b. Versions that cannot be ordered are neither, and what differs in
// build metadata only is the same version.
func older(a, b string) bool {
	order, ok := buildinfo.Compare(a, b)
	return ok && order < 0
}

// needs is what is wrong, the most urgent first.
func needs(s *client.Status) []term.Need {
	list := []term.Need{}
	add := func(next, format string, args ...any) {
		list = append(list, term.Need{What: fmt.Sprintf(format, args...), Next: next})
	}
	if n := versionNeed(s); n != nil {
		list = append(list, *n)
	}
	if problem := s.GetConfigProblem(); problem != "" {
		add("correct config.yaml, or remove it for the defaults", "%s; the last usable settings stay in use", problem)
	}
	if b := s.GetBackend(); b.GetState() == "unreachable" || b.GetKind() == "" {
		add("run `servicectl doctor`", "%s", cmp.Or(b.GetDetail(), "the backend cannot be reached"))
	}
	for _, p := range s.GetPlugins() {
		if next := pluginNeed(p); next != "" {
			add(next, "adapter %s: %s", p.GetName(), p.GetLastError())
		}
	}
	// To have no account is a choice; whoami tells how to change it.
	if l := s.GetLink(); l.GetState() != "not_linked" && term.NextStep(l.GetState()) != "" {
		add(term.NextStep(l.GetState()), "the account is %s", term.LinkState(l.GetState()))
	}
	return list
}

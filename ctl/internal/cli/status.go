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
	"github.com/service-dev/service/ctl/internal/command"
	"github.com/service-dev/service/ctl/internal/dialer"
	"github.com/service-dev/service/ctl/internal/term"
	"github.com/service-dev/service/glasses/uncleared"
	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/rendezvous"
)

func (a *app) status() *cobra.Command {
	return command.New("status", "Show what the daemon is doing",
		"Shows the daemon, its sockets, versions, the link, the backend, telemetry and the adapters, and what is wrong "+
			"with them.\n"+
			"Starts nothing and asks only the daemon. Exit code: 0 running, 1 not running, 2 cannot tell.", a.runStatus)
}

// answerWait is the maximum wait for the status of a running daemon, which needs neither disk nor network to respond.
const answerWait = 5 * time.Second

// briefWait is how long status waits for a daemon that has lost its sockets to exit.
const briefWait = 300 * time.Millisecond

func (a *app) runStatus(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	if d, err := dialer.Find(); err == nil && socketsOnly(d) {
		return a.notRunning()
	}
	// A lean connection also works with a daemon whose protocol is incompatible, so that its status can be shown.
	c, err := client.Open(ctx, client.Options{Program: a.Name, Running: true, Lean: true})
	if errors.Is(err, dialer.ErrNotRunning) {
		if err := unreachable(ctx, briefWait); err != nil {
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
		return namedSilent(err, c.Daemon)
	}
	wrong := needs(s)
	return a.Print(statusJSON(s, wrong), func() {
		a.showStatus(s)
		a.Needs(wrong)
	})
}

// socketsOnly reports whether sockets exist without a daemon. Connecting to the service manager's sockets would start a
// daemon.
func socketsOnly(d dialer.Daemon) bool {
	_, err := os.Lstat(d.Paths.Control)
	return err == nil && !d.Held()
}

// namedSilent adds the process id to the error for a daemon that did not respond.
func namedSilent(err error, d dialer.Daemon) error {
	var e *client.Error
	if !errors.As(err, &e) || e.Code != client.CodeNoAnswer {
		return err
	}
	return client.NotResponding(d)
}

func (a *app) notRunning() error {
	daemon, err := dialer.Find()
	if err != nil {
		return err
	}
	paths := daemon.Paths
	err = a.Print(map[string]any{
		"running": false, "configDir": paths.Dir, "controlSocket": paths.Control, "mcpSocket": paths.MCP,
		"client": clientJSON(),
	}, func() {
		a.Facts([]term.Fact{
			{Name: "daemon", Lead: term.Cell{Text: "not running", Severity: term.Warning}},
			fact("directory", paths.Dir), fact("control socket", paths.Control), fact("agents' socket", paths.MCP),
		})
		a.Next("nothing; an agent or any other command starts it")
	})
	if err != nil {
		return err
	}
	return command.ExitNo
}

func clientJSON() map[string]any {
	return map[string]any{"version": buildinfo.Version, "protocolMin": rendezvous.ProtocolMin,
		"protocolMax": rendezvous.ProtocolMax}
}

func statusJSON(s *client.Status, wrong []term.Need) map[string]any {
	l, b, consent := s.GetLink(), s.GetBackend(), s.GetConsent()
	return map[string]any{
		"running": true, "version": s.GetVersion(), "pid": s.GetPid(), "uptimeMs": s.GetUptimeMs(), "managed": s.GetManaged(),
		"protocolMin": s.GetProtocolMin(), "protocolMax": s.GetProtocolMax(), "client": clientJSON(),
		"program": s.GetProgram(), "replaced": s.GetReplaced(), "socketActivated": s.GetSocketActivated(),
		"configDir": s.GetConfigDir(), "controlSocket": s.GetControlSocket(), "mcpSocket": s.GetMcpSocket(),
		"mcpClients": s.GetMcpClients(), "sessions": s.GetSessions(), "polling": s.GetPolling(),
		"installId": s.GetInstallId(),
		"link": map[string]any{
			"state": l.GetState(), "accountId": l.GetAccountId(), "tier": l.GetTier(), "linkedAt": l.GetLinkedAt(),
			"expiresAt": l.ExpiresAt, "backendUrl": l.GetBackendUrl(), "verifiedAgeMs": l.GetVerifiedAgeMs(),
			"detail": l.GetDetail(),
		},
		"consent": map[string]any{"state": consent.GetState(), "uploadAllowed": consent.GetUploadAllowed(),
			"decidedBy": consent.GetDecidedBy()},
		"backend": map[string]any{"kind": b.GetKind(), "url": b.GetUrl(), "chosenBy": b.GetChosenBy(),
			"state": b.GetState(), "detail": b.GetDetail(), "dashboardUrl": b.GetDashboardUrl()},
		"plugins":  pluginsJSON(s.GetPlugins()),
		"problems": wrong,
	}
}

func (a *app) showStatus(s *client.Status) {
	allowed, by := s.GetConsent().GetUploadAllowed(), s.GetConsent().GetDecidedBy()
	telemetry, why := term.Uploading(allowed, by)
	a.Facts([]term.Fact{
		{Name: "daemon", Lead: term.Cell{Text: "running", Severity: term.Good}, Rest: daemonLine(s)},
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

// versionLine returns the daemon's version, and also the program's version if it differs.
func versionLine(s *client.Status) string {
	text := ", protocol " + protocols(s.GetProtocolMin(), s.GetProtocolMax())
	if s.GetVersion() != buildinfo.Version || !understood(s) {
		text += fmt.Sprintf("; this program is %s, protocol %s", buildinfo.Version,
			protocols(rendezvous.ProtocolMin, rendezvous.ProtocolMax))
	}
	return text
}

// protocols formats a protocol range. Daemons that report none speak protocol 1.
func protocols(lo, hi uint32) string {
	lo, hi = max(lo, 1), max(hi, 1)
	if lo == hi {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}

// understood reports whether the protocol ranges of daemon and program overlap.
func understood(s *client.Status) bool {
	return max(s.GetProtocolMax(), 1) >= rendezvous.ProtocolMin && max(s.GetProtocolMin(), 1) <= rendezvous.ProtocolMax
}

func programFact(s *client.Status) term.Fact {
	f := fact("program", s.GetProgram())
	if s.GetReplaced() {
		f.Lead, f.Rest = term.Cell{Text: "replaced", Severity: term.Warning}, " since it started, "+s.GetProgram()
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
	return cmp.Or(strings.Join(parts, ", "), "nothing to do")
}

func accountFact(l *client.Link) term.Fact {
	f := term.Fact{Name: "account", Lead: term.Cell{Text: term.LinkState(l.GetState())}}
	switch l.GetState() {
	case "linked":
		f.Lead.Severity = term.Good
	case "not_linked":
	default:
		f.Lead.Severity = term.Warning
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
		f.Lead.Severity = term.Good
	case "unreachable":
		f.Lead.Severity = term.Bad
	default:
		f.Lead = term.Cell{Text: "not asked yet"}
	}
	f.Rest = fmt.Sprintf(", %s, chosen by %s", backendName(b), term.Dash(b.GetChosenBy()))
	if b.GetKind() == "embedded" && b.GetUrl() == "" {
		f.Lead.Text, f.Rest = "embedded", ", starts when it is first needed, chosen by "+term.Dash(b.GetChosenBy())
	}
	return f
}

// backendName returns the backend's URL for display. A backend without a kind has no usable URL.
func backendName(b *client.Backend) string {
	if b.GetKind() == "" {
		return term.Dash(b.GetUrl())
	}
	return term.BackendName(b.GetUrl())
}

// versionNeed returns the action needed if daemon and program are incompatible or one is older, otherwise nil. It
// advises a restart only if that starts a newer daemon.
func versionNeed(s *client.Status) *term.Need {
	const restart = "run `servicectl daemon restart`; connected agents continue with the new one"
	switch {
	case !understood(s) && max(s.GetProtocolMax(), 1) < rendezvous.ProtocolMin:
		return &term.Need{What: fmt.Sprintf("the daemon (%s) is too old for this program (%s)", s.GetVersion(),
			buildinfo.Version), Next: restart}
	case !understood(s):
		return &term.Need{What: fmt.Sprintf("this program (%s) is too old for the daemon (%s)", buildinfo.Version,
			s.GetVersion()), Next: "upgrade this program"}
	case older(buildinfo.Version, s.GetVersion()):
		return &term.Need{What: fmt.Sprintf("this program (%s) is older than the daemon (%s)", buildinfo.Version,
			s.GetVersion()), Next: "upgrade this program"}
	case s.GetReplaced():
		return &term.Need{What: fmt.Sprintf("serviced at %s was replaced after the daemon (%s) started", s.GetProgram(),
			s.GetVersion()), Next: restart}
	case older(s.GetVersion(), buildinfo.Version):
		return &term.Need{What: fmt.Sprintf("the daemon (%s) is older than this program (%s)", s.GetVersion(),
			buildinfo.Version), Next: restart}
	}
	return nil
}

// older reports whether version a is older than b. It returns false for versions that cannot be compared or differ
// only in build metadata.
func older(a, b string) bool {
	order, ok := buildinfo.Compare(a, b)
	return ok && order < 0
}

// needs returns the current problems, the most urgent first.
func needs(s *client.Status) []term.Need {
	list := []term.Need{}
	add := func(next, format string, args ...any) {
		list = append(list, term.Need{What: fmt.Sprintf(format, args...), Next: next})
	}
	if n := versionNeed(s); n != nil {
		list = append(list, *n)
	}
	if problem := s.GetConfigProblem(); problem != "" {
		add("correct config.yaml, or remove it to use the defaults", "%s; the last valid settings stay in use", problem)
	}
	if b := s.GetBackend(); b.GetState() == "unreachable" || b.GetKind() == "" {
		add("run `servicectl doctor`", "%s", cmp.Or(b.GetDetail(), "the backend cannot be reached"))
	}
	for _, p := range s.GetPlugins() {
		if next := pluginNeed(p); next != "" {
			add(next, "adapter %s: %s", p.GetName(), p.GetLastError())
		}
	}
	for _, name := range s.GetUnclearedGlasses() {
		add(uncleared.Next, "%s", uncleared.Notice(name))
	}
	// An unlinked machine is not a problem; whoami shows how to link it.
	if l := s.GetLink(); l.GetState() != "not_linked" && term.NextStep(l.GetState()) != "" {
		add(term.NextStep(l.GetState()), "the account is %s", term.LinkState(l.GetState()))
	}
	return list
}

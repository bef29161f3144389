package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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
	"github.com/service-dev/service/internal/problem"
	"github.com/service-dev/service/internal/rendezvous"
)

func (a *app) status() *cobra.Command {
	return command.New("status", "Show what the daemon is doing",
		"Shows the daemon, its sockets, versions, the link, the backend, telemetry and the adapters, and any problems "+
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
	c, err := client.Open(ctx, client.Options{Program: a.Name, Running: true, AnyProtocol: true})
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
	object, err := statusJSON(s, wrong)
	if err != nil {
		return err
	}
	return a.Print(object, func() {
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

// namedSilent adds the process ID to the error for a daemon that did not respond.
func namedSilent(err error, d dialer.Daemon) error {
	if problem.CodeOf(err) != problem.CodeDaemonNotResponding {
		return err
	}
	return d.NotResponding()
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
	return map[string]any{"version": buildinfo.Version, "protocolMin": rendezvous.ControlProtocolMin,
		"protocolMax": rendezvous.ControlProtocolMax}
}

// statusJSON returns the daemon's status with what this program adds. The problems replace the fields from which they
// are derived.
func statusJSON(s *client.Status, wrong []term.Need) (map[string]any, error) {
	printed := *s
	printed.ConfigProblem, printed.UnclearedGlasses = "", nil
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(printed); err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data.Bytes(), &fields); err != nil {
		return nil, err
	}
	object := map[string]any{"running": true, "client": clientJSON(), "problems": wrong}
	for name, value := range fields {
		object[name] = value
	}
	return object, nil
}

func (a *app) showStatus(s *client.Status) {
	allowed, by := s.Consent.UploadAllowed, s.Consent.DecidedBy
	telemetry, why := term.Uploading(allowed, by)
	a.Facts([]term.Fact{
		{Name: "daemon", Lead: term.Cell{Text: "running", Severity: term.Good}, Rest: daemonLine(s)},
		{Name: "version", Lead: term.Cell{Text: s.Version}, Rest: versionLine(s)},
		programFact(s),
		fact("directory", s.ConfigDir),
		fact("control socket", s.ControlSocket),
		fact("agents' socket", s.MCPSocket),
		fact("at work", workLine(s)),
		{},
		fact("install id", s.InstallID),
		accountFact(s.Link),
		backendFact(s.Backend),
		fact("dashboard", s.Backend.DashboardURL),
		{Name: "telemetry", Lead: telemetry, Rest: why},
	})
	if len(s.Plugins) > 0 {
		a.Say("")
		a.showPlugins(s.Plugins)
	}
}

func fact(name, value string) term.Fact {
	return term.Fact{Name: name, Lead: term.Cell{Text: term.Dash(value)}}
}

func daemonLine(s *client.Status) string {
	kind := "stops when idle"
	if s.Managed {
		kind = "managed by the system"
	}
	if s.SocketActivated {
		kind += ", which holds its sockets"
	}
	return fmt.Sprintf(", pid %d, up %s, %s", s.PID, term.Span(time.Duration(s.UptimeMs)*time.Millisecond), kind)
}

// versionLine returns the daemon's version, and this program's version if it differs.
func versionLine(s *client.Status) string {
	text := ", protocol " + protocols(s.ProtocolMin, s.ProtocolMax)
	if s.Version != buildinfo.Version || !understood(s) {
		text += fmt.Sprintf("; this program is %s, protocol %s", buildinfo.Version,
			protocols(rendezvous.ControlProtocolMin, rendezvous.ControlProtocolMax))
	}
	return text
}

// protocols formats a protocol range.
func protocols(lo, hi int) string {
	if lo == hi {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}

// understood reports whether the protocol ranges of the daemon and this program overlap.
func understood(s *client.Status) bool {
	return s.ProtocolMax >= rendezvous.ControlProtocolMin && s.ProtocolMin <= rendezvous.ControlProtocolMax
}

func programFact(s *client.Status) term.Fact {
	f := fact("program", s.Program)
	if s.Replaced {
		f.Lead, f.Rest = term.Cell{Text: "replaced", Severity: term.Warning}, " since it started, "+s.Program
	}
	return f
}

func workLine(s *client.Status) string {
	var parts []string
	for _, p := range []struct {
		n    int
		noun string
	}{{s.MCPClients, "agent"}, {s.Sessions, "local session"}, {s.Polling, "login"}} {
		if p.n > 0 {
			parts = append(parts, term.Count(p.n, p.noun))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing to do")
}

func accountFact(l client.Link) term.Fact {
	f := term.Fact{Name: "account", Lead: term.Cell{Text: term.LinkState(l.State)}}
	switch l.State {
	case "linked":
		f.Lead.Severity = term.Good
	case "not_linked":
	default:
		f.Lead.Severity = term.Warning
	}
	if l.AccountID != "" {
		f.Rest = fmt.Sprintf(", %s (%s), %s", l.AccountID, term.Dash(l.Tier), term.Checked(l.VerifiedAgeMs))
	}
	return f
}

func backendFact(b client.Backend) term.Fact {
	f := term.Fact{Name: "backend", Lead: term.Cell{Text: b.State}}
	switch b.State {
	case "reachable":
		f.Lead.Severity = term.Good
	case "unreachable":
		f.Lead.Severity = term.Bad
	default:
		f.Lead = term.Cell{Text: "not asked yet"}
	}
	f.Rest = fmt.Sprintf(", %s, chosen by %s", backendName(b), term.Dash(b.ChosenBy))
	if b.Kind == "embedded" && b.URL == "" {
		f.Lead.Text, f.Rest = "embedded", ", starts when it is first needed, chosen by "+term.Dash(b.ChosenBy)
	}
	return f
}

// backendName returns the backend's URL for display. A backend without a kind has no usable URL.
func backendName(b client.Backend) string {
	if b.Kind == "" {
		return term.Dash(b.URL)
	}
	return term.BackendName(b.URL)
}

// versionNeed returns the action needed if the daemon and this program are incompatible or one is older, or nil
// otherwise. It suggests a restart only if that starts a newer daemon.
func versionNeed(s *client.Status) *term.Need {
	const restart = "run `servicectl daemon restart`; connected agents continue with the new one"
	switch {
	case !understood(s) && s.ProtocolMax < rendezvous.ControlProtocolMin:
		return &term.Need{What: fmt.Sprintf("the daemon (%s) is too old for this program (%s)", s.Version,
			buildinfo.Version), Next: restart}
	case !understood(s):
		return &term.Need{What: fmt.Sprintf("this program (%s) is too old for the daemon (%s)", buildinfo.Version,
			s.Version), Next: "upgrade this program"}
	case older(buildinfo.Version, s.Version):
		return &term.Need{What: fmt.Sprintf("this program (%s) is older than the daemon (%s)", buildinfo.Version,
			s.Version), Next: "upgrade this program"}
	case s.Replaced:
		return &term.Need{What: fmt.Sprintf("serviced at %s was replaced after the daemon (%s) started", s.Program,
			s.Version), Next: restart}
	case older(s.Version, buildinfo.Version):
		return &term.Need{What: fmt.Sprintf("the daemon (%s) is older than this program (%s)", s.Version,
			buildinfo.Version), Next: restart}
	}
	return nil
}

// older reports whether version a is older than b. It returns false for versions that are not comparable or differ
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
	if problem := s.ConfigProblem; problem != "" {
		add("correct config.yaml, or remove it to use the defaults", "%s; the previous valid settings stay in use", problem)
	}
	if b := s.Backend; b.State == "unreachable" || b.Kind == "" {
		add("run `servicectl doctor`", "%s", cmp.Or(b.Detail, "the backend cannot be reached"))
	}
	for _, p := range s.Plugins {
		if next := pluginNeed(p); next != "" {
			add(next, "adapter %s: %s", p.Name, p.LastError)
		}
	}
	for _, name := range s.UnclearedGlasses {
		add(uncleared.Next, "%s", uncleared.Notice(name))
	}
	// An unlinked machine is not a problem; whoami shows how to link it.
	if l := s.Link; l.State != "not_linked" && term.NextStep(l.State) != "" {
		add(term.NextStep(l.State), "the account is %s", term.LinkState(l.State))
	}
	return list
}

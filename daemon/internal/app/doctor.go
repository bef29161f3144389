package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/daemon/internal/control"
	"github.com/service-dev/service/daemon/internal/pluginhost"
	"github.com/service-dev/service/daemon/internal/statefile"
)

// The states of a check.
const (
	checkOK   = "ok"
	checkWarn = "warn"
	checkFail = "fail"
)

// doctorTimeout bounds the checks that ask others.
const doctorTimeout = 15 * time.Second

// doctor runs every check on behalf of the caller in ctx.
func (p *parts) doctor(ctx context.Context) []control.Check {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	checks := []control.Check{p.checkDirectory(), p.checkProgram(), p.checkConfig(ctx), p.checkAuthFile(), p.checkConsent(ctx), p.checkTelemetry(ctx)}
	checks = append(checks, p.checkAdapters()...)
	health := p.checkBackend(ctx)
	checks = append(checks, health)
	if health.State == checkOK {
		checks = append(checks, p.checkLink(ctx))
	}
	return append(checks, p.checkBrowser(ctx))
}

func (p *parts) checkDirectory() control.Check {
	c := control.Check{Name: "state directory", State: checkOK, Detail: p.paths.Dir}
	for _, dir := range []string{p.paths.Dir, p.paths.Run} {
		if err := probe(dir); err != nil {
			c.State, c.Detail, c.Fix = checkFail, err.Error(), "Make "+dir+" writable for you and see that its disk is not full."
			return c
		}
	}
	if err := statefile.EnsureDir(p.paths.Dir); err != nil {
		c.State, c.Detail, c.Fix = checkFail, err.Error(), "Correct the directory's owner or mode, then restart the daemon."
	}
	return c
}

// probe writes a file into a directory and takes it away again: a full disk lets an empty one be made.
func probe(dir string) error {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return cmp.Or(err, fmt.Errorf("%s is not a directory", dir))
	}
	f, err := os.CreateTemp(dir, ".doctor.tmp-*") // a name that statefile.Sweep would take away, too
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 4<<10))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// checkTelemetry looks whether events can be kept and thrown away, and how their last upload went.
func (p *parts) checkTelemetry(ctx context.Context) control.Check {
	s := (face{p}).Telemetry(ctx)
	c := control.Check{Name: "telemetry", State: checkOK, Detail: fmt.Sprintf("%d events wait; the log is %s", s.Waiting, s.LogFile)}
	err := appendable(s.LogFile)
	for _, dir := range []string{filepath.Dir(s.LogFile), filepath.Join(filepath.Dir(s.LogFile), "spool")} {
		if e := probe(dir); !errors.Is(e, fs.ErrNotExist) { // it is made with the first event
			err = errors.Join(err, e)
		}
	}
	switch {
	case err != nil:
		c.State, c.Detail, c.Fix = checkFail, err.Error(), "Make "+filepath.Dir(s.LogFile)+" a directory that you can write to, or move it away."
	case s.LastError != "":
		c.State, c.Detail, c.Fix = checkWarn, s.LastError, "Nothing is needed, it is tried again; `servicectl telemetry status` tells more."
	}
	return c
}

// appendable tells why nothing can be added to a file; nil also where there is none yet.
func appendable(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", path)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// checkProgram looks whether a client could start this daemon again.
func (p *parts) checkProgram() control.Check {
	c := control.Check{Name: "daemon's program", State: checkOK, Detail: p.program.path}
	switch {
	case p.program.gone():
		c.State, c.Detail, c.Fix = checkWarn, p.program.path+" is gone: this daemon goes on, but another cannot be started", "Install the service again."
	case p.program.replaced():
		c.State, c.Detail, c.Fix = checkWarn, p.program.path+" was replaced since the daemon started", "Run `servicectl daemon restart`; connected agents go on with the new one."
	}
	return c
}

func (p *parts) checkConfig(ctx context.Context) control.Check {
	if problem := p.configProblem(); problem != "" {
		return control.Check{Name: "configuration", State: checkWarn, Detail: problem + "; the last usable settings stay in use", Fix: "Correct config.yaml, or remove it for the defaults."}
	}
	b, err := p.backendOf(ctx)
	if err != nil {
		return control.Check{Name: "configuration", State: checkFail, Detail: err.Error(), Fix: "Correct SERVICE_BACKEND_URL or config.yaml."}
	}
	url := b.URL
	if b.Kind == config.KindEmbedded {
		url = "the embedded backend"
	}
	return control.Check{Name: "configuration", State: checkOK, Detail: fmt.Sprintf("calls go to %s (chosen by: %s)", url, b.ChosenBy)}
}

func (p *parts) checkAuthFile() control.Check {
	c := control.Check{Name: "auth.json", State: checkOK}
	l := p.accounts.Current()
	switch l.State {
	case account.Corrupt:
		c.State, c.Detail, c.Fix = checkFail, "it cannot be read: "+l.Detail, "Run `servicectl login` to link again, or `servicectl logout` to delete it."
	case account.NotLinked:
		c.Detail = "there is none: this install is anonymous"
	case account.Linked:
		c.Detail = "linked to account " + l.AccountID
		if info, err := os.Stat(p.accounts.Path()); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			c.State, c.Detail, c.Fix = checkWarn, fmt.Sprintf("other users can read it (mode %04o)", info.Mode().Perm()), "Run `chmod 600 "+p.accounts.Path()+"`; if others had a look, log out and in again."
		}
	default:
		c.State, c.Detail, c.Fix = checkWarn, "the link is "+string(l.State), "Run `servicectl login` to link again."
	}
	return c
}

func (p *parts) checkConsent(ctx context.Context) control.Check {
	state, err := p.consent.Get()
	if err != nil {
		return control.Check{Name: "consent", State: checkWarn, Detail: err.Error(), Fix: "Run `servicectl accept-privacy` or `servicectl decline-privacy`."}
	}
	detail := "nothing is uploaded"
	by := (face{p}).Consent(ctx)
	if by.UploadAllowed {
		detail = "events may be uploaded"
	}
	return control.Check{Name: "consent", State: checkOK, Detail: fmt.Sprintf("%s; %s (decided by: %s)", state, detail, by.DecidedBy)}
}

// checkAdapters looks at the files without running them.
func (p *parts) checkAdapters() []control.Check {
	wrong := p.host.Check()
	var out []control.Check
	for _, s := range p.host.Plugins() {
		c := control.Check{Name: "adapter " + s.Name, State: checkOK, Detail: "verified; " + s.State}
		if err := wrong[s.Name]; err != nil {
			c.State, c.Detail, c.Fix = checkFail, err.Error(), pluginhost.FixHint(err)
		} else if s.LastError != "" && s.State != pluginhost.Running {
			c.State, c.Detail, c.Fix = checkWarn, s.State+": "+s.LastError, "Look into `servicectl daemon logs`."
		} else if !s.Crashed.IsZero() {
			c.Detail += fmt.Sprintf("; crashed %s ago: %s", p.now().Sub(s.Crashed).Round(time.Second), s.LastError)
		}
		out = append(out, c)
	}
	return out
}

func (p *parts) checkBackend(ctx context.Context) control.Check {
	c := control.Check{Name: "backend", State: checkOK}
	b, err := p.backendOf(ctx)
	if err != nil {
		return control.Check{Name: "backend", State: checkFail, Detail: "not asked: its address is not usable", Fix: "Correct the configuration."}
	}
	h, err := p.backends.Health(ctx, backend.Target{BaseURL: b.URL, InstallID: p.installID()})
	if err != nil {
		c.State, c.Detail, c.Fix = checkFail, err.Error(), "Check the network and the backend address, then try again."
		var problem *backend.Problem
		if errors.As(err, &problem) && problem.FixHint != "" {
			c.Fix = problem.FixHint
		}
		return c
	}
	c.Detail = fmt.Sprintf("%s %s (commit %s), up for %s", h.Service, h.Version, h.Commit, h.Uptime.Round(time.Second))
	if !h.OK {
		c.State, c.Fix = checkWarn, "The backend says that it is not well; try again later."
	}
	return c
}

// checkLink asks the backend about the token.
func (p *parts) checkLink(ctx context.Context) control.Check {
	c := control.Check{Name: "account link", State: checkOK}
	switch l := (face{p}).Verify(ctx); {
	case l.State == account.NotLinked:
		c.Detail = "no account is linked"
	case l.State == account.OtherBackend:
		c.State, c.Detail, c.Fix = checkWarn, "the link belongs to "+backend.DisplayName(l.BackendURL), "Run `servicectl login --replace` to link at this backend, which replaces that link."
	case !l.Linked():
		c.State, c.Detail, c.Fix = checkFail, "the link is "+string(l.State), "Run `servicectl login` to link again."
	case !l.Verified.OK:
		c.State, c.Detail, c.Fix = checkWarn, "the backend could not be asked: "+l.Verified.Err, "Try again later."
	case l.Detail != "":
		c.State, c.Detail, c.Fix = checkWarn, l.Detail, "If others use this machine, run `servicectl logout`, then `servicectl login`."
		if _, unsaved := p.accounts.Unsaved(); unsaved {
			c.Fix = "Make room for auth.json in the state directory."
		}
	default:
		c.Detail = "the backend honours it"
	}
	return c
}

func (p *parts) checkBrowser(ctx context.Context) control.Check {
	if caller.From(ctx).Env["SERVICE_NO_AUTO_OPEN"] == "1" {
		return control.Check{Name: "browser", State: checkOK, Detail: "not opened by itself (SERVICE_NO_AUTO_OPEN=1)"}
	}
	return control.Check{Name: "browser", State: checkOK, Detail: "verification pages are opened by themselves"}
}

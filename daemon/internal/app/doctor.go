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
	"strings"
	"time"

	"github.com/service-dev/service/daemon/internal/account"
	"github.com/service-dev/service/daemon/internal/backend"
	"github.com/service-dev/service/daemon/internal/caller"
	"github.com/service-dev/service/daemon/internal/config"
	"github.com/service-dev/service/daemon/internal/control"
	"github.com/service-dev/service/daemon/internal/pluginhost"
	"github.com/service-dev/service/daemon/internal/statefile"
	"github.com/service-dev/service/internal/problem"
)

// States of a check.
const (
	checkOK   = "ok"
	checkWarn = "warn"
	checkFail = "fail"
)

// doctorTimeout is the time limit of each check that calls an adapter or a backend.
const doctorTimeout = 15 * time.Second

// doctor runs every check for the caller in ctx.
func (d *daemon) doctor(ctx context.Context) []control.Check {
	ctx, cancel := context.WithTimeout(ctx, doctorTimeout)
	defer cancel()
	wrong := d.host.Check()
	checks := []control.Check{
		d.checkDirectory(), checkProgram(d.program, len(wrong) > 0), d.checkConfig(ctx), d.checkAuthFile(),
		d.checkConsent(ctx), d.checkTelemetry(ctx),
	}
	checks = append(checks, checkAdapters(d.host.Plugins(), wrong, d.now())...)
	health := d.checkBackend(ctx)
	checks = append(checks, health, d.checkNetwork(ctx, health.State == checkOK))
	if health.State == checkOK {
		checks = append(checks, d.checkLink(ctx))
	}
	return append(checks, d.checkBrowser(ctx))
}

func passed(name, detail string) control.Check {
	return control.Check{Name: name, State: checkOK, Detail: detail}
}

func warning(name, detail, fix string) control.Check {
	return control.Check{Name: name, State: checkWarn, Detail: detail, Fix: fix}
}

func failure(name, detail, fix string) control.Check {
	return control.Check{Name: name, State: checkFail, Detail: detail, Fix: fix}
}

func (d *daemon) checkDirectory() control.Check {
	const name = "state directory"
	for _, dir := range []string{d.paths.Dir, d.paths.Run} {
		if err := checkWritable(dir); err != nil {
			return failure(name, err.Error(), "Make "+dir+" writable for your user and check that its disk is not full.")
		}
	}
	if err := statefile.EnsureDir(d.paths.Dir); err != nil {
		return failure(name, err.Error(), "Correct the owner or mode of the directory, then restart the daemon.")
	}
	return passed(name, d.paths.Dir)
}

// checkWritable writes a non-empty file to a directory and removes it. An empty file can be created even on a full
// disk.
func checkWritable(dir string) error {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return cmp.Or(err, fmt.Errorf("%s must be a directory", dir))
	}
	f, err := os.CreateTemp(dir, ".doctor.tmp-*") // statefile.Sweep also deletes files with this name
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 4<<10))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// checkTelemetry checks that events can be stored and deleted, and reports the outcome of the last upload.
func (d *daemon) checkTelemetry(ctx context.Context) control.Check {
	const name = "telemetry"
	s := (facade{d}).Telemetry(ctx)
	err := checkAppendable(s.LogFile)
	dir := filepath.Dir(s.LogFile)
	for _, dir := range []string{dir, filepath.Join(dir, "spool")} {
		if e := checkWritable(dir); !errors.Is(e, fs.ErrNotExist) { // the first event creates the directory
			err = errors.Join(err, e)
		}
	}
	switch {
	case err != nil:
		return failure(name, err.Error(), "Make "+dir+" a directory that your user can write to, or move it away.")
	case s.LastError != "":
		return warning(name, s.LastError,
			"Do nothing: the daemon tries again. `servicectl telemetry status` shows more.")
	}
	return passed(name, fmt.Sprintf("%d events are waiting; the log is %s", s.Waiting, s.LogFile))
}

// checkAppendable returns an error if the file cannot be appended to. It returns nil if the file does not exist yet.
func checkAppendable(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s must be a regular file", path)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// checkProgram checks that a client could start this daemon again. damaged reports whether the files in its
// directory differ from the manifest.
func checkProgram(p program, damaged bool) control.Check {
	const name = "daemon's program"
	switch {
	case p.isGone():
		return warning(name, p.path+" was deleted; the daemon ends when no call is running",
			"Do nothing if you upgraded the service; otherwise install it again.")
	case p.isReplaced() && damaged && !p.isElsewhere():
		return warning(name, p.path+" was changed after the daemon started, and may be damaged",
			"Do not restart the daemon until the other checks pass.")
	case p.isReplaced():
		return warning(name, p.path+" was replaced after the daemon started",
			"Run `servicectl daemon restart`, or wait until this one has been idle for a while; connected agents continue "+
				"with the new one.")
	}
	return passed(name, p.path)
}

func (d *daemon) checkConfig(ctx context.Context) control.Check {
	const name = "configuration"
	if refused := d.configProblem(); refused != "" {
		return warning(name, refused+"; the previous valid settings stay in use",
			"Correct config.yaml, or remove it to use the defaults.")
	}
	b, err := d.backendOf(ctx)
	if err != nil {
		return failure(name, err.Error(), "Correct SERVICE_BACKEND_URL or config.yaml.")
	}
	url := b.URL
	if b.Kind == config.KindEmbedded {
		url = "the embedded backend"
	}
	return passed(name, fmt.Sprintf("calls go to %s (chosen by: %s)", url, b.ChosenBy))
}

func (d *daemon) checkAuthFile() control.Check {
	const name = "auth.json"
	switch l := d.accounts.Current(); l.State {
	case account.Corrupt:
		return failure(name, "it cannot be read: "+l.Detail,
			"Run `servicectl login` to link again, or `servicectl logout` to delete it.")
	case account.NotLinked:
		return passed(name, "no account is linked: this install is anonymous")
	case account.Linked:
		info, err := os.Stat(d.accounts.Path())
		if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			return warning(name, fmt.Sprintf("other users can read it (mode %04o)", info.Mode().Perm()),
				"Run `chmod 600 "+d.accounts.Path()+"`; if others may have read it, log out and in again.")
		}
		return passed(name, "linked to account "+l.AccountID)
	default:
		return warning(name, "the link is "+string(l.State)+": "+l.Detail, "Run `servicectl login` to link again.")
	}
}

func (d *daemon) checkConsent(ctx context.Context) control.Check {
	const name = "consent"
	state, err := d.consent.Get()
	if err != nil {
		return warning(name, err.Error(), "Run `servicectl accept-privacy` or `servicectl decline-privacy`.")
	}
	detail := "nothing is uploaded"
	by := (facade{d}).Consent(ctx)
	if by.UploadAllowed {
		detail = "events may be uploaded"
	}
	return passed(name, fmt.Sprintf("%s; %s", state, detail))
}

// checkAdapters reports on the adapters without running them. wrong maps adapters to faults of their files. If several
// adapters are the same file, checkAdapters reports its fault once.
func checkAdapters(list []pluginhost.PluginStatus, wrong map[string]error, now time.Time) []control.Check {
	sharing := map[string][]string{} // names of adapters, by fault
	for _, s := range list {
		if err := wrong[s.Name]; err != nil {
			sharing[err.Error()] = append(sharing[err.Error()], s.Name)
		}
	}
	var out []control.Check
	for _, s := range list {
		c := passed("adapter "+s.Name, "verified; "+s.State)
		err := wrong[s.Name]
		if err != nil {
			names := sharing[err.Error()]
			if names[0] != s.Name {
				continue
			}
			c = failure(c.Name, err.Error(), pluginhost.FixHint(err))
			if len(names) > 1 {
				c.Name, c.Detail = "adapters", c.Detail+"; none of these starts: "+strings.Join(names, ", ")
			}
		}
		switch {
		case pluginhost.IsUpgrading(err):
			c.State, c.Detail = checkWarn, "an upgrade is being installed: "+c.Detail
		case err != nil:
		case s.LastError != "" && s.State != pluginhost.Running && s.State != pluginhost.Stopped:
			c = warning(c.Name, s.State+": "+s.LastError, "Read `servicectl daemon logs`.")
		case !s.Crashed.IsZero():
			c.Detail += fmt.Sprintf("; crashed %s ago: %s", now.Sub(s.Crashed).Round(time.Second), s.LastError)
		}
		out = append(out, c)
	}
	return out
}

// isUpgrading reports whether an upgrade is being installed, during which an adapter's file is refused.
func (d *daemon) isUpgrading() bool {
	for _, err := range d.host.Check() {
		if pluginhost.IsUpgrading(err) {
			return true
		}
	}
	return false
}

func (d *daemon) checkBackend(ctx context.Context) control.Check {
	const name = "backend"
	b, err := d.backendOf(ctx)
	if err != nil {
		return failure(name, "not checked: its address is invalid", "Correct the configuration.")
	}
	h, err := d.host.Health(ctx, backend.Target{BaseURL: b.URL, InstallID: d.install.ID()})
	if err != nil {
		fix := "Check the network and the backend address, then try again."
		var refused *problem.Error
		if errors.As(err, &refused) {
			fix = cmp.Or(refused.FixHint, fix)
		}
		if refused != nil && refused.Code == problem.CodeAdapterUnavailable && d.isUpgrading() {
			return warning(name, err.Error(), fix)
		}
		return failure(name, err.Error(), fix)
	}
	uptime := h.Uptime.Round(time.Second)
	c := passed(name, fmt.Sprintf("%s %s (commit %s), up for %s", h.Service, h.Version, h.Commit, uptime))
	if !h.OK {
		c.State, c.Fix = checkWarn, "The backend reports a problem; try again later."
	}
	return c
}

// checkLink asks the backend whether it accepts the token.
func (d *daemon) checkLink(ctx context.Context) control.Check {
	const name = "account link"
	switch l := (facade{d}).Verify(ctx); {
	case l.State == account.NotLinked:
		return passed(name, "no account is linked")
	case l.State == account.OtherBackend:
		return warning(name, "the link belongs to "+backend.DisplayName(l.BackendURL),
			"Run `servicectl login --replace` to replace that link with one at this backend.")
	case !l.Linked():
		return failure(name, "the link is "+string(l.State), "Run `servicectl login` to link again.")
	case !l.Verified.OK:
		return warning(name, "the backend could not be asked: "+l.Verified.Err, "Try again later.")
	case l.Detail != "":
		if _, unsaved := d.accounts.Unsaved(); unsaved {
			return warning(name, l.Detail, "Free space for auth.json in the state directory.")
		}
		return warning(name, l.Detail, "If others use this machine, run `servicectl logout`, then `servicectl login`.")
	}
	return passed(name, "the backend accepts it")
}

func (d *daemon) checkBrowser(ctx context.Context) control.Check {
	const name = "browser"
	if caller.From(ctx).Env["SERVICE_NO_AUTO_OPEN"] == "1" {
		return passed(name, "not opened automatically (SERVICE_NO_AUTO_OPEN=1)")
	}
	return passed(name, "verification pages open automatically")
}

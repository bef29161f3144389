// Package opener opens a page in the person's browser with the platform's own command (spec 6.3), in the desktop
// session of the caller. It knows neither why a page is opened nor what is on it.
package opener

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/service-dev/service/daemon/internal/caller"
)

// Reasons why nothing was opened.
const (
	Disabled  = "disabled"   // SERVICE_NO_AUTO_OPEN=1
	NoDesktop = "no_desktop" // the caller has no desktop session
	Refused   = "refused"    // the URL is not a web page's
	Failed    = "failed"     // the command is missing or ended with an error
)

// Result tells whether a browser was asked to open the page.
type Result struct {
	Opened bool
	Reason string // empty when Opened
}

const (
	// glance is how long Open waits for a command that fails at once; a good one has handed over or goes on by then.
	glance = 300 * time.Millisecond
	// patience is after how long a command that hangs is killed.
	patience = 60 * time.Second
	// maxOpen bounds the commands that run at once.
	maxOpen = 8
)

// Opener starts the platform's command. Serve must run: it owns the commands that are still going.
type Opener struct {
	log   *slog.Logger
	slots chan struct{}
	// command makes the process for a URL; the platform's by default.
	command func(ctx context.Context, who caller.Caller, url string) *exec.Cmd

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
	life    context.Context
	end     context.CancelFunc
}

// New makes an opener.
func New(log *slog.Logger) *Opener {
	life, end := context.WithCancel(context.Background())
	return &Opener{log: log, slots: make(chan struct{}, maxOpen), command: platformCommand, life: life, end: end}
}

// OutsideUnit is for a daemon that is a unit of systemd: pages are opened in a unit of their own, so that the browser is
// neither bound by what the daemon's unit forbids nor ended with the daemon. Call it before Open.
func (o *Opener) OutsideUnit() { o.command = unitCommand }

// Serve waits until ctx ends, then ends the commands that still run.
func (o *Opener) Serve(ctx context.Context) error {
	<-ctx.Done()
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.end()
	o.running.Wait()
	return nil
}

// Open asks the caller's browser to show a page. It returns within a moment, whatever the command does: the caller has
// told the person the URL already.
func (o *Opener) Open(ctx context.Context, who caller.Caller, page string) Result {
	switch {
	case who.Env["SERVICE_NO_AUTO_OPEN"] == "1":
		return Result{Reason: Disabled}
	case !isPage(page) || !isPlatformSafe(page):
		return Result{Reason: Refused}
	case !hasDesktop(who.Env):
		return Result{Reason: NoDesktop}
	}
	done, ok := o.start(who, page)
	if !ok {
		return Result{Reason: Failed}
	}
	moment := time.NewTimer(glance)
	defer moment.Stop()
	select {
	case err := <-done:
		if err != nil {
			return Result{Reason: Failed}
		}
	case <-moment.C:
	case <-ctx.Done():
	}
	return Result{Opened: true}
}

// start starts the command under the opener's own life, not the caller's.
func (o *Opener) start(who caller.Caller, page string) (<-chan error, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, false
	}
	select {
	case o.slots <- struct{}{}:
	default:
		return nil, false
	}
	ctx, cancel := context.WithTimeout(o.life, patience)
	cmd := o.command(ctx, who, page)
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		cancel()
		<-o.slots
		o.log.Warn("opening the browser", "command", cmd.Path, "err", reason(err))
		return nil, false
	}
	done := make(chan error, 1)
	o.running.Go(func() {
		defer func() { <-o.slots }()
		defer cancel()
		err := cmd.Wait()
		if err != nil && o.life.Err() == nil {
			o.log.Warn("the browser's command ended with an error", "command", cmd.Path, "err", reason(err))
		}
		done <- err
	})
	return done, true
}

// reason leaves out the command line, which holds the URL and with it the user code.
func reason(err error) string {
	var lookup *exec.Error
	if errors.As(err, &lookup) {
		return lookup.Err.Error()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.String()
	}
	return "it could not be started"
}

// isPage lets only web addresses with a host through: a file, a script or an option must never reach the command.
func isPage(page string) bool {
	if len(page) > 4096 || strings.ContainsFunc(page, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return false
	}
	u, err := url.Parse(page)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.User == nil
}

// environment is what a browser's command gets: the daemon's base and the caller's desktop, nothing else.
func environment(who caller.Caller, lookup func(string) (string, bool), base, desktop []string) []string {
	var env []string
	for _, name := range base {
		if v, ok := lookup(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for _, name := range desktop {
		if v, ok := who.Env[name]; ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

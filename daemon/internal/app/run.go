package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/service-dev/service/proto/buildinfo"
	"github.com/service-dev/service/proto/rendezvous"
)

// Options say how a daemon runs. The zero value is one that a client starts: it stops when idle and is silent.
type Options struct {
	// Dir is the state directory; empty means that of the environment (rendezvous.Dir).
	Dir string
	// Foreground also logs to Stderr, as text.
	Foreground bool
	// Managed daemons belong to the system's service manager and do not stop when idle.
	Managed bool
	// Sockets are the service manager's, on which clients wait already; such a daemon stops when idle, for the next
	// client starts it again.
	Sockets Listeners
	// Notify hears how the daemon is; nil for nobody.
	Notify Notifier
	// AdapterDir holds the adapters; empty means beside this executable.
	AdapterDir string
	// Toolset is which tools the agent of InProcess is told of; empty means all.
	Toolset string
	Stderr  io.Writer
	Now     func() time.Time

	activated bool // Sockets are in use
	// Of tests: further parts, and another stopLimit.
	further   []part
	stopLimit time.Duration
}

// Run is a daemon's life. It returns nil after an orderly end: ctx ended, a client asked, it was idle, or its directory
// or a socket was deleted. ErrRunning tells that another daemon has the directory.
func Run(ctx context.Context, o Options) error {
	if o.Now == nil {
		o.Now = systemClock
	}
	if o.Notify == nil {
		o.Notify = silent{}
	}
	ready := inherited()
	err := run(ctx, o, ready)
	if err != nil {
		ready.failed(err)
	}
	return err
}

func run(ctx context.Context, o Options, ready *readiness) error {
	paths, err := pathsOf(o.Dir)
	if err != nil {
		return err
	}
	if err := prepare(paths); err != nil {
		return err
	}
	h, err := take(ctx, paths, o, o.Now())
	if err != nil {
		return err
	}
	defer h.release()
	o.activated = h.activated
	var also io.Writer
	if o.Foreground {
		also = o.Stderr
	}
	level := &slog.LevelVar{}
	log, file, err := openLog(paths, level, also)
	if err != nil {
		return err
	}
	defer file.Close()
	p, err := compose(o, paths, log, level)
	if err != nil {
		log.Error("the daemon did not start", "err", err)
		return err
	}
	log.Info("the daemon is up", "pid", os.Getpid(), "version", buildinfo.Version, "managed", o.Managed, "activated", o.activated, "control", paths.Control)
	ready.ok()
	o.Notify.Ready()
	err = p.serve(ctx, h)
	log.Info("the daemon is gone", "why", p.why())
	return err
}

func pathsOf(dir string) (rendezvous.Paths, error) {
	if dir == "" {
		var err error
		if dir, err = rendezvous.Dir(); err != nil {
			return rendezvous.Paths{}, err
		}
	}
	return rendezvous.PathsOf(dir)
}

// The reasons of an orderly end.
var (
	errAsked   = errors.New("a client asked it to stop")
	errIdle    = errors.New("it was idle")
	errDeleted = errors.New("its directory or a socket was deleted")
)

// stopLimit bounds how long the parts may take to end. Clients wait a little longer for the daemon to be gone.
const stopLimit = 15 * time.Second

// serve runs the parts until there is a reason to end, and until they have ended. A part that does not, because it hangs
// in a file system for instance, is left behind: the process ends with it.
func (p *parts) serve(ctx context.Context, h *hold) error {
	stopping := make(chan struct{})
	ended := make(chan error, 1)
	go func() { ended <- p.serveParts(ctx, h, func() { close(stopping) }) }()
	select {
	case err := <-ended:
		return err
	case <-stopping:
	}
	late := time.NewTimer(p.stopLimit)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		return p.stuck()
	}
}

// stuck is the error of an end that took too long.
func (p *parts) stuck() error {
	return fmt.Errorf("stop: %s did not end in %v", strings.Join(p.roll.left(), ", "), p.stopLimit)
}

// serveParts runs the two doors on top of the parts that last longer, until there is a reason to end, which it tells to
// stopping. The doors are closed first: what they began still finds the parts alive.
func (p *parts) serveParts(ctx context.Context, h *hold, stopping func()) error {
	back, endBack := context.WithCancel(context.WithoutCancel(ctx))
	defer endBack()
	lasting, back := errgroup.WithContext(back)
	for _, part := range p.lasting() {
		lasting.Go(func() error { return p.roll.run(back, part) })
	}
	front, endFront := context.WithCancelCause(ctx)
	p.end = endFront
	defer endFront(nil)
	doors, _ := errgroup.WithContext(front)
	for _, part := range []part{
		{"control", func(ctx context.Context) error { return ended(endFront, p.control.Serve(ctx, h.Control)) }},
		{"gate", func(ctx context.Context) error { return ended(endFront, p.gate.Serve(ctx, h.MCP)) }},
		{"watch", func(ctx context.Context) error { p.watch(ctx, h); return nil }},
	} {
		doors.Go(func() error { return p.roll.run(front, part) })
	}
	doors.Go(func() error {
		select {
		case <-back.Done(): // a lasting part failed
			endFront(errors.New("a part of the daemon ended"))
		case <-front.Done():
		}
		stopping()
		p.notify.Stopping(reasonOf(context.Cause(front)))
		return nil
	})
	err := doors.Wait()
	p.reason.Store(context.Cause(front))
	endBack()
	if e := lasting.Wait(); e != nil && !errors.Is(e, context.Canceled) {
		err = errors.Join(err, e)
	}
	return err
}

// ended takes the other door down when one fails.
func ended(end context.CancelCauseFunc, err error) error {
	if err != nil {
		end(err)
	}
	return err
}

// why is the reason of the end, for the log.
func (p *parts) why() string {
	err, _ := p.reason.Load().(error)
	return reasonOf(err)
}

func reasonOf(err error) string {
	if err == nil || errors.Is(err, context.Canceled) {
		return "it was told to"
	}
	return err.Error()
}

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

	"github.com/service-dev/service/internal/buildinfo"
	"github.com/service-dev/service/internal/rendezvous"
)

// Options configures a daemon. The zero value is for a daemon started by a client: it stops when idle and prints no
// log.
type Options struct {
	// Dir is the state directory. If it is empty, rendezvous.Dir determines it from the environment.
	Dir string
	// Foreground makes the daemon also log to Stderr as text.
	Foreground bool
	// Managed means that the system's service manager runs the daemon, which then does not stop when idle.
	Managed bool
	// Sockets are the service manager's sockets, to which clients may already have connected. A daemon with sockets
	// stops when idle, because the service manager starts it again for the next client.
	Sockets Listeners
	// Notify reports the daemon's state to the service manager; it may be nil.
	Notify Notifier
	// AdapterDir holds the adapters; empty means this executable's directory.
	AdapterDir string
	// Toolset selects the tools that InProcess offers the agent; empty means all.
	Toolset string
	Stderr  io.Writer
	Now     func() time.Time

	activated bool // whether Sockets are in use
	// further components and another stopLimit are set by tests.
	further   []component
	stopLimit time.Duration
}

// Run runs a daemon. It returns nil after a regular stop: ctx ended, a client requested the stop, the daemon was idle,
// or its directory, a socket or its program was deleted. It returns ErrRunning if another daemon uses the directory.
func Run(ctx context.Context, o Options) error {
	if o.Now == nil {
		o.Now = systemClock
	}
	if o.Notify == nil {
		o.Notify = noopNotifier{}
	}
	ready := openReadyPipe()
	err := run(ctx, o, ready)
	if err != nil {
		ready.failed(err)
	}
	return err
}

func run(ctx context.Context, o Options, ready *readyPipe) error {
	paths, err := statePaths(o.Dir)
	if err != nil {
		return err
	}
	if err := prepareDirs(paths); err != nil {
		return err
	}
	h, err := acquire(ctx, paths, o, o.Now())
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
		log.Error("failed to start the daemon", "err", err)
		return err
	}
	log.Info("daemon started", "pid", os.Getpid(), "version", buildinfo.Version, "managed", o.Managed, "activated",
		o.activated, "control", paths.Control)
	ready.ok()
	o.Notify.Ready()
	err = p.serve(ctx, h)
	log.Info("daemon stopped", "reason", p.why())
	return err
}

func statePaths(dir string) (rendezvous.Paths, error) {
	if dir == "" {
		var err error
		if dir, err = rendezvous.Dir(); err != nil {
			return rendezvous.Paths{}, err
		}
	}
	return rendezvous.PathsOf(dir)
}

// Reasons for a regular stop.
var (
	errAsked   = errors.New("a client asked it to stop")
	errIdle    = errors.New("it was idle")
	errDeleted = errors.New("its directory or a socket was deleted")
	errRemoved = errors.New("its program was removed")
	errUpgrade = errors.New("another version of its program was installed, and it was idle")
)

// stopLimit is the maximum time for the components to stop. Clients wait slightly longer for the daemon to exit.
const stopLimit = 15 * time.Second

// serve runs the components until there is a reason to stop, and waits until all have stopped. A component that does
// not stop, for example because a file system hangs, is abandoned and ends with the process.
func (d *daemon) serve(ctx context.Context, h *instance) error {
	stopping := make(chan struct{})
	stopOnError := make(chan error, 1)
	go func() { stopOnError <- d.serveComponents(ctx, h, func() { close(stopping) }) }()
	select {
	case err := <-stopOnError:
		return err
	case <-stopping:
	}
	late := time.NewTimer(d.stopLimit)
	defer late.Stop()
	select {
	case err := <-stopOnError:
		return err
	case <-late.C:
		return d.stuck()
	}
}

// stuck returns the error for a shutdown that took too long.
func (d *daemon) stuck() error {
	return fmt.Errorf("stop: %s did not stop within %v", strings.Join(d.components.left(), ", "), d.stopLimit)
}

// serveComponents runs the two sockets on top of the background components until there is a reason to stop, and then
// calls stopping. The sockets close first, because calls in progress still need the other components.
func (d *daemon) serveComponents(ctx context.Context, h *instance, stopping func()) error {
	back, endBack := context.WithCancel(context.WithoutCancel(ctx))
	defer endBack()
	background, back := errgroup.WithContext(back)
	for _, component := range d.background() {
		background.Go(func() error { return d.components.run(back, component) })
	}
	front, endFront := context.WithCancelCause(ctx)
	d.end = endFront
	defer endFront(nil)
	doors, _ := errgroup.WithContext(front)
	for _, component := range []component{
		{"control", func(ctx context.Context) error { return stopOnError(endFront, d.control.Serve(ctx, h.Control)) }},
		{"gate", func(ctx context.Context) error { return stopOnError(endFront, d.gate.Serve(ctx, h.MCP)) }},
		{"watch", func(ctx context.Context) error { d.watch(ctx, h); return nil }},
	} {
		doors.Go(func() error { return d.components.run(front, component) })
	}
	doors.Go(func() error {
		select {
		case <-back.Done(): // a background component failed
			endFront(errors.New("a background component failed: " + context.Cause(back).Error()))
		case <-front.Done():
		}
		stopping()
		d.notify.Stopping(reasonOf(context.Cause(front)))
		return nil
	})
	err := doors.Wait()
	d.reason.Store(context.Cause(front))
	endBack()
	if e := background.Wait(); e != nil && !errors.Is(e, context.Canceled) {
		err = errors.Join(err, e)
	}
	return err
}

// stopOnError stops the other components if one fails.
func stopOnError(end context.CancelCauseFunc, err error) error {
	if err != nil {
		end(err)
	}
	return err
}

// why returns the reason for the stop, for the log.
func (d *daemon) why() string {
	err, _ := d.reason.Load().(error)
	return reasonOf(err)
}

func reasonOf(err error) string {
	if err == nil || errors.Is(err, context.Canceled) {
		return "it received a stop request"
	}
	return err.Error()
}

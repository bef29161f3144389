// Package osservice is all that the daemon has to do with the system's service manager: it runs the same program in a
// terminal and under the manager, takes over the sockets of systemd and tells it how the daemon is, and installs,
// starts, stops and removes the service. It knows nothing of what runs.
//
// The service is optional: clients start a daemon on demand, and the service only keeps its sockets (systemd) or itself
// (launchd, Windows) there from login on. Run uses kardianos/service, which knows how Windows speaks to a service. Its
// installers are not used: it writes one systemd unit without sockets into a fixed directory, loads launchd agents by
// commands that Apple replaced, and on Windows makes services that only an administrator may install. So the systemd
// units, the launchd agent and the Windows task here are our own, each made by a pure function.
package osservice

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/kardianos/service"
)

// Name is what the service manager calls the daemon.
const Name = "serviced"

// stopTimeout bounds the drain when the service manager asks the daemon to stop.
const stopTimeout = 10 * time.Second

// Run runs f until it returns. Its context ends at SIGINT, SIGTERM or when the service manager stops the service; a
// second signal ends the process at once. managed tells that a service manager started the process.
func Run(ctx context.Context, managed bool, f func(context.Context) error) error {
	if !managed || runtime.GOOS != "windows" { // elsewhere a service manager speaks in signals
		ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
		release := context.AfterFunc(ctx, stop)
		defer release()
		return f(ctx)
	}
	leaveConsole()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &program{ctx: ctx, cancel: cancel, run: f, done: make(chan struct{})}
	s, err := service.New(p, &service.Config{Name: Name})
	if err != nil {
		return err
	}
	p.service = s
	if err := s.Run(); err != nil {
		return err
	}
	return p.err
}

// program is what the service manager starts and stops. err may be read once done is closed.
type program struct {
	ctx     context.Context
	cancel  context.CancelFunc
	run     func(context.Context) error
	service service.Service
	done    chan struct{}
	err     error
}

// Start begins the work and returns, as service managers want it.
func (p *program) Start(service.Service) error {
	go func() {
		defer close(p.done)
		p.err = p.run(p.ctx)
		if p.ctx.Err() == nil { // it ended by itself: the manager has to hear of it
			_ = p.service.Stop()
		}
	}()
	return nil
}

// Stop ends the work and waits for it.
func (p *program) Stop(service.Service) error {
	p.cancel()
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
	}
	return nil
}
